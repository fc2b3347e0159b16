#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The model NIC's own tests (nic/): each personality by the suites of kfi_nic_test.ko, then the files of
# debugfs, and devices that go. It needs QEMU's edu device, which tools/vm/run --nic gives a guest.
#
# KFI_PERSONAS names some of the personalities. Where all mappings bounce, only a full swiotlb is tested: the suites look at
# memory, and not at the copy that is the device's.

. "$(dirname "$0")/lib.sh"

personas=${KFI_PERSONAS:-"mlx5 ib irdma hns mlx4 pvrdma bnxt_re i40iw cxgb4 erdma ionic qedr efa"}
# Without reliable connections there is little to test.
suites_of()
{
	case $1 in
	efa) echo datagrams traits ;;
	*) echo data violations local order faults datagrams traits ;;
	esac
}
# The driver that the device is bound to, and its files.
driver=/sys/bus/pci/drivers/kfi_nic
files=/sys/kernel/debug/kfi_nic
# Of knic0, and of knic1 in the network namespace "peer".
address=198.51.100.1 peer_address=198.51.100.2
# These suites need two devices, once with each kind of link.
peer_personas="mlx5 ib irdma"
peer_suites="data violations cm pair"

# The edu devices, by their names on the bus.
edus()
{
	for _device in /sys/bus/pci/devices/*; do
		[ "$(cat "$_device/vendor") $(cat "$_device/device")" != "0x1234 0x11e8" ] ||
			echo "${_device##*/}"
	done
}

up()
{
	[ -e /sys/class/net/knic0p1 ] || return 0
	ip address add $address/24 dev knic0p1 && ip link set knic0p1 up
}

# start [PARAMETER=VALUE ...]
start()
{
	unload kfi_nic && modprobe -a ib_core rdma_cm iw_cm && load kfi_nic "$@" && up &&
		wait_for 10 port_is 1 ACTIVE && wait_for 10 has_gid
}

