# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2086,SC2154
#
# Jobs that run beside each other, and their results.  Sourced after lib.sh; the caller
# sets $jobs to a directory that is its own, and may set $durations to a file that keeps how long jobs take, and
# $budget to a number of minutes: what has not begun by then is skipped.
#
# A job is a function.  It runs when all the jobs that it needs have succeeded, and when one of
# its kind's slots is free; if several could, the one that was named first.  Its output comes
# out in one piece, when it has ended.  Its exit status: 0 it succeeded; 77 what it is for is
# not there; else it failed.
#
# A job that has failed without having counted a failure is one; so no job can get lost.
# A job that can't run since one that it needs did not succeed is listed as skipped.

# One line a result: "passed failed skipped".
tally() { echo "$*" >>"$results"; }
pass() { tally 1 0 0; say "ok      $*"; }
skip()
{
	tally 0 0 1
	say "SKIP    $*"
	echo "$*" >>"$jobs/skips"
}
fail()
{
	tally 0 1 0
	say "FAILED  $*"
	echo "$*" >>"$jobs/failures"
}

# skips_of FILE: remembers the reason of each skip that tools/vm/ktap has listed in FILE.
skips_of()
{
	sed -n '/^SKIP  /{ s/.*# *\(SKIP\|TODO\|XFAIL\):* *//; s/^$/no reason/; p }' "$1" >>"$jobs/skips"
}

# skip_reasons: "COUNT REASON" of all jobs together, the most frequent reason first.
skip_reasons()
{
	[ ! -e "$jobs/skips" ] || sort "$jobs/skips" | uniq -c | sort -k1,1nr -k2
}

