#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Calls that may sleep, by a task that is not TASK_RUNNING: the same cases over each provider.

. "$(dirname "$0")/lib.sh"

result=0
if tests_loop; then
	loaded kfi_loop || { load kfi_loop && loaded_here=kfi_loop; } || exit
	run_module kfi_selftest states_loop suite=states provider=loop address=192.0.2.1 || result=$?
	unload $loaded_here || exit
fi

trap ep_device_down EXIT
ep_device_up &&
	run_module kfi_selftest states_verbs suite=states provider=verbs address=$ep_address || result=$?
exit $result
