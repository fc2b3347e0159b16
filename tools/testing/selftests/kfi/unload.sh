#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Modules are unloaded in every order that their users allow, and in no other.

. "$(dirname "$0")/lib.sh"

plan 25
param=/sys/module/kfi_holder/parameters
holder() { load kfi_holder ${KFI_DOMAIN:+domain=$KFI_DOMAIN} "$@"; }
command() { echo "$1" >$param/command; }
fresh() { unload kfi_holder kfi_verbs kfabric && load kfabric && load kfi_verbs; }

check unload.fresh fresh
refused unload.core_under_provider rmmod kfabric

# An open object keeps its provider, and through it the core.
for depth in fabric domain regions; do
	check unload.$depth.open holder depth=$depth
	refused unload.$depth.provider rmmod kfi_verbs
	refused unload.$depth.core rmmod kfabric
	check unload.$depth.consumer rmmod kfi_holder
done

# Under load as well, and the load goes on.
goes_on()
{
	holder threads=2 regions=8 || return
	for _ in 1 2 3 4 5; do
		! rmmod kfi_verbs 2>/dev/null || return
		sleep 0.1 2>/dev/null || sleep 1
	done
	before=$(cat $param/rounds)
	sleep 1
	[ "$(cat $param/rounds)" -gt "$before" ] && [ "$(cat $param/unexpected)" = 0 ] &&
		rmmod kfi_holder
}
check unload.under_load goes_on

# The provider goes while a consumer that has nothing open stays, and comes back to it.
idle_consumer()
{
	holder depth=regions && command close && rmmod kfi_verbs &&
	! command open 2>/dev/null && load kfi_verbs && command open && command close
}
check unload.provider_first idle_consumer
refused unload.core_under_consumer rmmod kfabric
check unload.consumer_then_core unload kfi_holder kfi_verbs kfabric

# Without the core there is no provider.  (modprobe would load the core first.)
without_core() { [ -n "$KFI_MODULES" ] && load kfi_verbs; }
if [ -n "$KFI_MODULES" ]; then
	refused unload.provider_without_core without_core
else
	skip unload.provider_without_core "modprobe loads what a module needs"
fi

# A driver whose provider is found by its name has that loaded.
brings_provider() { unload kfi_verbs && modprobe kfi_nvme && loaded kfi_verbs && rmmod kfi_nvme; }
if [ -z "$KFI_MODULES" ]; then
	check unload.brings_provider brings_provider
else
	skip unload.brings_provider "insmod loads nothing else"
fi

# Again and again, with something open in between.
again()
{
	for _ in 1 2 3 4 5; do
		load kfabric && load kfi_verbs && holder depth=regions && rmmod kfi_holder &&
		rmmod kfi_verbs && rmmod kfabric || return
	done
}
check unload.again again

# While another module is unloaded, the core's notifier may be running, which flushes the core's
# workqueues. Both rmmod and insmod of the core wait for that, and the workqueues are there meanwhile.
going=/sys/module/kfi_going/parameters
QUEUES=4
queues() { cat /proc/[0-9]*/comm 2>/dev/null | grep -c '^kworker/R-kfi_'; }
is_held() { [ "$(cat $going/held)" = Y ]; }
registers() { cat /proc/[0-9]*/stack 2>/dev/null | grep -q 'register_module_notifier\|chain_.*register'; }
# meanwhile COMMAND ...: loads or unloads the core while another module is being unloaded.
meanwhile()
{
	need kfi_noio && load kfi_going victim=kfi_noio || return
	rmmod kfi_noio &
	_rmmod=$!
	wait_for 60 is_held || { echo "kfi_noio is not being unloaded"; return 1; }
	"$@" &
	_core=$!
	wait_for 60 registers || echo "not held up: $*"
	_found=$(queues)
	echo N >$going/hold
	wait $_core && wait $_rmmod && rmmod kfi_going && load kfi_noio || return
	has_queues "$_found"
}
has_queues()
{
	[ "$1" = $((QUEUES + others)) ] || { echo "$1 workqueues, expected $((QUEUES + others))"; return 1; }
}
only_core()
{
	unload kfi_holder kfi_verbs kfabric && load kfabric && has_queues "$(queues)"
}
# The core is not there. The model of a device has some, too.
others=$(queues)
check unload.meanwhile.ready only_core
check unload.meanwhile.unload meanwhile rmmod kfabric
check unload.meanwhile.load meanwhile load kfabric

check unload.reload fresh
finish
