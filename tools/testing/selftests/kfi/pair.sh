#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Connections between two modules: a server, kfi_pair_server.ko, and suites of kfi_selftest.ko,
# which verify all that is transferred at both sides.  In one kernel, over each provider; that of RDMA
# gets a device with addresses of its own, since the connection manager doesn't run over loopback
# addresses.  Or between two kernels, over the link that tools/vm/pair has made: there the server is
# killed, too, and the link cut.

. "$(dirname "$0")/lib.sh"

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# serve PROVIDER ADDRESS ...
serve()
{
	load kfi_pair_server provider="$1" address="$2,$3"
}

# The server's verdict on the clients' bytes.
content() { [ "$(cat /sys/module/kfi_pair_server/parameters/failures)" = 0 ]; }

# client NAME SUITE PROVIDER ADDRESS: one result, and its cases below it
client()
{
	run_module kfi_selftest "$2" suite="$2" provider="$3" peer="$4" >"$tmp/cases"
	_passed=$?
	sed 's/^/    /' "$tmp/cases"
	check "$1" [ $_passed = 0 ]
}

# over PROVIDER ADDRESS ADDRESS: both sides in this kernel
over()
{
	check pair.$1.serve serve "$@"
	client pair.$1.ipv4 pair "$1" "$2"
	client pair.$1.ipv6 pair "$1" "$3"
	check pair.$1.content content
	check pair.$1.unload rmmod kfi_pair_server
}

one_kernel()
{
	if tests_loop; then
		loaded kfi_loop || { load kfi_loop && loaded_here=kfi_loop; } || exit
		plan 10
		over loop 192.0.2.1 2001:db8::1
		unload $loaded_here || exit
	else
		plan 5
	fi

	trap 'ep_device_down; rm -rf "$tmp"' EXIT
	ep_device_up && over verbs $ep_address $ep_address6
}

# It comes here once more when it has been killed.
server()
{
	plan 3
	check pair.serve serve verbs "$KFI_ADDRESS" "$KFI_ADDRESS6"
	meet 1
	meet 2
	check pair.content content
	check pair.unload rmmod kfi_pair_server
}

# rxe puts a queue pair in error that has a packet to send while there is no carrier.  That
# includes the one that connections are made with, which nobody mends.  So the device is made
# again.
remade() { rdma link delete rxe0 && rdma link add rxe0 type rxe netdev eth0; }

carrier() { [ "$(cat /sys/class/net/eth0/carrier)" = "$1" ]; }

client_of_two()
{
	plan 11
	meet 1
	client pair.ipv4 pair verbs "$KFI_PEER"
	client pair.ipv6 pair verbs "$KFI_PEER6"
	# While nothing is sent.
	echo "pair: link down"
	check pair.cut wait_for 120 carrier 0
	echo "pair: link up"
	check pair.mended wait_for 120 carrier 1
	client pair.uncut pair verbs "$KFI_PEER"
	client pair.killed killed verbs "$KFI_PEER"
	echo "pair: restart peer"
	meet 1
	client pair.again pair verbs "$KFI_PEER"
	# Under load.
	client pair.loaded cut verbs "$KFI_PEER"
	check pair.back wait_for 120 carrier 1
	check pair.remade remade
	client pair.after pair verbs "$KFI_PEER"
	meet 2
}

case $KFI_ROLE in
server) server ;;
client) client_of_two ;;
*) one_kernel ;;
esac
finish
