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

# Two of them, with everything that their scripts can ask for.
cat >"$tmp/both" <<'END'
set -e
grep -qs "$(rdma link show rxe0/1 | grep -o eth0)" /proc/net/dev
carrier() { until [ "$(cat /sys/class/net/eth0/carrier)" = "$1" ]; do usleep 100000; done; }
answers() { ping -c 1 -W 2 "$1" >/dev/null; }
gone() { ! answers "$KFI_PEER"; }
until answers "$KFI_PEER"; do :; done
until answers "$KFI_PEER6"; do :; done
[ "$(cat /sys/class/net/eth0/mtu)" = 9000 ]
until ping -c 1 -W 2 -s 8900 "$KFI_PEER"; do :; done
case $KFI_ROLE-$KFI_LIFE in
client-1)
	meet 1
	echo "pair: link down"
	carrier 0
	gone
	echo "pair: link up"
	carrier 1
	until answers "$KFI_PEER"; do :; done
	echo "pair: kill peer"
	until gone; do :; done
	echo "pair: restart peer"
	;;
server-1)
	meet 1
	while sleep 5; do echo "still here"; done
	;;
esac
meet 2
END
rc=0
"$here/pair" --script "$tmp/both" --log "$TOP/build/log/vm-both" >"$tmp/out" 2>&1 || rc=$?
result $rc "vm: two guests reach each other, are cut off, killed and booted again"
