#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Connections of the `rdma` crate, without kfabric: kfi_cm.ko (cm/), over a device that has addresses of
# its own, since the connection manager doesn't run over loopback addresses. Then the device goes while
# there are connections, which are ended in time, or late.

. "$(dirname "$0")/lib.sh"

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

trap 'ep_device_down; ip link delete kfi_cm1; rm -rf "$tmp"' EXIT
# An address that no RDMA device has, too.
modprobe dummy 2>/dev/null
ip link add kfi_cm1 type dummy &&
	ip address add 192.0.2.1/24 dev kfi_cm1 &&
	ip link set kfi_cm1 up && ep_device_up || exit

device() { [ -d /sys/class/infiniband/$ep_device ]; }
device_gone() { ! device; }
# The log has had the line once since the mark.
said() { [ "$(since_mark | grep -c "^kfi_cm: $1\$")" = 1 ]; }

plan 11
# shellcheck disable=SC2046
run_module kfi_cm cm $([ $ep_netdev != ib0 ] || echo ipoib=1) >"$tmp/cases"
passed=$?
sed 's/^/    /' "$tmp/cases"
check cm.cases [ $passed = 0 ]

# As a client of the device, which ends all before the connection manager would.
mark_log
check cm.client.holds load kfi_cm hold=2
check cm.client.device_goes ep_device_remove
check cm.client.ended said "ended in time: Ok(())"
check cm.client.unload rmmod kfi_cm

# By nobody: the removal waits until the module goes.
mark_log
check cm.late.holds eval 'ep_device_add && load kfi_cm hold=1'
ep_device_remove &
sleep 3
check cm.late.waits device
check cm.late.unload rmmod kfi_cm
check cm.late.device_goes wait_for 60 device_gone
wait
check cm.late.told said "told: Ok(())"
check cm.late.ended said "ended late: Ok(())"
finish
