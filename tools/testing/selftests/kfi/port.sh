#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The port beneath an open domain changes: its network device gets another MAC address, so
# all of its GIDs are others, and it goes down.  An open domain keeps no GID from coming
# back, and goes on registering.

. "$(dirname "$0")/lib.sh"

names="port.open port.busy port.change port.gid port.again port.one_gid port.one_gid_back
	port.close port.down port.weak_fence"
plan 10

link=rxe_kfi dev=kfi_dummy
[ -z "$KFI_NIC" ] || link=$ep_device dev=$ep_netdev
gids=/sys/class/infiniband/$link/ports/1/gids
param=/sys/module/kfi_holder/parameters
get() { cat $param/$1; }

has_gid() { grep -qs "$1" $gids/*; }
link_up()
{
	if [ -n "$KFI_NIC" ]; then
		nic_up && ip addr flush dev $dev
	else
		ip link add $dev type dummy
	fi || return
	ip link set $dev address 02:00:00:00:00:01 || return
	ip addr add 192.0.2.1/24 dev $dev
	ip link set $dev up || return
	[ -n "$KFI_NIC" ] || rdma link add $link type rxe netdev $dev || return
	wait_for 60 has_gid ffff:c000:02
}
link_down()
{
	if [ -n "$KFI_NIC" ]; then
		# It comes back with other addresses.
		ep_device_remove
		return
	fi
	[ ! -d /sys/class/infiniband/$link ] || rdma link delete $link
	[ ! -d /sys/class/net/$dev ] || ip link delete $dev
}

# The default GID is made of the MAC address and has the first place.
default_gid() { [ "$(cat $gids/0)" = fe80:0000:0000:0000:0000:00ff:fe00:00$1 ]; }
mac() { ip link set $dev address 02:00:00:00:00:$1; }
went_on()
{
	_rounds=$(get rounds)
	wait_for 120 more && [ "$(get unexpected)" = 0 ]
}
more() { [ "$(get rounds)" -gt $((_rounds + 20)) ]; }

# One thread, and no peer: that would hold an address itself.
open_domain() { load kfi_holder domain=$link regions=4 threads=1 peer=0; }
busy() { went_on; }
change() { default_gid 01 && mac 02; }
gid_back() { wait_for 120 default_gid "$1" || { cat $gids/0; return 1; }; }
same_gids() { default_gid 02 && has_gid ffff:c000:02; }
# The domain's own addresses are all that there is: only the default one.
only_default()
{
	[ ! -d /proc/sys/net/ipv6/conf/$dev ] || echo 1 >/proc/sys/net/ipv6/conf/$dev/disable_ipv6
	ip addr flush dev $dev
	wait_for 60 no_other && wait_for 20 moved && went_on
}
# The holder of the address has let go of it.
moved() { dmesg | grep -qF "$link: registration queue replaced: its port or address"; }
no_other() { ! grep -v 0000:0000:0000:0000:0000:0000:0000:0000 $gids/[1-9]* >/dev/null 2>&1; }
change_again() { mac 03 && gid_back 03 && went_on; }
close_domain() { [ "$(get unexpected)" = 0 ] && unload kfi_holder; }
# A domain can't be opened on a port that is down.
refused_down()
{
	ip link set $dev down || return
	wait_for 60 is_down
	! open_domain 2>/dev/null || return
	kernel_log | tail -n 20 | grep -q 'kfi_holder: open: -100$'
}
is_down() { ! grep -q ACTIVE /sys/class/infiniband/$link/ports/1/state; }
weak_fence()
{
	ip link set $dev up && ip addr add 192.0.2.1/24 dev $dev && wait_for 60 has_gid ffff:c000:02 &&
		unload kfi_verbs && load kfi_verbs weak_fence=1 || return
	_said=$(KFI_WEAK=1 KFI_DOMAIN=$link run_suite queue)
	_status=$?
	[ $_status = 0 ] || echo "$_said"
	unload kfi_verbs && load kfi_verbs && return $_status
}

if [ -n "$KFI_NIC" ]; then
	# The model has all that is needed.
	link_up || exit
elif ! link_up 2>/dev/null; then
	link_down 2>/dev/null
	skip_rest "no dummy netdev with rxe on it" $names
	finish
fi
check port.open open_domain
check port.busy busy
check port.change change
check port.gid gid_back 02
check port.again went_on
check port.one_gid only_default
check port.one_gid_back change_again
check port.close close_domain
check port.down refused_down
check port.weak_fence weak_fence
link_down
finish
