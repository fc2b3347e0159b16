# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154
#
# make stress runs each part in a guest of its own, and prints its figures.  Sourced by tools/vm/selftest.

# A checkout with a fake tools/vm/run: it appends its options and its script to the file "ran", and writes these results
# to the log.
fake=$tmp/stress
mkdir -p "$fake/tools/env" "$fake/tools/vm" "$fake/cache/stock-7.3/src" "$fake/build/log"
: >"$fake/cache/stock-7.3/src/.complete"
cp "$TOP/Makefile" "$fake/"
cp "$TOP/tools/env/lib.sh" "$fake/tools/env/"
cp "$TOP/tools/vm/stress" "$fake/tools/vm/"
cat >"$tmp/results" <<'END'
[    1.000000] |     # seed 4711
[    1.000000] |         ok 1 removal.link_delete.load
[    1.000000] |         ok 2 removal.link_delete.remove
[    1.000000] |         ok 3 removal.link_delete.unload
[    1.000000] |         not ok 4 removal.by_thread.remove
[    1.000000] |         ok 5 unload.domain.consumer
[    1.000000] |         ok 6 unload.domain.provider
[    1.000000] |         ok 7 unload.meanwhile.unload
[    1.000000] |         # 20 calls, 3 failures injected, at 2 points
[    1.000000] |     # 12 allocations or driver calls were made to fail
[    1.000000] |     # 30 allocations or driver calls were made to fail
END
for i in env/setup env/make vm/ktap; do
	printf '#!/bin/sh\n' >"$fake/tools/$i"
done
cat >"$fake/tools/vm/run" <<'END'
#!/bin/bash
options="$*"
while [ $# -gt 0 ]; do
	case $1 in
	--log) log=$2 ;;
	--script) script=$2 ;;
	esac
	shift
done
{ echo "$options"; cat "$script"; } >>"${0%/*}/ran"
sed 's/$/\r/' "${0%/*}/results" >"$log"
END
cp "$tmp/results" "$fake/tools/vm/"
chmod +x "$fake"/tools/*/*

# stress_part PART SUITES NIC: runs one part on the newest kernel.
stress_part()
{
	: >"$fake/tools/vm/ran"
	env -u SCALE -u SEED PARTS="$1" TIMES=2 KFABRIC_FORCE_ROOT=1 KFABRIC_CACHE="$fake/cache" \
		timeout 60 "$fake/tools/vm/stress" newest >"$tmp/out" 2>&1 || :
	cat "$fake/tools/vm/ran" >>"$tmp/out"
	grep -qE "^sh /kfi/selftests/run_kselftest.sh $2 *$" "$fake/tools/vm/ran" &&
		[ "$(grep -c -e '--no-rxe --nic$' "$fake/tools/vm/ran")" = "$3" ] &&
		[ "$(grep -c 'export KFI_NIC=' "$fake/tools/vm/ran")" = "$3" ] && ok=0 || ok=1
	result $ok "stress: $1 runs: $2"
}
stress_part random random 0
stress_part model random 1
stress_part removal "removal unload removal unload" 0
stress_part model_removal "removal unload removal unload" 1
stress_part faults "faults inject ep" 0
stress_part model_faults "faults inject ep" 1
grep '^  #' "$tmp/out" >"$tmp/figures"
cat >"$tmp/want" <<'END'
  # seed 4711
  # 20 calls, 3 failures injected, at 2 points
  # 42 allocations or driver calls made to fail
  # 1 removals of a device, 3 unloads of modules
END
diff "$tmp/want" "$tmp/figures" >"$tmp/out" && ok=0 || ok=1
result $ok "stress: counts passed removals and unloads, and all failures"
