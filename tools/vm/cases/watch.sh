# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2016,SC2034,SC2086,SC2154
#
# tools/vm/watch ends the guests that can't recover, and no others.  The guests are made
# up: what they would print, by a shell.  Sourced by tools/vm/selftest.

# watched WANT WHAT SCRIPT [watch options]: WANT is what watch says of the guest, or
# nothing if it is to end by itself.  Its console is in $tmp/console.
watched()
{
	local want=$1 what=$2 script=$3 said
	shift 3

	"$TOP/tools/env/run" "$here/watch" --silence 20 --timeout 60 "$@" -- bash -c "$booted$script" \
		>"$tmp/console" 2>&1 </dev/null || :
	said=$(sed -n 's/^kfabric-watch: //p' "$tmp/console")
	if [[ -n $want && $said = "ended the guest: $want"* ]] || [ "$want$said" = "" ]; then
		result 0 "watch: $what"
	else
		{
			echo "wanted '$want', got '$said'"
			tail -n 5 "$tmp/console"
		} >"$tmp/out"
		result 1 "watch: $what"
	fi
}

# gone PID: has that process ended?
gone()
{
	[ -n "$1" ] && ! kill -0 "$1" 2>/dev/null
}

booted='echo "[    0.000000] Linux version 7.3.4 (made up)"
	echo "[    1.000000] Kernel command line: oops=panic panic=-1"
'
watched "a report before init: BUG: KASAN: wild-memory-access" \
	"a report before init ends the guest" '
	echo "[    0.5] BUG: KASAN: wild-memory-access in init_once+0x1/0x2"
	sleep 1000' --grace 0.5
watched "a report before init" "however long the report goes on" '
	echo "[    0.5] Oops: general protection fault, probably for non-canonical address"
	while :; do echo "[    0.6]  frame $((i++))"; done' --grace 1000
watched "" "a warning before init does not" '
	echo "[    0.5] WARNING: arch/x86/made_up.c:1 at up+0x1/0x2, CPU#0: swapper/0"
	sleep 1' --grace 0.1
watched "it has panicked and does not end" "a panic that does not end is ended" '
	echo "[    2.0] Run /init as init process"
	echo "[    3.0] Kernel panic - not syncing: made up"
	sleep 1000' --grace 0.2
watched "nothing new for" "silence before init ends the guest" 'sleep 1000' --silence 1

booted=$booted'sleep 1
	echo "[    2.0] Run /init as init process"
	echo "[    3.0] kfabric-vm: running /test.sh"
'
watched "" "a report after init does not: the guest may go on" '
	echo "[    4.0] BUG: KASAN: slab-use-after-free in rxe_mr_copy+0x1a/0x90"
	sleep 1
	echo "[    5.0] | ok 1 one"' --grace 0.1
watched "the same report 100 times: BUG: KASAN: wild" "the same report again and again" '
	while :; do
		echo "[    $((i++)).0][   T12] BUG: KASAN: wild at addr ffff8880$((10000000 + i))"
		echo "[    $i.1]  frame $i"
	done'
watched "" "the same report, but the script goes on" '
	for i in {1..300}; do
		echo "[    4.0] WARNING: drivers/made_up.c:$i at made_up+0x1/0x2"
		echo "[    4.1] | round $i"
	done'
watched "" "a line that is no report may come again" '
	for i in {1..300}; do echo "[    4.0] nvmet: installed port $i"; done
	echo "[    4.1] | ok 1 one"'
watched "nothing new for" "silence of the script ends the guest" \
	'echo "[    4.0] | ok 1 one"; sleep 1000' --silence 0.5 --factor 1
watched "nothing new for" "a kernel that repeats itself is silent" '
	while sleep 0.1; do
		echo "[   $((i += 60)).0] rxe0: no answer from qp#$i for $i ms"
	done' --silence 2 --factor 2
watched "" "a slow machine may be silent for longer" \
	'sleep 4; echo "[    4.0] | ok 1 one"' --silence 1.8 --factor 50
watched "" "a kernel that says something new is not silent" '
	for i in a b c d e f g h i j k l; do
		sleep 0.5
		echo "[    4.0] kfi-ktap: ok $i"
	done' --silence 4 --factor 0
watched "no verdict within 1s" "the last resort" \
	'while sleep 0.1; do echo "[    4.0] | still at it"; done' --timeout 1
watched "no verdict within 3s" "a guest that does not want to end" \
	'trap "" TERM; echo "PID $$"; while :; do sleep 0.1; done' --timeout 3
gone "$(sed -n 's/^PID //p' "$tmp/console")" && ok=0 || ok=1
result $ok "watch: it ends all the same"
watched "its console is longer than 100000 bytes" "a log is bounded" \
	'while :; do echo "[    4.0] | yes $RANDOM"; done' --limit 100000
size=$(stat -c %s "$tmp/console")
{
	echo "the log has $size bytes"
	[ "$size" -gt 100000 ] && [ "$size" -lt 101000 ]
} >"$tmp/out" && ok=0 || ok=1
result $ok "watch: that is what it has"

# Ending the watch ends the guest.
rm "$tmp/console"
"$TOP/tools/env/run" "$here/watch" -- sh -c 'echo $$; exec sleep 1000' >"$tmp/console" &
watch=$!
until [ -s "$tmp/console" ]; do sleep 0.1; done
kill $watch
wait $watch || :
{
	cat "$tmp/console"
	grep -q 'ended the guest: interrupted' "$tmp/console" &&
		gone "$(head -n1 "$tmp/console")"
} >"$tmp/out" && ok=0 || ok=1
result $ok "watch: a guest does not outlive it"
