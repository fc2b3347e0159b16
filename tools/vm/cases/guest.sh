# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2016,SC2034,SC2086,SC2154
#
# Guests that die are seen to.  Sourced by tools/vm/selftest --boot.

echo 'echo c >/proc/sysrq-trigger' >"$tmp/crash"
rc=0
"$here/run" --quiet --no-rxe --script "$tmp/crash" \
	--log "$TOP/build/log/vm-crash.log" >"$tmp/out" 2>&1 || rc=$?
if [ $rc = 1 ] && grep -q 'the guest panicked' "$tmp/out"; then
	result 0 "vm: a guest that crashes has failed"
else
	result 1 "vm: a guest that crashes has failed"
fi
echo 'exit 3' >"$tmp/three"
rc=0
"$here/run" --quiet --no-rxe --script "$tmp/three" \
	--log "$TOP/build/log/vm-exit3.log" >"$tmp/out" 2>&1 || rc=$?
if [ $rc = 1 ] && grep -q 'ended with 3' "$tmp/out"; then
	result 0 "vm: a script that fails has failed"
else
	result 1 "vm: a script that fails has failed"
fi
