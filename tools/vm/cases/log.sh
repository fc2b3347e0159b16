# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2016,SC2154
#
# since_mark of the selftests' lib.sh prints what the kernel's log has since the mark.  Sourced by tools/vm/selftest.

# since WHAT WANT LINE ...: the log holds these lines; "kfi 1 2.50" is the mark.
since()
{
	local what=$1 want=$2 got
	shift 2

	got=$(cd "$TOP/tools/testing/selftests/kfi" && sh -c '
		. ./lib.sh
		_mark=$1
		shift
		lines=$(printf "[    1.000000] %s\n" "$@")
		dmesg() { echo "$lines"; }
		since_mark' ./run "kfi 1 2.50" "$@" 2>"$tmp/out" | tr '\n' ' ')
	if [ "$got" = "$want" ]; then
		result 0 "log: $what"
	else
		echo "wanted '$want', got '$got'" >>"$tmp/out"
		result 1 "log: $what"
	fi
}

since "lines before the mark are left out" "new newer " old "kfi 1 2.50" new newer
since "nothing is new" "" old "kfi 1 2.50"
since "the mark was dropped" "new newer " new newer
