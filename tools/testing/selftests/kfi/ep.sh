#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Connected endpoints: the same cases over each provider that has some.  Then a device goes while there
# are connections.  Where an invalidation is the fence (KFI_WEAK), only what regions have to do with that.

. "$(dirname "$0")/lib.sh"

result=0
if [ "$KFI_WEAK" = 1 ]; then
	trap ep_device_down EXIT
	ep_device_up &&
		run_module kfi_selftest ep_fence suite=ep_fence provider=verbs address=$ep_address
	exit
fi
if tests_loop; then
	loaded kfi_loop || { load kfi_loop && loaded_here=kfi_loop; } || exit
	run_module kfi_selftest ep suite=ep provider=loop address=192.0.2.1 || result=$?
	run_module kfi_selftest ep_errors suite=ep_errors provider=loop address=192.0.2.1 || result=$?
	unload $loaded_here || exit
fi

trap ep_device_down EXIT
in_use() { cat /sys/module/kfi_verbs/refcnt; }
before=$(in_use)
ep_device_up &&
	run_module kfi_selftest ep_verbs suite=ep provider=verbs address=$ep_address || result=$?
# Nothing of it keeps the provider.
echo "1..1"
check ep_verbs.nothing_left test "$(in_use)" = "$before"
[ $ktap_failed = 0 ] || result=1

run_module kfi_selftest ep_errors suite=ep_errors provider=verbs address=$ep_address || result=$?
run_module kfi_selftest ep_driver suite=ep_driver provider=verbs address=$ep_address || result=$?
[ "$(verbs_column)" != fenced ] ||
	run_module kfi_selftest ep_fence suite=ep_fence provider=verbs address=$ep_address || result=$?

# Modules can't be unloaded while they are needed; the module of the test goes as soon as it has run.
unload_ready() { since_mark | grep -q 'ready for modules to be unloaded'; }
mark_log
{ ! wait_for 60 unload_ready || rmmod kfi_verbs || rmmod kfabric ||
	echo 1 >/sys/module/kfi_selftest/parameters/go; } 2>/dev/null &
run_module kfi_selftest ep_unload suite=ep_unload provider=verbs address=$ep_address || result=$?
wait

# The device goes when the case says so.
ready() { since_mark | grep -q 'ready for the device to go'; }
mark_log
{ ! wait_for 60 ready || ep_device_remove; } &
run_module kfi_selftest ep_gone suite=ep_gone provider=verbs address=$ep_address || result=$?
wait
exit $result
