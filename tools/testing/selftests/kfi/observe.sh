#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The command kfi: offers, open objects and refusals, as root and as another user sees them. The
# objects are those of kfi_holder.

. "$(dirname "$0")/lib.sh"

names="info.providers info.one info.limits list.regions list.table list.parents list.class list.keys
	list.nobody trace.refusal trace.ends trace.reader trace.nobody latency usage"
for _of in loop verbs; do
	[ $_of = loop ] && ! tests_loop ||
		names="$names $_of.suite $_of.classes $_of.regions $_of.transfers $_of.connections $_of.refusals $_of.numbers $_of.stats $_of.stats_json"
done
names="$names verbs.pool verbs.reuse_suite verbs.reuse_regions verbs.reuse_list verbs.reuse_stats many.list many.changes many.watch"
[ -n "$KFI_NIC" ] || names="$names verbs.pool_stays"
names="$names events_off slow_close closed unloaded"
# shellcheck disable=SC2086
set -- $names
plan $#

kfi=${KFI_COMMAND:-$(command -v kfi || echo /kfi/kfi)}
if [ ! -x "$kfi" ]; then
	# shellcheck disable=SC2046
	skip_rest "no command kfi: make kfi, and name it in KFI_COMMAND (tools/vm/run --file build/kfi)" \
		$(printf 'observe.%s ' "$@")
	finish
fi
instances=/sys/kernel/tracing/instances
[ -d $instances ] || mount -t tracefs tracefs /sys/kernel/tracing
tmp=$(mktemp -d) || exit 1
chmod 755 "$tmp"
regions=4

# value NAME: each value of that name in pretty JSON, one a line
value() { sed -n "s/^ *\"$1\": \"*\([^\",]*\)\"*,*$/\1/p"; }
# same EXPECTED ACTUAL
same() { [ "$1" = "$2" ] || { echo "expected:"; echo "$1"; echo "got:"; echo "$2"; return 1; }; }
# fails STATUS MESSAGE COMMAND ...: it fails with this status and this one line
fails()
{
	_status=$1 _message=$2
	shift 2
	_output=$("$@" 2>&1)
	same "$_status" $? && [ "$(echo "$_output" | wc -l)" = 1 ] && echo "$_output" | grep -q "$_message" ||
		{ echo "$*: $_output"; return 1; }
}
# Runs a command without any rights.
as_nobody()
{
	if setpriv --reuid=65534 true 2>/dev/null; then
		setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
	else
		su -s /bin/sh nobody -c "$*"
	fi
}
# A guest may have no users.
[ -e /etc/passwd ] || {
	printf 'root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n' >/etc/passwd
	users=/etc/passwd
}
# shellcheck disable=SC2086
trap 'kill $tracer 2>/dev/null; rm -rf "$tmp" $users' EXIT

loaded kfi_loop || { load kfi_loop && loop_here=kfi_loop; }
load kfi_holder ${KFI_DOMAIN:+domain=$KFI_DOMAIN} regions=$regions peer=0 || echo "# the holder did not begin"

info_providers()
{
	same "loop
verbs" "$("$kfi" info --json | value provider | sort -u)"
}
check observe.info.providers info_providers
info_one()
{
	same loop "$("$kfi" info -p loop --json | value provider | sort -u)" &&
		same "provider: loop" "$("$kfi" info --provider loop | grep provider: | sort -u)" &&
		fails 1 'no offer of a provider "nosuch"' "$kfi" info -p nosuch
}
check observe.info.one info_one
# The limits in kfi_loop(7).
info_limits()
{
	for _limit in mr_key_size:8 mr_iov_limit:65536 mr_cnt:16777216 max_msg_size:1073741824 inject_size:64 \
		      tx_attr.size:1024 rx_attr.size:1024 tx_attr.iov_limit:16 tx_attr.rma_iov_limit:16; do
		"$kfi" info -p loop -v | grep -qx " *${_limit%:*}: ${_limit#*:}" || { echo "no $_limit"; return 1; }
	done
	"$kfi" info -v -p loop | grep -q '^ *caps: .*KFI_MSG | KFI_RMA'
}
check observe.info.limits info_limits

