#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The behaviour of hardware only, over the model NIC (KFI_NIC): the suite hardware, and a device
# with two ports.  The first port is down, goes down under load, or comes up again.

. "$(dirname "$0")/lib.sh"

files=/sys/kernel/debug/kfi_nic/knic0
param=/sys/module/kfi_holder/parameters
names="hardware.suite hardware.second_port hardware.rights hardware.endpoints hardware.gid_back
	hardware.first_port_back hardware.port_lost hardware.closed"

get() { cat $param/$1; }
more() { [ "$(get rounds)" -gt $((_rounds + 20)) ]; }
went_on()
{
	_rounds=$(get rounds)
	wait_for 120 more && [ "$(get unexpected)" = 0 ]
}
state_is() { grep -q "$2" /sys/class/infiniband/knic0/ports/$1/state; }
has_gid() { grep -qs "$1" /sys/class/infiniband/knic0/ports/$2/gids/*; }

# A port of Ethernet is up if its netdev is, one of InfiniBand unless it was taken down.
is_ethernet() { [ -e /sys/class/net/knic0p1 ]; }
up()
{
	if is_ethernet; then
		ip link set knic0p$1 up && ip address add 192.0.2.$1/24 dev knic0p$1 &&
			wait_for 60 has_gid ffff:c000:020$1 $1
	else
		echo $1 >$files/port_up
	fi && wait_for 60 state_is $1 ACTIVE
}
two_ports()
{
	unload kfi_verbs kfi_nic && load kfi_nic $KFI_NIC ports=2 && up 2 || return
	is_ethernet || echo 1 >$files/port_down
	state_is 1 DOWN && load kfi_verbs
}
rights()
{
	_said=$(run_suite rights)
	_status=$?
	[ $_status = 0 ] || echo "$_said"
	return $_status
}
# Connections over the address of the second port. InfiniBand's addresses are those of IPoIB.
endpoints()
{
	_said=$(run_module kfi_selftest ep_fence suite=ep_fence provider=verbs address=192.0.2.2)
	_status=$?
	[ $_status = 0 ] || echo "$_said"
	return $_status
}
# The second port's only GID becomes another one, which can't be made while the domain holds the one before.
no_other() { ! grep -v 0000:0000:0000:0000:0000:0000:0000:0000 /sys/class/infiniband/knic0/ports/2/gids/[1-9]* \
	>/dev/null 2>&1; }
moved() { dmesg | grep -qF "knic0: registration queue replaced: its port or address"; }
gid_back()
{
	[ ! -d /proc/sys/net/ipv6/conf/knic0p2 ] || echo 1 >/proc/sys/net/ipv6/conf/knic0p2/disable_ipv6
	ip addr flush dev knic0p2
	wait_for 60 no_other && wait_for 20 moved && went_on && ip link set knic0p2 address 02:00:00:00:02:02 &&
		wait_for 60 has_gid 0000:00ff:fe00:0202 2 && went_on && ip address add 192.0.2.2/24 dev knic0p2
}
hold() { load kfi_holder domain=knic0 regions=4 threads=1 peer=0 && went_on; }
# The domain goes on over the port that it has.
first_back()
{
	up 1 && went_on
}
# That port goes down: the domain follows to the other one.
lost()
{
	echo 2 >$files/port_down && wait_for 60 state_is 2 DOWN && went_on
}
closed() { [ "$(get unexpected)" = 0 ] && unload kfi_holder; }
back()
{
	unload kfi_holder kfi_verbs kfi_nic && nic_up && load kfi_verbs
}

plan 8
if [ -z "$KFI_NIC" ]; then
	skip_rest "no model NIC" $names
	finish
fi
case $(verbs_column) in
iwarp) skip_rest "the registration queue does not run over iWARP" $names; finish ;;
esac
tmp=$(mktemp) || exit 1
trap 'rm -f "$tmp"' EXIT
{ run_suite hardware; echo $? >"$tmp"; } | sed 's/^/    /'
check hardware.suite [ "$(cat "$tmp")" = 0 ]
check hardware.second_port two_ports
check hardware.rights rights
if is_ethernet; then
	check hardware.endpoints endpoints
else
	skip hardware.endpoints "the addresses are those of IPoIB"
fi
hold || echo "# the holder did not begin"
if is_ethernet; then
	check hardware.gid_back gid_back
else
	skip hardware.gid_back "a port of InfiniBand has no network device"
fi
check hardware.first_port_back first_back
check hardware.port_lost lost
check hardware.closed closed
back || ktap_failed=1
finish
