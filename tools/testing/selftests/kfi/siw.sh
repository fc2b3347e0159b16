#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Connected endpoints over iWARP, where regions are registered on endpoints only: siw, over a device that has
# addresses of its own. It is served with weak_fence=1 only.

. "$(dirname "$0")/lib.sh"

if [ -n "$KFI_NIC" ]; then
	if [ "$(verbs_column)" = iwarp ]; then
		ep_device_up && run_module kfi_selftest siw suite=siw iwarp=1 provider=verbs address=$ep_address
		exit
	fi
	plan 1
	skip siw "the device is no iWARP one"
	finish
fi
if ! modprobe siw 2>/dev/null; then
	plan 1
	skip siw "the kernel has no siw"
	finish
	exit
fi
modprobe -a dummy rdma_cm iw_cm 2>/dev/null
device_up()
{
	ip link add kfi_siw0 type dummy &&
		ip address add 203.0.113.1/24 dev kfi_siw0 &&
		ip link set kfi_siw0 up &&
		rdma link add siw_ep type siw netdev kfi_siw0
}
device_down()
{
	rdma link delete siw_ep && ip link delete kfi_siw0
}
not_served() { mark_log && device_up && device_down && ! since_mark | grep "kfi_verbs: siw_ep: ready"; }
cases()
{
	{ run_module kfi_selftest siw suite=siw iwarp=1 provider=verbs address=203.0.113.1
	  echo $? >"$tmp"; } | sed 's/^/    /'
	return "$(cat "$tmp")"
}
tmp=$(mktemp) || exit 1
trap 'rm -f "$tmp"' EXIT

plan 4
check siw.not_served not_served
check siw.load eval 'unload kfi_verbs && load kfi_verbs weak_fence=1 && device_up'
if cases; then pass siw.cases; else fail siw.cases; fi
check siw.back eval 'device_down && unload kfi_verbs && load kfi_verbs weak_fence=${KFI_WEAK:-0}'
finish
