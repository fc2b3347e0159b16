#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Memory that can't be registered, and memory that must be: over each provider, and as the memory of transfers.
# The script keeps hot-added memory offline for the suites.

. "$(dirname "$0")/lib.sh"

auto=/sys/devices/system/memory/auto_online_blocks
before=$(cat $auto 2>/dev/null)
hotplug=0
[ -z "$before" ] || ! echo offline >$auto || hotplug=1
clean_up()
{
	[ $hotplug = 0 ] || echo "$before" >$auto
	ep_device_down
} 2>/dev/null
trap clean_up EXIT
# Caches hold objects of KFENCE, which has few, and goodmem.kfence needs some.
[ ! -d /sys/module/kfence ] || echo 2 >/proc/sys/vm/drop_caches

result=0
# over NAME PARAMETER=VALUE ...: the suites, by these
over()
{
	_by=$1
	shift
	for _each in badpages badmem badruns goodmem; do
		run_module kfi_selftest "${_each}_$_by" suite=$_each hotplug=$hotplug "$@" || result=$?
	done
}

for suite in badpages goodmem; do
	run_suite $suite hotplug=$hotplug || result=$?
done
if tests_loop; then
	loaded kfi_loop || { load kfi_loop && loaded_here=kfi_loop; } || exit
	over loop provider=loop
	over loop_transfers provider=loop transfers=1
	unload $loaded_here || exit
fi
ep_device_up &&
	over verbs_transfers provider=verbs transfers=1 domain=$ep_device address=$ep_address || result=1
exit $result