# The holder's regions: of three pages, one more over a mapped list, and one of five pieces.
"$kfi" list mr --json >"$tmp/root"
page=$(getconf PAGESIZE 2>/dev/null || echo 4096)
lengths=$({ yes $((3 * page)) | head -n $((regions + 1)); echo 5000; } | sort)
exactly()
{
	same "$lengths" "$(value length <"$tmp/root" | sort)" || return
	for _of in class:mr owner:kfi_holder provider:verbs state:open; do
		same "$((regions + 2)) ${_of#*:}" \
			"$(value "${_of%:*}" <"$tmp/root" | sort | uniq -c | sed 's/^ *//')" || return
	done
	same "$((regions + 2))" "$(grep -c KFI_REMOTE_READ "$tmp/root")" &&
		same "$((regions + 2))" "$("$kfi" list mr | awk 'NR > 1 { print $2, $3 }' | sort -u | wc -l)"
}
check observe.list.regions exactly
in_a_table()
{
	"$kfi" list mr >"$tmp/table"
	head -n 1 "$tmp/table" | grep -q '^CLASS  *ID  *PARENT  *PROVIDER  *FABRIC  *DOMAIN  *OWNER  *STATE  *AGE  *LENGTH' &&
		same $((regions + 2)) "$(grep -c '^mr .* verbs .* kfi_holder .* open .* remote_read,remote_write$' "$tmp/table")" &&
		same $((regions + 3)) "$(wc -l <"$tmp/table")"
}
check observe.list.table in_a_table
# Two domains of one fabric. The regions are in the first one, and one is in the second.
parents()
{
	_fabric=$("$kfi" list fabric --json | value id)
	same "$_fabric
$_fabric" "$("$kfi" list domain --json | value parent)" || return
	_domains=$("$kfi" list domain --json | value id | sort)
	same "$_domains" "$(value parent <"$tmp/root" | sort -u)"
}
check observe.list.parents parents
of_class()
{
	same "[]" "$("$kfi" list pep --json)" && same "" "$("$kfi" list pep | sed 1d)" || return
	_all=$("$kfi" list --json | value class | sort | uniq -c | sed 's/^ *//')
	same "2 domain
1 fabric
$((regions + 2)) mr" "$_all"
}
check observe.list.class of_class
# Raw keys are longer. The others are those of the device.
keys()
{
	value key <"$tmp/root" | sort >"$tmp/keys"
	same $((regions + 1)) "$(uniq "$tmp/keys" | wc -l)" || return
	rdma resource show mr >"$tmp/mrs"
	while read -r _key; do
		grep -q "rkey $_key " "$tmp/mrs" || { echo "no device has $_key"; cat "$tmp/mrs"; return 1; }
	done <"$tmp/keys"
}
check observe.list.keys keys
# Nobody sees all the rest.
without_keys()
{
	as_nobody "$kfi" list mr --json >"$tmp/nobody" || return
	! grep '"key"' "$tmp/nobody" &&
		same "$(grep -v '"key"\|"age"' "$tmp/root")" "$(grep -v '"key"\|"age"' "$tmp/nobody")" &&
		! as_nobody "$kfi" list mr | grep KEY &&
		same "$("$kfi" info)" "$(as_nobody "$kfi" info)"
}
check observe.list.nobody without_keys

