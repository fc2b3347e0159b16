#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Allocations that fail, one after the other, or all of them.  The suite makes its own task's fail; this
# script lets them: allocations that may sleep are left alone otherwise.

. "$(dirname "$0")/lib.sh"

debug=/sys/kernel/debug
[ -d $debug/failslab ] || mount -t debugfs debugfs $debug 2>/dev/null
if [ ! -d $debug/failslab ] || [ ! -d $debug/fail_page_alloc ]; then
	plan 1
	skip faults "the kernel has no failslab or fail_page_alloc in debugfs"
	finish
fi

# set NAME VALUE, and put it back at the end, what was set last first
set_to()
{
	[ -e "$debug/$1" ] || return 0
	undo="echo $(cat "$debug/$1") >$debug/$1; $undo"
	echo "$2" >"$debug/$1"
}

undo=
trap 'eval "$undo"; ep_device_down 2>/dev/null' EXIT
for i in failslab fail_page_alloc; do
	set_to $i/ignore-gfp-wait N
	set_to $i/verbose 0
	# Nothing fails but what the suite asks for: the n-th allocation, or all of a task that
	# is marked.
	set_to $i/task-filter Y
	set_to $i/times -1
	set_to $i/probability 100
done
set_to fail_page_alloc/min-order 0
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
