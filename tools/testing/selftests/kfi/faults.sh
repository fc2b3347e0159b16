#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Allocations that fail, one after the other, or all of them.  The suite makes its own task's fail; this
# script lets them: allocations that may sleep are left alone otherwise.

. "$(dirname "$0")/lib.sh"

allow_faults || {
	plan 1
	skip faults "the kernel has no failslab or fail_page_alloc in debugfs"
	finish
}
trap 'forbid_faults; ep_device_down 2>/dev/null' EXIT
result=0
run_suite faults || result=$?
if tests_loop; then
	loaded kfi_loop || { load kfi_loop && loaded_here=kfi_loop; } || exit
	run_module kfi_selftest ep_faults_loop suite=ep_faults provider=loop address=192.0.2.1 || result=$?
	unload $loaded_here || exit
fi
ep_device_up &&
	run_module kfi_selftest ep_faults_verbs suite=ep_faults provider=verbs address=$ep_address ||
	result=$?
exit $result
