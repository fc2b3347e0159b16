#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Registering on the way of freeing memory: the suite over both providers, whose every
# allocation is watched, and a consumer in Rust, which loads if it doesn't wait for I/O.

. "$(dirname "$0")/lib.sh"

loaded kfi_loop || { load kfi_loop && loaded_here=kfi_loop; } || exit
run_suite noio
result=$?
unload $loaded_here || exit
if ! load kfi_noio_rs; then
	echo "# the consumer in Rust failed, see the kernel's log"
	exit 1
fi
unload kfi_noio_rs && exit $result