# RoCE has a GID for the address, as soon as the core has learnt of it.
has_gid()
{
	_port=/sys/class/infiniband/knic0/ports/1
	! grep -qs 'RoCE v2' $_port/gid_attrs/types/0 || grep -q ffff:c633:6401 $_port/gids/*
}

# IPoIB has the addresses of InfiniBand: ib0 is a network device of knic0, ib1 of knic1.
ipoib_up()
{
	modprobe ib_ipoib && ip address replace $address/24 dev ib0 && ip link set ib0 up &&
		wait_for 60 grep -qs 1 /sys/class/net/ib0/carrier
}

# The network devices of knic1 get a network namespace of their own. Otherwise its address is one of this machine, and
# the connection manager would look for no other device.
peer_up()
{
	case $1 in
	ib) ipoib_up && _peer=ib1 ;;
	*) _peer=knic1p1 ;;
	esac && peer_down && ip netns add peer && ip netns set peer 7 && ip link set $_peer netns peer &&
		ip -n peer address add $peer_address/24 dev $_peer && ip -n peer link set $_peer up &&
		wait_for 60 peer_ready
}
peer_ready()
{
	ip -n peer link show dev $_peer | grep -q LOWER_UP || return
	_port=/sys/class/infiniband/knic1/ports/1
	grep -q ACTIVE $_port/state || return
	! grep -qs 'RoCE v2' $_port/gid_attrs/types/0 || grep -q ffff:c633:6402 $_port/gids/*
}
peer_down() { ! ip netns list | grep -q '^peer' || ip netns delete peer; }

port_is()
{
	grep -q "$2" "/sys/class/infiniband/knic0/ports/$1/state"
}

# in_kernel SUITE [PARAMETER=VALUE ...]: a suite of kfi_nic_test.ko, one level deeper.
in_kernel()
{
	_suite_name=$1
	shift
	{
		run_module kfi_nic_test "nic_$_suite_name" suite="nic_$_suite_name" \
			address=$address "$@"
		echo $? >"$tmp"
	} | sed 's/^/    /'
	return "$(cat "$tmp")"
}

# The connection manager of InfiniBand needs IPoIB, which makes address handles whenever it wants to.
in_kernel_cm()
{
	[ "$1" != ib ] || { ipoib_up && set -- ib ipoib=1; } || return
	shift
	_sound=$(health)
	in_kernel cm "$@" && [ "$(health)" = "$_sound" ]
}

# with_peer PERSONA SUITE: the second side of each connection is one of knic1.
with_peer()
{
	set -- "$1" "$2" peer=knic1 peer_address=$peer_address
	[ "$1" != ib ] || set -- "$@" ipoib=1
	case $2 in
	pair) shift 2; peer_removed "$@" ;;
	*) shift; in_kernel "$@" ;;
	esac
}
# The PCI device of knic1 is removed when the suite says so, and comes back.
peer_removed()
{
	_edu=$(edus | sed -n 2p)
	mark_log
	( wait_for 60 peer_may_go && echo 1 >"/sys/bus/pci/devices/$_edu/remove" ) &
	in_kernel pair "$@"
	_pair=$?
	wait
	[ ! -e /sys/class/infiniband/knic1 ] || return
	echo 1 >/sys/bus/pci/rescan
	return $_pair
}
peer_may_go() { since_mark | grep -q "^kfi_nic_test: the peer may go"; }

# passes NAME COMMAND ...: like check, but what the command prints are results.
passes()
{
	_passes=$1
	shift
	if "$@"; then pass "$_passes"; else fail "$_passes"; fi
}

statistic()
{
	sed -n "s/^$1 //p" $files/knic0/stats
}

mapped_is()
{
	[ "$(statistic mapped)" = "$1" ]
}

# The parameters have bounds, and the personality is what was asked for.
parameters()
{
	unload kfi_nic
	! load kfi_nic persona=none 2>/dev/null && ! load kfi_nic ports=3 2>/dev/null &&
		! load kfi_nic dma_bits=16 2>/dev/null || return
	start persona=cxgb4 && [ "$(cat $files/knic0/persona)" = cxgb4 ] &&
		[ "$(ls $files | wc -l)" = "$(edus | wc -l)" ]
}

# Each fault is a file that holds a number, 0 at first; each line of the statistics a name and a number.
all_files()
{
	start persona=mlx5 || return
	for _file in post create_qp modify_qp modify_err destroy_qp create_cq alloc_pd alloc_mr map_mr \
		     dereg_mr connect reg inv complete lose late delay_ms access_us weak_inv; do
		[ "$(cat $files/knic0/$_file)" = 0 ] || { echo "$_file"; return 1; }
	done
	[ "$(cat $files/knic0/errno)" = 5 ] && echo 12 >$files/knic0/errno &&
		[ "$(cat $files/knic0/errno)" = 12 ] || return
	for _name in posts send_ops recv_ops reg_mr local_inv bytes dma_faults freed_accesses \
		     unmapped_early keys_again under_way cq_overflows \
		     pds cqs qps srqs ahs mrs mapped; do
		statistic $_name | grep -qx '[0-9]*' || { echo "$_name"; return 1; }
	done
	[ "$(cat $files/knic0/swiotlb_full)" = 0 ] || return
	for _file in port_down port_up netdev_gone gid_change; do
		! echo 2 2>/dev/null >$files/knic0/$_file || { echo "$_file: 2"; return 1; }
		! echo 0 2>/dev/null >$files/knic0/$_file || { echo "$_file: 0"; return 1; }
	done
	! echo 7 2>/dev/null >$files/knic0/lid_change
}

# One of two ports goes down and comes up; the other stays.
ports()
{
	start persona=mlx5 ports=2 && ip link set knic0p2 up && wait_for 10 port_is 2 ACTIVE &&
		echo 2 >$files/knic0/port_down && wait_for 10 port_is 2 DOWN && port_is 1 ACTIVE &&
		[ "$(cat /sys/class/net/knic0p2/carrier)" = 0 ] &&
		echo 2 >$files/knic0/port_up && wait_for 10 port_is 2 ACTIVE
}

gone()
{
	start persona=mlx5 && echo 1 >$files/knic0/netdev_gone && [ ! -e /sys/class/net/knic0p1 ] &&
		port_is 1 DOWN && echo 1 >$files/knic0/netdev_gone && echo 1 >$files/knic0/port_down
}

lid()
{
	start persona=ib && _lid=$(cat /sys/class/infiniband/knic0/ports/1/lid) &&
		[ $((_lid)) = "$(cat $files/knic0/lid_change)" ] &&
		! echo 0 2>/dev/null >$files/knic0/lid_change &&
		! echo 49152 2>/dev/null >$files/knic0/lid_change &&
		echo 77 >$files/knic0/lid_change || return
	lid_is() { [ $(($(cat /sys/class/infiniband/knic0/ports/1/lid))) = "$1" ]; }
	wait_for 10 lid_is 77
}

waits() { since_mark | grep -q "^kfi_nic_test: waits for event"; }
# event FILE VALUE TYPE: writing to the file brings about that event.
event()
{
	mark_log
	( wait_for 60 waits && echo "$2" >"$files/knic0/$1" ) &
	in_kernel events event="$3"
	_event=$?
	wait
	return $_event
}

# In this order: one port goes down, and up again.
link_events()
{
	start persona="$1" && event port_down 1 10 && event port_up 1 9
}

subnet_events()
{
	start persona=ib && event lid_change 99 11 && event gid_change 1 17 &&
		grep -q '^fe80:0000:0000:0001:' /sys/class/infiniband/knic0/ports/1/gids/0
}

# No address has so few bits: each mapping is refused.
dma_bits()
{
	start persona=mlx5 && [ "$(cat $files/knic0/dma_bits)" = 64 ] &&
		echo 12 >$files/knic0/dma_bits && [ "$(cat $files/knic0/dma_bits)" = 12 ] || return
	in_kernel unmappable
	_result_of=$?
	echo 64 >$files/knic0/dma_bits
	return $_result_of
}

# swiotlb_left_is COUNT
swiotlb_left_is() { [ "$(cat $files/knic0/swiotlb_full)" = "$1" ] || { echo "swiotlb_full is not $1"; return 1; }; }
# Two mappings find no place in swiotlb, the others do. 0 ends that earlier.
swiotlb_full()
{
	start persona=mlx5 && echo 2 >$files/knic0/swiotlb_full && swiotlb_left_is 2 &&
		in_kernel unmappable && swiotlb_left_is 1 && in_kernel unmappable && swiotlb_left_is 0 &&
		in_kernel mappable && echo 1 >$files/knic0/swiotlb_full && swiotlb_left_is 1 || return
	echo 0 >$files/knic0/swiotlb_full && swiotlb_left_is 0 && in_kernel mappable
}

early_places()
{
	start persona=mlx5 early_places=1 && in_kernel order early_places=1
}

# The driver is unbound while a file is open, which is dead then; and bound again.
unbind()
{
	_edu=$(edus | head -n 1)
	start persona=mlx5 && exec 3<$files/knic0/stats && echo "$_edu" >$driver/unbind &&
		[ ! -e $files/knic0 ] && [ ! -e /sys/class/net/knic0p1 ] || return
	! cat <&3 >/dev/null 2>&1
	_dead=$?
	exec 3<&-
	echo "$_edu" >$driver/bind && [ $_dead = 0 ] && [ "$(ls $files | wc -l)" = "$(edus | wc -l)" ]
}

tmp=$(mktemp) || exit 1
trap 'rm -f "$tmp"' EXIT

if [ -z "$(edus)" ]; then
	plan 1
	skip nic "there is no edu device"
	finish
fi
if grep -q swiotlb=force /proc/cmdline; then
	plan 1
	passes nic.swiotlb_full swiotlb_full
	unload kfi_nic
	finish
fi
rest="parameters files ports netdev_gone lid link_events subnet_events dma_bits swiotlb_full early_places unbind"
planned=$(echo $rest | wc -w)
for persona in $personas; do
	planned=$((planned + $(suites_of "$persona" | wc -w) + 1))
	[ "$persona" = efa ] || planned=$((planned + 1))
	case " $peer_personas " in
	*" $persona "*) planned=$((planned + $(echo $peer_suites | wc -w))) ;;
	esac
done
plan $planned
for persona in $personas; do
	suites=$(suites_of "$persona")
	if ! start persona="$persona"; then
		for i in $suites mapped; do
			fail "nic.$persona.$i" "the model does not come up"
		done
		continue
	fi
	before=$(statistic mapped)
	for i in $suites; do
		passes "nic.$persona.$i" in_kernel "$i"
	done
	check "nic.$persona.mapped" wait_for 10 mapped_is "$before"
	# Messages of the connection manager stay mapped.
	[ "$persona" = efa ] || passes "nic.$persona.cm" in_kernel_cm "$persona"
	case " $peer_personas " in
	*" $persona "*) ;;
	*) continue ;;
	esac
	peer_up "$persona" || echo "# the peer does not come up"
	for i in $peer_suites; do
		passes "nic.$persona.peer_$i" with_peer "$persona" "$i"
	done
	unload kfi_nic ib_ipoib
	peer_down
done
check nic.parameters parameters
check nic.files all_files
check nic.ports ports
check nic.netdev_gone gone
check nic.lid lid
passes nic.link_events eval 'link_events mlx5 && link_events ib && link_events irdma'
passes nic.subnet_events subnet_events
if grep -q DMA "/sys/bus/pci/devices/$(edus | head -n 1)/iommu_group/type" 2>/dev/null; then
	passes nic.dma_bits dma_bits
else
	skip nic.dma_bits "without an IOMMU the kernel warns of such mappings"
fi
# Mappings do not bounce here.
start persona=mlx5
check nic.swiotlb_full eval '! echo 1 2>/dev/null >$files/knic0/swiotlb_full'
passes nic.early_places early_places
check nic.unbind unbind
unload kfi_nic
finish
