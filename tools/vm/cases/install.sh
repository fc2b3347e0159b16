# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2016,SC2034,SC2086,SC2154
#
# The selftests are installed whole.  Sourced by tools/vm/selftest.

selftests=$TOP/tools/testing/selftests/kfi
{
	make -s -C "$selftests" install INSTALL_PATH="$tmp/installed" &&
		"$tmp/installed/run_kselftest.sh" -l >"$tmp/installed/list"
} >"$tmp/out" 2>&1 && ok=0 || ok=1
result $ok "install: the runner can be installed"

# Each script in the runner's list is a suite of its module, or a script beside it.
scripts=$(sed -n 's/^scripts="\(.*\)"$/\1/p' "$selftests/run_kselftest.sh")
ok=0
[ -n "$scripts" ] || ok=1
: >"$tmp/out"
for i in $scripts lib; do
	[ -f "$tmp/installed/$i.sh" ] || { echo "no $i.sh" >>"$tmp/out"; ok=1; }
done
result $ok "install: no script is left out"

# The message lists the tests that there are.
rc=0
"$tmp/installed/run_kselftest.sh" rights nosuch >"$tmp/out" 2>&1 || rc=$?
[ $rc = 1 ] && grep -q "there is no test 'nosuch'; there are: oracle .* hardware" "$tmp/out" &&
	grep -qx 'not ok 1 nosuch' "$tmp/out" && ok=0 || ok=1
result $ok "install: the runner refuses an unknown test"
