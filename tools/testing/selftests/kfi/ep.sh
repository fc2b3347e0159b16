#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Connected endpoints: the same cases over each provider that has some. That of RDMA gets a device with
# an address of its own, since the connection manager doesn't run over loopback addresses.

. "$(dirname "$0")/lib.sh"

result=0
loaded kfi_loop || { load kfi_loop && loaded_here=kfi_loop; } || exit
run_module kfi_selftest ep suite=ep provider=loop address=192.0.2.1 || result=$?
unload $loaded_here || exit

modprobe -a dummy rdma_rxe rdma_cm 2>/dev/null
ip link add kfi_ep0 type dummy &&
	ip address add 198.51.100.1/24 dev kfi_ep0 &&
	ip link set kfi_ep0 mtu 9000 up || exit
trap 'rdma link delete rxe_ep 2>/dev/null; ip link delete kfi_ep0' EXIT
rdma link add rxe_ep type rxe netdev kfi_ep0 &&
	run_module kfi_selftest ep_verbs suite=ep provider=verbs address=198.51.100.1 || result=$?

# The device goes when the case says so.
ready() { [ "$(kernel_log | grep -c 'ready for the device to go')" -gt "$before" ]; }
before=$(kernel_log | grep -c 'ready for the device to go')
{ ! wait_for 60 ready || rdma link delete rxe_ep; } &
run_module kfi_selftest ep_gone suite=ep_gone provider=verbs address=198.51.100.1 || result=$?
wait
exit $result
