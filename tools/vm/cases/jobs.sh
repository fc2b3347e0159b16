# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2016,SC2034,SC2086,SC2154
#
# tools/vm/jobs.sh loses no result, and runs nothing too early.  Sourced by
# tools/vm/selftest.

# jobs_say WHAT "PASSED FAILED SKIPPED" SCRIPT: the sums of jobs.sh for the SCRIPT's jobs.  Its
# output is in $tmp/out.
jobs_say()
{
	local what=$1 want=$2 script=$3 got

	got=$(bash -c ". '$TOP/tools/env/lib.sh'; . '$here/jobs.sh'; jobs='$tmp/jobs'
		jobs_begin
		$script
		jobs_wait
		total >&3" 3>&1 >"$tmp/out" 2>&1) || :
	if [ "$got" = "$want" ]; then
		result 0 "jobs: $what"
	else
		echo "wanted '$want', got '$got'" >>"$tmp/out"
		result 1 "jobs: $what"
	fi
}

jobs_say "all results are added up" "3 1 2" '
	two() { pass one; pass two; skip three; }
	mix() { pass four; skip five; fail six; return 1; }
	job a - "" two; job b - "" mix'
jobs_say "a failure that nobody counted is one" "0 1 0" 'job a - "" false'
jobs_say "a command that is not there has failed" "0 1 0" 'job a - "" no_such_command'
jobs_say "a job that is killed has failed" "0 1 0" '
	dies() { kill -9 -- "-$(ps -o pgid= -p $BASHPID | tr -d " ")"; }
	job a - "" dies'
jobs_say "what needs a failed job is no pass" "1 1 2" '
	job a - "" false; job b - "a" pass b; job c - "b" pass c; job d - "" pass d'
jobs_say "what needs a job that is not there is skipped" "0 0 2" '
	gone() { skip gone; return 77; }
	job a - "" gone; job b - "a" pass b'
jobs_say "a job waits for what it needs" "2 0 0" '
	slow() { sleep 1; : >"$jobs/made"; pass a; }
	needs() { [ -e "$jobs/made" ] && pass b; }
	job b - "a" needs; job a - "" slow'
jobs_say "what has not begun within the budget is skipped, and what needs it" "1 0 2" '
	budget=60
	job a - "" pass a
	until [ -e "$jobs/a.status" ]; do sleep 0.1; done
	began=$((began - 3600))
	job b x:1 "" pass b; job c - "b" pass c'
# Each counts those that are in there with it.
jobs_say "no more than N of a kind run at a time" "6 0 0" '
	inside() {
		: >"$jobs/in-$1"
		sleep 0.3
		set -- "$1" "$jobs"/in-*
		[ $# -le 3 ] && pass "$1"
		rm "$jobs/in-$1"
	}
	for i in 1 2 3 4 5 6; do job "j$i" x:2 "" inside $i; done'
# The first one lets go when they all wait.
jobs_say "of those that could run, the one that was named first does" "4 0 0" '
	first() { until [ "$(ls "$jobs"/.queue-x-* | wc -l)" = 3 ]; do sleep 0.1; done; pass a; }
	next() { echo "$1" >>"$jobs/order"; pass "$1"; }
	job a x:1 "" first
	until [ -e "$jobs/a.begun" ]; do sleep 0.1; done
	for i in d b c; do job $i x:1 "" next $i; done'
[ "$(paste -sd' ' "$tmp/jobs/order")" = "d b c" ] && ok=0 || ok=1
result $ok "jobs: it does run first"
jobs_say "a job that is killed while it waits keeps nobody waiting" "2 1 0" '
	first() { until [ -e "$jobs/go" ]; do sleep 0.1; done; pass a; }
	job a x:1 "" first
	until [ -e "$jobs/a.begun" ]; do sleep 0.1; done
	for i in b c; do job $i x:1 "" pass $i; done
	until [ "$(ls "$jobs"/.queue-x-* | wc -l)" = 2 ]; do sleep 0.1; done
	kill -9 -- "-${running[b]}"
	: >"$jobs/go"'
cat >"$tmp/counted" <<'END'
SKIP  selftest: refresh.rights # SKIP the provider lacks: kfi_mr_refresh
FAIL  selftest: refresh.refused
SKIP  selftest: siw # SKIP the kernel has no siw
SKIP  selftest: 1..0 # SKIP
SKIP  selftest: refresh.parts # SKIP the provider lacks: kfi_mr_refresh
SKIP  kunit: later # TODO not yet
3 1 5
END
jobs_say "skips are remembered by their reason" "0 0 1" '
	some() { skips_of "$tmp/counted"; skip "kernel 1.0: not there"; }
	tmp='"$tmp"' job a - "" some
	jobs_wait
	skip_reasons'
sed -n 's/^ *\([0-9]\)/\1/p' "$tmp/out" >"$tmp/reasons"
printf '%s\n' "2 the provider lacks: kfi_mr_refresh" "1 kernel 1.0: not there" "1 no reason" \
	"1 not yet" "1 the kernel has no siw" | diff - "$tmp/reasons" >>"$tmp/out" && ok=0 || ok=1
result $ok "jobs: they are, the most frequent first"
jobs_say "what a job prints comes in one piece" "0 0 0" '
	talk() { for i in 1 2 3 4 5; do echo "$1"; sleep 0.1; done; }
	for i in A B C; do job "j$i" - "" talk $i; done'
[ "$(grep -x '[ABC]' "$tmp/out" | uniq | wc -l)" = 3 ] && ok=0 || ok=1
result $ok "jobs: it does"
# Ending the run ends its jobs.
jobs_say "a run that is ended ends its jobs" "0 0 0" '
	long() { echo $BASHPID >"$jobs/pid"; exec sleep 1000; }
	job a - "" long
	until [ -s "$jobs/pid" ]; do sleep 0.1; done
	jobs_stop
	for ((i = 0; i < 300; i++)); do
		kill -0 "$(cat "$jobs/pid")" 2>/dev/null || break
		sleep 0.1
	done
	[ $i -lt 300 ] || fail "it goes on"
	running=()'

# The second run knows how long the first one took.
cat >"$tmp/timed" <<'END'
. "$1/tools/env/lib.sh"; . "$1/tools/vm/jobs.sh"
jobs=$2/jobs durations=$2/durations
jobs_begin
quick() { pass a; }
late() { date -d '-70 seconds' +%s >"$jobs/b.begun"; pass b; }
job a - "" quick
job b - "" late
jobs_wait
slowest
END
for i in 1 2; do
	bash "$tmp/timed" "$TOP" "$tmp" >"$tmp/out" 2>&1 || :
	[ $i = 2 ] || cp "$tmp/out" "$tmp/first"
done
ok=0
grep -q '^  b [0-9]* s$' "$tmp/first" && grep -q '^  b [0-9]* s (last time [0-9]* s)$' "$tmp/out" &&
	grep -q 'begun   b (last time [0-9]* s)$' "$tmp/out" && grep -q 'all jobs took [0-9]* s$' "$tmp/out" || ok=1
result $ok "jobs: how long each took last time is told"

# Without a place to wait in, it would go on without a pause.
ended=0
timeout 60 bash -c ". '$TOP/tools/env/lib.sh'; . '$here/jobs.sh'; jobs='$tmp/jobs'
	removed() { rm -r '$tmp/jobs'; sleep 1000; }
	jobs_begin
	job a - '' removed
	jobs_wait" >"$tmp/out" 2>&1 || ended=$?
[ $ended = 1 ] || echo "it ended with $ended" >>"$tmp/out"
result $((ended != 1)) "jobs: a run whose checkout is removed ends"
