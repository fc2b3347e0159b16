#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Each refusal has a reason that can be seen: the event kfi:kfi_refused.  The suites of refusals
# count the refusals with each errno.  There must be as many events, whether the API's headers,
# the core or the provider refused.

. "$(dirname "$0")/lib.sh"

suites="slots errors segments badmem badruns order"
tracing=/sys/kernel/tracing

tests_loop && plan 15 || plan 14
[ -e $tracing/trace ] || mount -t tracefs tracefs $tracing 2>/dev/null
if [ ! -e $tracing/events/kfi/kfi_refused ]; then
	if [ -e $tracing/trace ]; then
		fail trace.event "the core has no event kfi:kfi_refused"
	else
		skip_rest "the kernel has no tracefs" trace.event $suites trace.index \
			  trace.headers trace.not_served trace.getinfo trace.driver \
			  trace.busy trace.ep_loop trace.ep_verbs
	fi
	finish
fi
pass trace.event

event=$tracing/events/kfi/kfi_refused
size=$(cat $tracing/buffer_size_kb)
echo 4096 >$tracing/buffer_size_kb
echo 1 >$event/enable

# enough SUITE: the events in $events are those of the results in $results
enough()
{
	echo "$results" | sed -n 's/^# refused \(-[0-9]*\) \([0-9]*\)$/\1 \2/p' >"$tmp"
	[ -s "$tmp" ] || { echo "the suite has counted nothing"; return 1; }
	_rc=0
	while read -r errno wanted; do
		seen=$(echo "$events" | grep -c "err=$errno why='..*'")
		[ "$seen" -ge "$wanted" ] && continue
		echo "$1: $wanted refusals with $errno, but $seen events"
		_rc=1
	done <"$tmp"
	return $_rc
}

tmp=$(mktemp) || exit 1
trap 'rm -f "$tmp"' EXIT
all=
for suite in $suites; do
	echo >$tracing/trace
	results=$(run_suite $suite)
	events=$(grep kfi_refused: $tracing/trace)
	check trace.$suite enough $suite
	all="$all
$events"
done
# The offending segment is named: the suite has rows where the last of four is bad.
last_named() { echo "$all" | grep -q 'index=3 value=0x[1-9a-f]'; }
check trace.index last_named
# Calls that the headers refuse before the core, and calls that nothing serves.
said() { echo "$all" | grep -q "err=$1 why='$2'"; }
by_headers() { said -22 "output pointer is NULL" && said -22 "not a domain"; }
check trace.headers by_headers
not_served() { said -38 "the provider doesn't have this call"; }
check trace.not_served not_served
# A provider that has nothing for somebody says what its offers lack.
echo >$tracing/trace
run_suite negotiate >/dev/null
all=$(grep kfi_refused: $tracing/trace)
nothing_found()
{
	for what in "there is no such provider" "caps: these bits" "mr_mode: agreement to KFI_MR_VIRT_ADDR and KFI_MR_PROV_KEY" \
		    "a domain of that name"; do
		said -61 "$what" || { echo "nobody said: $what"; return 1; }
	done
}
check trace.getinfo nothing_found
# The value is the driver's error.
echo >$tracing/trace
mark_log
run_suite queue >/dev/null
all=$(grep kfi_refused: $tracing/trace)
value() { echo "$all" | grep -q "err=$1 why='$2'.* value=$3\$"; }
by_driver()
{
	value -5 "the device didn't take the work request" 0x16 &&
		value -12 "no memory for the work request" 0xc &&
		value -5 "the device didn't complete the work request in time" 0x0 &&
		value -5 "the device didn't complete a request for the domain in time" 0x6e || return
	# Each late request is in the log once, as a late one and not as one that was flushed.
	log=$(since_mark)
	! echo "$log" | grep "registration queue replaced: flushed" &&
		echo "$log" | grep -q "registration queue replaced: a work request did not complete in time" &&
		[ "$(echo "$log" | grep -c 'registering a region: a work request did not complete in time$')" = 0 ]
}
check trace.driver by_driver
# An object that can't be closed says what is open in it.
echo >$tracing/trace
run_suite lifetime >/dev/null
all=$(grep kfi_refused: $tracing/trace)
busy()
{
	for what in "a memory region is open in it" "a domain is open in it"; do
		said -16 "$what" || { echo "nobody said: $what"; return 1; }
	done
}
check trace.busy busy

# Transfers that can't be posted on an endpoint.
on_endpoints()
{
	echo >$tracing/trace
	results=$(run_suite ep_errors provider="$1" address="$2") || return
	events=$(grep kfi_refused: $tracing/trace)
	enough "$1"
}
if tests_loop; then
	loaded kfi_loop || { load kfi_loop && loaded_here=kfi_loop; } || exit
	check trace.ep_loop on_endpoints loop 192.0.2.1
	unload $loaded_here
fi
ep_device_up
check trace.ep_verbs on_endpoints verbs $ep_address
ep_device_down

echo 0 >$event/enable
echo >$tracing/trace
echo "$size" >$tracing/buffer_size_kb 2>/dev/null
finish