# tracer OPTION ...: begins to trace to $tmp/trace
tracer()
{
	"$kfi" trace "$@" >"$tmp/trace" 2>"$tmp/errors" &
	tracer=$!
	wait_for 30 traces
}
traces() { grep -qs 1 $instances/kfi-$tracer/events/kfi/kfi_refused/enable; }
# ends SIGNAL: it ends well, and leaves nothing behind.
ends()
{
	kill -"$1" $tracer
	wait $tracer
	same "$1 0" "$1 $?" && [ ! -e $instances/kfi-$tracer ] && same "" "$(cat "$tmp/errors")"
}
seen() { grep -q "$@" "$tmp/trace"; }
refusal()
{
	tracer --json || return
	run_suite negotiate >/dev/null
	_by='"errno":"ENODATA","call":"kfi_getinfo"'
	wait_for 30 seen "$_by,\"reason\":\"there is no such provider\"" &&
		wait_for 30 seen "$_by,\"provider\":\"verbs\",\"reason\":\"caps: these bits\",\"value\":[1-9]" &&
		seen '^{"time":[0-9.]*,"task":"[^"]*","pid":[0-9]*,"errno":' || { cat "$tmp/trace"; return 1; }
	ends TERM
}
check observe.trace.refusal refusal
interrupted() { tracer && ends INT && tracer && ends HUP; }
check observe.trace.ends interrupted
# Nobody reads what it prints, although nothing is refused.
without_reader()
{
	{ "$kfi" trace; echo $? >"$tmp/status"; } | true
	same 0 "$(cat "$tmp/status")" && [ -z "$(find $instances -maxdepth 1 -name "kfi-*")" ]
}
check observe.trace.reader without_reader
check observe.trace.nobody fails 1 'Permission denied.*run it as root' as_nobody "$kfi" trace

# The holder registers all its regions again. Compares the number of each domain, its registrations, and the sum of
# the rows.
measures() { grep -qs 1 $instances/kfi-$measure/events/kfi/kfi_mr_register/enable; }
latency()
{
	"$kfi" stats --latency >"$tmp/latency" 2>"$tmp/errors" &
	measure=$!
	_command=/sys/module/kfi_holder/parameters/command
	wait_for 30 measures && echo close >$_command && echo open >$_command || return
	kill $measure
	wait $measure
	same 0 $? && [ ! -e $instances/kfi-$measure ] && same "" "$(cat "$tmp/errors")" || return
	"$kfi" stats | awk '$1 == "domain" { id = $2 } $1 == "opened" && $2 { print id, $2, $2 }' >"$tmp/opened"
	[ "$(wc -l <"$tmp/opened")" = 2 ] && same "$(cat "$tmp/opened")" "$(awk '
		function domain() { if (id) print id, count, sum; sum = 0 }
		$1 == "domain" { domain(); id = $2 } $1 == "registrations" { count = $2 } $1 == "up" { sum += $5 }
		END { domain() }' "$tmp/latency")"
}
check observe.latency latency

