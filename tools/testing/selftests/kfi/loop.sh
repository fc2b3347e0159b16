#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The suite over the loopback provider, which nothing else here needs to be loaded.

. "$(dirname "$0")/lib.sh"

loaded kfi_loop || { load kfi_loop && loaded_here=kfi_loop; } || exit
run_suite loop provider=loop
result=$?
unload $loaded_here || exit
exit $result
