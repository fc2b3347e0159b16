#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Allocations that fail, one after the other.  The suite makes its own task's fail; this
# script lets them: allocations that may sleep are left alone otherwise.

. "$(dirname "$0")/lib.sh"

debug=/sys/kernel/debug
[ -d $debug/failslab ] || mount -t debugfs debugfs $debug 2>/dev/null
if [ ! -d $debug/failslab ] || [ ! -d $debug/fail_page_alloc ]; then
	plan 1
	skip faults "the kernel has no failslab or fail_page_alloc in debugfs"
	finish
fi

# set NAME VALUE, and put it back at the end
set_to()
{
	[ -e "$debug/$1" ] || return 0
	undo="$undo echo $(cat "$debug/$1") >$debug/$1;"
	echo "$2" >"$debug/$1"
}

undo=
trap 'eval "$undo"' EXIT
for i in failslab fail_page_alloc; do
	set_to $i/ignore-gfp-wait N
	set_to $i/verbose 0
	# Nothing fails but what the suite asks for.
	set_to $i/probability 0
done
set_to fail_page_alloc/min-order 0
run_suite faults