usage()
{
	fails 2 "unknown class 'nosuch': give one of fabric, domain" "$kfi" list nosuch &&
		fails 2 "unknown command 'nosuch'" "$kfi" nosuch && fails 2 "'--nosuch'" "$kfi" list --nosuch &&
		fails 2 "'0'" "$kfi" stats --watch 0 && fails 2 "'0'" "$kfi" stats --latency 0 &&
		"$kfi" completion bash | grep -q '^ *complete .* kfi$'
}
check observe.usage usage
# observed SUITE PROVIDER ADDRESS: runs the suite with all events of kfi enabled, and the command before the suite
# closes its objects
ready() { since_mark | grep -q 'ready to be observed'; }
observed()
{
	mkdir $instances/kfi-observe && echo 1 >$instances/kfi-observe/events/kfi/enable || return
	mark_log
	run_suite "$1" provider="$2" address="$3" >"$tmp/result" &
	wait_for 60 ready && for _class in mr ep cq; do
		# The holder has other regions.
		"$kfi" list $_class | awk -v class=$_class -v by="^$provider " \
			'NR > 1 && $0 !~ /kfi_holder/ { print "domain_id=" $3 " " class "=" $2 }' | sort >"$tmp/$_class"
	done
	"$kfi" list mr --json >"$tmp/mr.json"
	"$kfi" list | awk 'NR > 1 && !/kfi_holder/ { print $1 }' | sort | uniq -c | sed 's/^ *//' >"$tmp/classes"
	"$kfi" stats >"$tmp/stats"
	"$kfi" stats --json >"$tmp/stats.json"
	echo 1 >/sys/module/kfi_selftest/parameters/go
	wait $!
	_status=$?
	echo 0 >$instances/kfi-observe/events/kfi/enable
	cat $instances/kfi-observe/trace >"$tmp/events"
	rmdir $instances/kfi-observe
	[ $_status = 0 ] || { cat "$tmp/result"; return 1; }
}
classes_listed()
{
	same "1 cntr
4 cq
2 domain
2 ep
2 eq
2 fabric
4 mr
1 pep
1 srx" "$(cat "$tmp/classes")"
}
# counted COUNT EVENT [PATTERN]: the trace has COUNT events with these fields
counted()
{
	same "$1 $2 $3" "$(grep " $2: " "$tmp/events" | grep -c -e "$3") $2 $3"
}
# regions COUNT ERRNO REFUSED LENGTH: checks that the events of regions are exactly those of COUNT regions of LENGTH
# bytes that are registered and closed, of one registration that fails with ERRNO, and of REFUSED closes. A refused
# close would have to wait.
regions()
{
	_of="provider=$provider domain=[^ ]* domain_id=[1-9][0-9]*"
	_memory="length=$4 access=0x[1-9a-f][0-9a-f]*"
	counted $(($1 + 1)) kfi_mr_register "$_of mr=0 $_memory$" &&
		counted "$1" kfi_mr_registered "$_of mr=[1-9][0-9]* $_memory err=0$" &&
		counted 1 kfi_mr_registered "$_of mr=0 length=0 access=0x0 err=-$2$" &&
		counted $(($1 + $3)) kfi_mr_close "$_of mr=[1-9][0-9]* $_memory$" &&
		counted "$1" kfi_mr_closed "$_of mr=[1-9][0-9]* $_memory err=0$" &&
		counted "$3" kfi_mr_closed "$_of mr=[1-9][0-9]* $_memory err=-11$" &&
		counted $((2 * $1 + 2)) "kfi_mr_register[ed]*" && counted $((2 * ($1 + $3))) "kfi_mr_close[d]*"
}
# One side has seven regions, the last one undone with its batch. The other side has one region.
regions_traced() { regions 8 14 1 "$page"; }
transfers_traced()
{
	_of="provider=$provider domain=[^ ]* domain_id=[1-9][0-9]* ep=[1-9][0-9]*"
	counted 3 kfi_post "$_of op=send bytes=1000 context=0x[0-9a-f]* err=0" &&
		counted 3 kfi_post "$_of op=receive bytes=$page context=0x[0-9a-f]* err=0" &&
		counted 2 kfi_post "$_of op=write bytes=500 context=0x[0-9a-f]* err=0" &&
		counted 1 kfi_post "$_of op=read bytes=700 context=0x[0-9a-f]* err=0" &&
		counted 1 kfi_post "$_of op=receive bytes=600 context=0x[0-9a-f]* err=0" &&
		counted 2 kfi_post "$_of op=receive bytes=$page context=0xb5e003[cd] err=-11" && counted 12 kfi_post &&
		counted 9 kfi_complete "${_of% ep=*} cq=[1-9][0-9]* .* err=0" &&
		counted 1 kfi_complete "context=0xb5e0032 .* err=-125" && counted 10 kfi_complete &&
		counted 3 kfi_complete "len=1000" &&
		# The second send, and what receives it.
		counted 1 kfi_complete context=0xb5e0001 && counted 1 kfi_complete context=0xb5e000b
}
connections_traced()
{
	_of="provider=$provider domain=[^ ]* domain_id=[1-9][0-9]* ep=[1-9][0-9]*"
	counted 2 kfi_connect "$_of err=0$" && counted 2 kfi_connected "$_of$" &&
		counted 2 kfi_disconnected "$_of err=0$" &&
		# The two refused calls
		counted 1 kfi_connect "$_of err=-106$" && counted 1 kfi_connect "$_of err=-22$" &&
		counted 4 kfi_connect && counted 2 kfi_connected && counted 2 kfi_disconnected
}
# All refusals are traced except EAGAIN. Each has its call, and its object if it has one.
refusals_traced()
{
	for _refused in $refused; do
		counted "${_refused#*:}" kfi_refused "err=-${_refused%:*} why=" || return
	done
	_all=0
	for _refused in $refused; do
		_all=$((_all + ${_refused#*:}))
	done
	_of="provider=$provider domain=[^ ]* domain_id=[1-9][0-9]*"
	counted $_all kfi_refused && counted $_all kfi_refused "call=[a-z][a-z_]* " &&
		counted $((_all - 1)) kfi_refused "call=[a-z_]* $_of class=[a-z]* id=[1-9][0-9]* err=" &&
		counted 1 kfi_refused "call=kfi_provider_deregister .* err=-22 " &&
		counted 1 kfi_refused "call=setname $_of class=ep id=[1-9][0-9]* err=-38 " &&
		counted 1 kfi_refused "call=control $_of class=cq id=[1-9][0-9]* err=-38 " &&
		counted 1 kfi_refused "call=connect $_of class=ep id=[1-9][0-9]* err=-106 "
}
# Fields of the events are numbers that the list has shown.
numbers()
{
	# A region that was closed before isn't in the list.
	for _of in ep:kfi_post mr:kfi_mr_registered cq:kfi_complete; do
		_class=${_of%:*}
		grep " ${_of#*:}: " "$tmp/events" | sed "s/.*\(domain_id=[0-9]*\) .*\b\($_class=[0-9]*\) .*/\1 \2/" |
			sort -u >"$tmp/numbers"
		case $_class in
		mr) same 4 "$(wc -l <"$tmp/mr")" && same "" "$(grep -vxF -f "$tmp/numbers" "$tmp/mr")" ;;
		ep) same 2 "$(wc -l <"$tmp/ep")" && same "$(cat "$tmp/ep")" "$(cat "$tmp/numbers")" ;;
		cq) same 4 "$(wc -l <"$tmp/cq")" && same 3 "$(grep -cxF -f "$tmp/numbers" "$tmp/cq")" ;;
		esac || return
	done
}
# stats_of CLASS: the counters of all objects of a class but the holder's, sorted
stats_of()
{
	awk -v class="$1" '/^[a-z]/ { is = $1 == class && !/kfi_holder/; next } is' "$tmp/stats" |
		sed 's/^ *//; s/ pool_hits [0-9]* pool_misses [0-9]*//' | sort
}
# The counters are those of the suite's calls, to the byte.
stats_exact()
{
	same "opened 1 open 1 retries 2
opened 6 open 3 retries 1
refused $refused_stats" "$(stats_of domain)" &&
		same "sends 0 send_bytes 0 receives 3 reads 0 read_bytes 0 writes 0 write_bytes 0 atomics 0 retries 2
sends 3 send_bytes 3000 receives 1 reads 1 read_bytes 700 writes 2 write_bytes 1000 atomics 0 retries 0" "$(stats_of ep)" &&
		same "completions 0 failures 0 received_bytes 0
completions 0 failures 1 received_bytes 0
completions 3 failures 0 received_bytes 3000
completions 6 failures 0 received_bytes 0" "$(stats_of cq)"
}
stats_in_json()
{
	same 3000 "$(value send_bytes <"$tmp/stats.json" | sort -n | tail -n 1)" &&
		same 4 "$(value EINVAL <"$tmp/stats.json")" &&
		same "1
2
2" "$(value retries <"$tmp/stats.json" | grep -v '^0$' | sort)" &&
		same "$(grep -c '^[a-z]' "$tmp/stats")" "$(value class <"$tmp/stats.json" | wc -l)"
}
observe()
{
	provider=$1
	case $1 in
	loop)
		refused="2:1 14:1 16:1 22:5 38:6 106:1 258:1 260:2"
		refused_stats="EBADFLAGS 2 EBUSY 1 EFAULT 1 EINVAL 4 EISCONN 1 ENOENT 1 ENOSYS 6 EOPBADSTATE 1"
		;;
	verbs)
		# The provider can't cancel receives.
		refused="14:1 16:1 22:5 38:7 106:1 258:1 260:2"
		refused_stats="EBADFLAGS 2 EBUSY 1 EFAULT 1 EINVAL 4 EISCONN 1 ENOSYS 7 EOPBADSTATE 1"
		;;
	esac
	check observe."$1".suite observed ep_observed "$1" "$2"
	check observe."$1".classes classes_listed
	check observe."$1".regions regions_traced
	check observe."$1".transfers transfers_traced
	check observe."$1".connections connections_traced
	check observe."$1".refusals refusals_traced
	check observe."$1".numbers numbers
	check observe."$1".stats stats_exact
	check observe."$1".stats_json stats_in_json
}
! tests_loop || observe loop 192.0.2.1
ep_device_up
observe verbs $ep_address
# Each registration of the domain with seven regions is traced and counted as a hit or a miss of the pool.
pool_traced()
{
	_domain=$(sed -n 's/.* kfi_mr_registered: .* domain_id=\([0-9]*\) .*/\1/p' "$tmp/events" | sort | uniq -c | sort -n |
		awk 'END { print $2 }')
	_of="kfi_pool: provider=verbs domain=$ep_device domain_id=$_domain pages=1"
	_hits=$(grep -c " $_of hit=1" "$tmp/events")
	_misses=$(grep -c " $_of hit=0" "$tmp/events")
	same 7 $((_hits + _misses)) &&
		awk "/^domain $_domain:/ { getline; print }" "$tmp/stats" | grep -q " pool_hits $_hits pool_misses $_misses retries " ||
		{ grep kfi_pool "$tmp/events"; cat "$tmp/stats"; return 1; }
}
check observe.verbs.pool pool_traced
check observe.verbs.reuse_suite observed ep_observed_reuse verbs "$ep_address"
reuse_length=$((5 * page - 512))
# The region is filled twice, and one fill fails. The region is emptied once, and closed with its second memory.
reuse_regions() { regions 2 258 1 $reuse_length && counted 3 kfi_refused; }
check observe.verbs.reuse_regions reuse_regions
reuse_listed()
{
	_closed=$(sed -n 's/.* kfi_mr_closed: .* \(domain_id=[0-9]*\) \(mr=[0-9]*\) .*/\1 \2/p' "$tmp/events" | sort -u)
	same 1 "$(wc -l <"$tmp/mr")" && same "$(cat "$tmp/mr")" "$_closed" &&
		same 1 "$(value length <"$tmp/mr.json" | grep -cx $reuse_length)"
}
reuse_stats()
{
	same "opened 0 open 0 retries 0
opened 1 open 1 retries 1
refused EBADFLAGS 1 ENOTCONN 1 EOPBADSTATE 1" "$(stats_of domain)"
}
check observe.verbs.reuse_list reuse_listed
check observe.verbs.reuse_stats reuse_stats
# calls_within MIN MAX: checks that each function that fires an event was called MIN to MAX times, by kprobe_profile
calls_within()
{
	awk -v min="$1" -v max="$2" '$2 < min || $2 > max { bad = 1; print } END { exit bad || NR < 11 }' \
		/sys/kernel/tracing/kprobe_profile
}
# If an event is off, its static branch skips the call of the function that fires it.
events_off()
{
	_probes=/sys/kernel/tracing/kprobe_events
	for _fires in $(sed -n 's/.* \(kfi_helper_trace_[a-z_]*\)[[:space:]]*\[kfabric\]$/\1/p' /proc/kallsyms); do
		echo "p:kfi_fires/$_fires kfabric:$_fires" >>$_probes || return
	done
	echo 1 >/sys/kernel/tracing/events/kfi_fires/enable
	mark_log
	run_suite ep_observed provider=verbs address="$ep_address" >"$tmp/result" &
	wait_for 60 ready
	echo 1 >/sys/module/kfi_selftest/parameters/go
	wait $! && calls_within 0 0 && observed ep_observed verbs "$ep_address" && calls_within 1 1000
	_status=$?
	echo 0 >/sys/kernel/tracing/events/kfi_fires/enable
	echo >$_probes
	return $_status
}
if [ -w /sys/kernel/tracing/kprobe_events ]; then
	check observe.events_off events_off