# total: "PASSED FAILED SKIPPED" of all jobs together.
total()
{
	cat "$jobs"/*.results 2>/dev/null |
		awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }'
}

jobs_begin()
{
	rm -rf "$jobs"
	mkdir -p "$jobs"
	mkfifo "$jobs/.never"
	results=$jobs/main.results
	began=$(date +%s)
	cp "${durations:-/dev/null}" "$jobs/.last" 2>/dev/null || : >"$jobs/.last"
	[ -z "$(last_time all)" ] || say "last time, all jobs took $(last_time all) s"
	declare -gA running=()
	order=100
	trap 'jobs_stop; exit 130' INT TERM HUP
	trap jobs_stop EXIT
}

# job NAME SLOTS NEEDS CMD...: SLOTS is KIND:N, at most N of a kind run at a time; or -.
job()
{
	local name=$1 slots=$2 needs=$3
	shift 3

	# With -m each job has a process group, so that jobs_stop reaches all of it.
	set -m
	order=$((order + 1))
	( trap - INT TERM HUP; run_job "$name" "$slots" "$needs" "$@" ) </dev/null &
	set +m
	running[$name]=$!
}

counted_failure() { awk '$2 > 0 { found = 1 } END { exit !found }' "$results" 2>/dev/null; }

run_job()
{
	local name=$1 slots=$2 needs=$3 rc=0 slot='' i
	shift 3
	# The sum has complete jobs only; a job that is printed is not printed twice.
	export KFABRIC_BUFFERED=1
	results=$jobs/$name.results

	for i in $needs; do
		until [ -e "$jobs/$i.status" ]; do a_moment; done
		[ "$(cat "$jobs/$i.status")" = 0 ] || rc=77
	done
	if [ $rc = 77 ]; then
		skip "$name: not run, for lack of: $needs" >"$jobs/$name.out"
	else
		take "$slots"
	fi
	if [ $rc = 0 ] && [ -n "${budget:-}" ] && [ $(($(date +%s) - began)) -ge $((budget * 60)) ]; then
		rc=77
		skip "$name: not begun within $budget minutes" >"$jobs/$name.out"
	elif [ $rc = 0 ]; then
		date +%s >"$jobs/$name.begun"
		announce "$name"
		# -e is off in there; a function chains with && or looks for itself.
		( "$@" ) >"$jobs/$name.out" 2>&1 {slot}>&- || rc=$?
		# Not in a process of its own, which has had none of it.
		times >"$jobs/$name.times"
		echo "$name $(lasted)" >"$jobs/$name.lasted"
		say "        $name took $(lasted) s$(last_took "$name"), and $(cpu_time) of a CPU" >>"$jobs/$name.out"
		if [ $rc != 0 ] && [ $rc != 77 ] && ! counted_failure; then
			fail "$name ended with $rc" >>"$jobs/$name.out"
		fi
	fi
	(
		flock 5
		cat "$jobs/$name.out"
	) 5>"$jobs/.print"
	echo $rc >"$jobs/$name.status.new"
	mv "$jobs/$name.status.new" "$jobs/$name.status"
}

# How many seconds this job has taken, and how many its commands have had of a CPU.
lasted() { echo $(($(date +%s) - $(cat "$jobs/$name.begun"))); }

# last_time NAME: the seconds that this job took in the run before; nothing if it had none.
last_time() { awk -v name="$1" '$1 == name { print $2 }' "$jobs/.last"; }
last_took() { [ -z "$(last_time "$1")" ] || echo " (last time $(last_time "$1") s)"; }

# slowest: the jobs that took longest, and all together. Keeps the durations for the next run.
slowest()
{
	local name seconds

	echo "all $(($(date +%s) - began))" >"$jobs/all.lasted"
	say "what took longest:"
	cat "$jobs"/*.lasted | sort -k2,2nr -k1,1 | head -n 9 | while read -r name seconds; do
		echo "  $name $seconds s$(last_took "$name")"
	done
	[ -z "${durations:-}" ] ||
		awk '!($1 in seen) { seen[$1]; print }' "$jobs"/*.lasted "$jobs/.last" >"$durations"
}
cpu_time()
{
	awk 'NR == 2 { gsub(/[ms]/, " "); print int($1 * 60 + $2 + $3 * 60 + $4 + 0.5), "s" }' \
		"$jobs/$name.times"
}

announce() { ( flock 5; say "begun   $1$(last_took "$1")" ) 5>"$jobs/.print"; }

# take KIND:N: waits for one of N; it is given back when $slot is closed.
take()
{
	local kind=${1%:*} n=${1#*:} i
	local queue=$jobs/.queue-$kind waiting
	local place=$queue-$order-$name

	exec {slot}</dev/null
	[ "$kind" != - ] || return 0
	: >"$place"
	# The jobs that have waited for the same job are all here then.
	a_moment
	a_moment
	while :; do
		for ((i = 0; i < n; i++)); do
			waiting=("$queue"-*)
			[ "${waiting[0]}" = "$place" ] || break
			exec {slot}>&-
			exec {slot}>"$jobs/.slot-$kind-$i"
			flock -n $slot || continue
			rm "$place"
			return 0
		done
		a_moment
	done
}

# Half a second, without a process: some dozens wait like that, and the guests need the CPUs. Where there is nothing to wait
# with, the checkout has been removed, and nobody is to go on.
a_moment() { read -rt 0.5 <>"$jobs/.never" || [ -p "$jobs/.never" ] || exit 1; }

# Waits for all jobs, and says now and then which ones take their time.
jobs_wait()
{
	local name beat=0 now line

	while [ ${#running[@]} -gt 0 ]; do
		a_moment
		for name in "${!running[@]}"; do
			kill -0 "${running[$name]}" 2>/dev/null && continue
			wait "${running[$name]}" || :
			# One that was killed is not forgotten.
			[ -e "$jobs/$name.status" ] || {
				fail "$name: did not come to its end"
				echo 1 >"$jobs/$name.status"
				rm -f "$jobs"/.queue-*-[0-9][0-9][0-9]-"$name"
			}
			unset "running[$name]"
		done
		printf -v now '%(%s)T' -1
		[ $beat != 0 ] || beat=$now
		[ $((now - beat)) -ge 60 ] || continue
		beat=$now line=
		for name in "${!running[@]}"; do
			[ ! -e "$jobs/$name.begun" ] ||
				line="$line, $name for $((now - $(cat "$jobs/$name.begun")))s"
		done
		say "        at work: ${line#, }"
	done
}

jobs_stop()
{
	local name

	for name in "${!running[@]}"; do
		kill -TERM -- "-${running[$name]}" 2>/dev/null || :
	done
}
