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

# A shell's guest that has no init panics. One that has ends when it is told to, as often as it takes.
rc=0
"$here/run" --shell --no-rxe --append rdinit=/nosuch --log "$TOP/build/log/vm-shell-panic.log" \
	</dev/null >"$tmp/out" 2>&1 || rc=$?
[ $rc = 1 ] && grep -q "^error: the guest's kernel panicked: .*vm-shell-panic.log" "$tmp/out" &&
	grep -q 'Kernel panic' "$TOP/build/log/vm-shell-panic.log" && ok=0 || ok=1
result $ok "vm: a shell whose guest panics has failed"
rc=0
(trap '' PIPE; while sleep 1 && echo exit; do :; done) 2>/dev/null | "$here/run" --shell --no-rxe \
	--log "$TOP/build/log/vm-shell.log" >"$tmp/out" 2>&1 || rc=$?
result $rc "vm: a shell that is left has not"

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

# nic_mode MODE "EXPECTED": the guest has the model NIC's two devices, each in an IOMMU group of
# this type ("-": none), and as many swiotlb pools and ranges of memory above 4 GiB as that.
nic_mode()
{
	local rc=0

	cat >"$tmp/nic" <<-END
		types=
		for i in /sys/bus/pci/devices/*; do
			[ "\$(cat "\$i/vendor" "\$i/device" | xargs)" != "0x1234 0x11e8" ] ||
				types="\$types\$(cat "\$i/iommu_group/type" 2>/dev/null || echo -) "
		done
		pools=\$(ls /sys/kernel/debug/swiotlb 2>/dev/null | grep -c io_tlb_nslabs)
		high=\$(grep -c '^[0-9a-f]\{9\}.*System RAM' /proc/iomem)
		echo "nic: \$types\$pools \$high"
		[ "\$types\$pools \$high" = "$2" ]
	END
	"$here/run" --quiet --no-rxe --nic="$1" --script "$tmp/nic" \
		--log "$TOP/build/log/vm-nic-$1.log" >"$tmp/out" 2>&1 || rc=$?
	grep '| nic: ' "$TOP/build/log/vm-nic-$1.log" >>"$tmp/out" || :
	result $rc "vm: the model NIC's devices, mode $1"
}
nic_mode lazy "DMA-FQ DMA-FQ 0 0"
nic_mode strict "DMA DMA 0 0"
nic_mode passthrough "identity identity 0 0"
nic_mode off "- - 0 0"
nic_mode high "- - 1 1"
nic_mode bounce "- - 1 0"

rc=0
"$here/run" --quiet --nic=eager --script "$tmp/nic" >"$tmp/out" 2>&1 || rc=$?
[ $rc = 1 ] && grep -q "error: --nic: no mode 'eager'" "$tmp/out" && ok=0 || ok=1
result $ok "vm: an unknown mode of the model NIC is refused"
