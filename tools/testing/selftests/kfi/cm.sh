#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Connections of the `rdma` crate, without kfabric: kfi_cm.ko (cm/), over a device that has addresses of
# its own, since the connection manager doesn't run over loopback addresses.

. "$(dirname "$0")/lib.sh"

modprobe -a dummy rdma_rxe rdma_cm 2>/dev/null
ip link add kfi_cm1 type dummy &&
	ip address add 192.0.2.1/24 dev kfi_cm1 &&
	ip link set kfi_cm1 up &&
	ip link add kfi_cm0 type dummy &&
	ip address add 198.51.100.1/24 dev kfi_cm0 &&
	ip address add 2001:db8::1/64 dev kfi_cm0 nodad &&
	ip link set kfi_cm0 mtu 9000 up &&
	rdma link add rxe_cm type rxe netdev kfi_cm0 || exit
trap 'rdma link delete rxe_cm; ip link delete kfi_cm0; ip link delete kfi_cm1' EXIT

run_module kfi_cm cm
