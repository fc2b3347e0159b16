#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Connected endpoints over each provider that has some.

. "$(dirname "$0")/lib.sh"

loaded kfi_loop || { load kfi_loop && loaded_here=kfi_loop; } || exit
run_module kfi_selftest ep suite=ep provider=loop address=192.0.2.1
result=$?
unload $loaded_here || exit
exit $result