else
	skip observe.events_off "the kernel has no events of kprobes"
fi
# While the driver holds a close, the log names the object.
is_slow() { since_mark | grep -q "kfabric: $1 [0-9]* in .*, is being closed"; }
slow_close()
{
	_slow_wait=/sys/module/kfabric/parameters/slow_wait
	_before=$(cat $_slow_wait)
	echo 0 >$_slow_wait
	mark_log
	run_suite stuck_close >"$tmp/result" &
	for _class in region domain; do
		wait_for 60 is_slow $_class || { echo "no $_class"; break; }
		echo 1 >/sys/module/kfi_selftest/parameters/go
	done
	wait $!
	_status=$?
	echo "$_before" >$_slow_wait
	is_slow region && is_slow domain && since_mark | grep -q 'kfabric: closing an object takes long; open objects:' &&
		[ $_status = 0 ] || { cat "$tmp/result"; return 1; }
}
check observe.slow_close slow_close
many=2000
# lists FILE: writes parent and number of each region
lists() { "$kfi" list mr | awk 'NR > 1 { print $3, $2 }' | sort >"$1"; }
# A datagram has at most 32 KiB, and space for some hundred regions.
many_listed()
{
	unload kfi_holder && load kfi_holder domain=$ep_device regions=$many peer=0 || return
	lists "$tmp/many" && same $((many + 2)) "$(wc -l <"$tmp/many")" && same "" "$(uniq -d "$tmp/many")"
}
check observe.many.list many_listed
# Each list has the holder's regions once, while two threads register and close.
rounds() { cat /sys/module/kfi_holder/parameters/rounds; }
goes_on() { [ "$(rounds)" -gt $_rounds ]; }
many_changes()
{
	unload kfi_holder && load kfi_holder domain=$ep_device regions=$many threads=2 peer=0 || return
	for _list in 0 1 2 3 4 5 6 7 8 9; do
		_rounds=$(rounds)
		wait_for 30 goes_on && lists "$tmp/list$_list" && same "" "$(uniq -d "$tmp/list$_list")" || return
	done
	[ "$(sort "$tmp"/list? | uniq -c | grep -c '^ *10 ')" -ge $((many + 2)) ] || { wc -l "$tmp"/list?; return 1; }
}
check observe.many.changes many_changes
# The first numbers and the increases of three periods are a number of registrations between the start and the end.
opened() { awk '$1 == "opened" { sum += $2 } END { print sum }'; }
grown() { [ "$(grep -c ' opened ' "$tmp/watch")" -ge 5 ]; }
many_watched()
{
	_first=$("$kfi" stats | opened)
	"$kfi" stats --watch >"$tmp/watch" &
	_watch=$!
	wait_for 60 grown
	kill $_watch
	_sum=$(opened <"$tmp/watch") _last=$("$kfi" stats | opened)
	grown && [ "$_first" -lt "$_sum" ] && [ "$_sum" -le "$_last" ] ||
		{ cat "$tmp/watch"; echo "$_first $_sum $_last"; return 1; }
}
check observe.many.watch many_watched
# The counters of the pool remain after the removal of the device.
pool_stays()
{
	unload kfi_holder && load kfi_holder domain=$ep_device regions=$regions peer=0 || return
	_pool=$("$kfi" stats | grep -o 'pool_hits.*')
	echo "$_pool" | grep -q 'pool_misses [1-9]' && ep_device_remove &&
		same "$_pool" "$("$kfi" stats | grep -o 'pool_hits.*')"
}
[ -n "$KFI_NIC" ] || check observe.verbs.pool_stays pool_stays
ep_device_down
closed() { unload kfi_holder && same "[]" "$("$kfi" list --json)"; }
check observe.closed closed
# The modules can be unloaded under a trace, which ends then.
gone()
{
	tracer && unload kfi_loop kfi_verbs kfabric && wait $tracer
	same 1 $? && same "kfi: the core has been unloaded" "$(cat "$tmp/errors")" || return
	fails 1 'no netlink family "kfi": load the core' "$kfi" list &&
		fails 1 'no event kfi:kfi_refused: load the core' "$kfi" trace
}
check observe.unloaded gone

load kfabric && load kfi_verbs && { [ -n "$loop_here" ] || load kfi_loop; } || exit
finish
