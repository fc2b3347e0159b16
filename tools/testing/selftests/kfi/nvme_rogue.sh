#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck disable=SC2154
#
# The NVMe transport with targets that lie, fall silent, or break the connection (rogue/).

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nvme_target.sh"
. "$(dirname "$0")/nvme_host.sh"
. "$(dirname "$0")/nvme_io.sh"

# How many connections there are to one rogue that lies, and at least how many answers all rogues give. KFI_SOAK=100 is
# ten thousand.
rogues=$((30 * ${KFI_SCALE:-100} / 100)) answers=1
[ -z "$KFI_SOAK" ] || rogues=100 answers=$((100 * KFI_SOAK))

# The rogue's numbers of steps (rogue/target.rs): requests for connections, commands.
requests="1 7" commands="2 3 4 5 6 8"
identify=5 data=9

rogue_up() { load kfi_rogue address=0xc6336401 "seed=$((seed + ${_round:-0}))" "$@"; }
# rogue [OPTION=VALUE,...]: connects to it.
rogue() { try "trsvcid=4421,nqn=rogue,nr_io_queues=1,reconnect_delay=1${1:+,$1}" 2>/dev/null; }
controls() { ctrl=$(controllers | head -n 1) && [ -n "$ctrl" ]; }
rogue_disk() { controls && disk=$(disk_of 1) && [ -b "$disk" ]; }
# A write to a disk that has just gone makes a file of its name.
no_file() { [ ! -f "$disk" ] || rm "$disk"; }
reads() { dd if="$disk" of="$dir/b" bs=4k count="${1:-1}" iflag=direct 2>/dev/null; }
nobody_gets_in() { since_mark | grep -q "^kfi_rogue: .* accesses refused, 0 done" || { since_mark | grep kfi; return 1; }; }
# The kernel's own target finds everything as before.
good_again() { connect && random_pieces 2; }

# Some answers are wrong, by a seed: connecting fails, or I/O, or nothing. The next rogue lies less often, and later.
case_lies()
{
	timeouts 5 && leave || return
	_answers=0 _connected=0 _round=0
	# Hardly anybody connects to the first.
	while [ $_answers -lt $answers ] || [ $_round -lt 2 ]; do
		one_rogue one_in=$((_round % 2 ? 64 : 8)) || return
		_given=$(since_mark | sed -n 's/^kfi_rogue: .* connections, \([0-9]*\) answers.*/\1/p')
		_answers=$((_answers + _given)) _round=$((_round + 1))
		progress "$_answers of $answers answers of targets that lie, $_connected connections"
	done
	default_timeouts
	[ $_connected -gt 0 ] && good_again
}
# (A disk that has gone must not become a file.)
one_rogue()
{
	mark_log
	rogue_up "$@" || return
	_n=0
	while [ $_n -lt $rogues ]; do
		_n=$((_n + 1))
		rogue ctrl_loss_tmo=0 >/dev/null && _connected=$((_connected + 1))
		if wait_for 1 disk_or_end && rogue_disk; then
			reads 16
			dd if="$dir/a" of="$disk" bs=2k count=8 oflag=direct conv=nocreat 2>/dev/null
		fi
		leave && no_file || return
	done
	rmmod kfi_rogue && nobody_gets_in
}
disk_or_end() { rogue_disk || alone; }

# Each answer to I/O is wrong in one way: what the log says then, and that nobody gets at memory without a key that is
# good for it. No way may end in a timeout.
case_ways()
{
	leave || return
	while read -r _way _says; do
		# The rogue may not have tried a forbidden access when the connection ended: another one then.
		case $_says in *forbidden*) _tries=20 ;; *) _tries=1 ;; esac
		while one_way "$_way" && ! since_mark | grep -q "$_says" && [ $_tries -gt 1 ]; do
			_tries=$((_tries - 1))
		done
		nobody_gets_in && since_mark | grep -q "$_says" && ! times_out || { echo "way $_way:"; since_mark | grep kfi; return 1; }
	done <<-END
		0 $short_response
		1 $no_command
		6 starting error recovery
		8 starting error recovery
		9 wrong; [1-9][0-9]* forbidden
		11 wrong; [1-9][0-9]* forbidden
		12 wrong; [1-9][0-9]* forbidden
		13 $no_command
	END
	good_again
}
# The target never invalidates a key, so the host does.
case_keys_left()
{
	mark_log
	leave && rogue_up way=7 && rogue && wait_for 30 rogue_disk && reads 32 && [ "$(tr -d Z <"$dir/b" | wc -c)" = 0 ] &&
		copy if="$dir/a" of="$disk" bs=16k count=32 oflag=direct && state_is live && ! times_out && ! recovers
	_result=$?
	within 30 leave && rmmod kfi_rogue && [ $_result = 0 ] && good_again
}
recovers() { since_mark | grep "starting error recovery"; }
# Data of small writes would go in the capsule; of these the rogue needs keys.
one_way()
{
	mark_log
	rogue_up one_in=1000000000 way="$1" || return
	# Without a disk when the controller has gone by a wrong response.
	if rogue ctrl_loss_tmo=0,queue_size=16 >/dev/null && wait_for 60 disk_or_end && rogue_disk; then
		# More commands than the queue has tags, so that each tag is used again.
		for _n in 1 2 3 4 5 6 7 8 9; do
			[ -b "$disk" ] || break
			reads 1
			dd if="$dir/a" of="$disk" bs=16k count=1 oflag=direct conv=nocreat 2>/dev/null
		done
	fi
	leave && no_file && rmmod kfi_rogue
}

# Of the 1024 entries that the target has, a queue uses 256.
case_long_queue()
{
	leave && rogue_up one_in=1000000000 && rogue queue_size=1024 && wait_for 30 controls &&
		[ "$(cat "$sys/$ctrl/sqsize")" = 255 ]
	_result=$?
	within 30 leave && rmmod kfi_rogue && [ $_result = 0 ] && good_again
}

# At each step a target falls silent: connecting ends by a timeout, or at a signal. The transport gives up a request for a
# connection after 10 s, before the provider does.
case_silent()
{
	each_step "$silent_requests" ends_by_itself 25 "Connection timed out" &&
		each_step "$commands" ends_by_itself 60 "$no_answer"
}
# A killed task can't report its errno, so the test reads the event sys_exit_write. The errno is EINTR. It is EIO at the
# step Identify Controller, whose error nvme-core replaces.
tracing=/sys/kernel/tracing writes=/sys/kernel/tracing/events/syscalls/sys_exit_write
case_killed()
{
	[ -e $tracing/trace ] || mount -t tracefs tracefs $tracing 2>/dev/null
	! traces_writes || { echo "ret == -4 || ret == -5" >$writes/filter && echo 1 >$writes/enable; } || return
	each_step "$requests $commands" ends_killed
	_killed=$?
	! traces_writes || { echo 0 >$writes/enable && echo 0 >$writes/filter; }
	return $_killed
}
traces_writes() { [ "$transport" != rdma ] && [ -e $writes/enable ]; }
each_step()
{
	_steps=$1
	shift
	timeouts 5 && leave || return
	for _step in $_steps; do
		mark_log
		rogue_up one_in=1000000000 silent="$_step" || return
		"$@" && within 30 leave
		_result=$?
		rmmod kfi_rogue
		[ $_result = 0 ] || { echo "step $_step"; break; }
	done
	default_timeouts
	[ $_result = 0 ] && good_again
}
ends_by_itself() { within "$1" fails "$2" trsvcid=4421,nqn=rogue,nr_io_queues=1,ctrl_loss_tmo=0; }
ends_killed()
{
	! traces_writes || echo >$tracing/trace
	# One process, which gets the signal.
	options trsvcid=4421,nqn=rogue,nr_io_queues=1 >"$dir/options"
	dd if="$dir/options" of=/dev/nvme-fabrics 2>/dev/null &
	_writer=$!
	wait_for 30 is_silent && kill $_writer && within 30 not wait $_writer &&
		{ ! traces_writes || grep -q "sys_write -> 0xfffffffffffffff$([ "$_step" = $identify ] && echo b || echo c)" $tracing/trace; }
}
is_silent() { since_mark | grep -q '^kfi_rogue: silent at'; }

# A target without keyed SGL descriptors, then one that wants in-capsule data at an offset.
case_unsupported()
{
	leave || return
	for _i in sgls=0x100000 icdoff=4; do
		rogue_up one_in=1000000000 $_i || return
		fails "Operation not supported" trsvcid=4421,nqn=rogue,nr_io_queues=1
		_result=$?
		rmmod kfi_rogue && [ $_result = 0 ] || { echo "$_i"; return 1; }
	done
	good_again
}

# I/O without an answer ends by a timeout and recovery; leaving doesn't wait for it.
case_silent_io()
{
	timeouts 5 && leave && mark_log && rogue_up one_in=1000000000 silent=$data || return
	rogue >/dev/null && wait_for 30 controls && wait_for 30 is_silent && within 60 leave
	_result=$?
	default_timeouts
	rmmod kfi_rogue
	[ $_result = 0 ] && good_again
}

# A command without an answer while the host connects again: leaving doesn't wait for the timeout.
case_lost()
{
	leave && mark_log && rogue_up one_in=1000000000 && rogue ctrl_loss_tmo=600 && wait_for 30 rogue_disk && rmmod kfi_rogue &&
		wait_for 60 state_is connecting && rogue_up one_in=1000000000 silent=$identify && wait_for 60 is_silent &&
		within $leaves leave
	_result=$?
	rmmod kfi_rogue
	[ $_result = 0 ] && good_again
}

# A request that breaks each connection ends with an error, and the controller connects again.
case_breaks()
{
	leave && rogue_up one_in=1000000000 && rogue && wait_for 30 rogue_disk && exec 5<"$disk" && rmmod kfi_rogue &&
		rogue_up way=10 && wait_for 60 state_is live &&
		within 120 not dd bs=4k count=1 iflag=direct <&5 of=/dev/null 2>/dev/null && wait_for 60 state_is live
	_result=$?
	exec 5<&-
	within 30 leave && rmmod kfi_rogue && [ $_result = 0 ] && good_again
}

# Blocks with metadata: the transport moves none, so nvme-core gives a disk of no size to each such format, and the
# controller serves other namespaces. nvme-rdma has the target insert and strip protection information of 8 bytes.
case_metadata()
{
	leave && for _format in 0:0:2048 8:0:0 8:1:$protected 16:1:0 64:0:0; do
		_bytes=${_format%%:*} _size=${_format##*:} _type=${_format#*:}
		rogue_up one_in=1000000000 metadata="$_bytes" protection="${_type%:*}" || return
		rogue && wait_for 30 rogue_disk && wait_for 30 state_is live && wait_for 30 has_size "$_size" &&
			{ [ "$_size" = 0 ] || reads; }
		_result=$?
		within 30 leave && no_file && rmmod kfi_rogue && [ $_result = 0 ] || { echo "format $_format"; return 1; }
	done
	good_again
}
has_size() { [ "$(cat "/sys/block/${disk#/dev/}/size")" = "$1" ]; }

# Format NVM, which the kernel's own target lacks. The target gets one, of this namespace. Then nvme-core finds that its
# blocks have another size.
case_format()
{
	leave && mark_log && rogue_up one_in=1000000000 && rogue && wait_for 30 rogue_disk && wait_for 30 state_is live &&
		[ "$(queue logical_block_size)" = 512 ] && quiet nvme format "$disk" --lbaf=1 --force &&
		[ "$(since_mark | grep '^kfi_rogue: namespace')" = "kfi_rogue: namespace 1 gets format 1" ] &&
		wait_for 30 has_blocks 4096 && reads && copy if="$dir/a" of="$disk" bs=4k count=1 oflag=direct
	_result=$?
	within 30 leave && rmmod kfi_rogue && [ $_result = 0 ] && good_again
}
has_blocks() { [ "$(queue logical_block_size)" = "$1" ]; }

# What the two transports tell.
if [ "$transport" = rdma ]; then
	# The connection manager asks again for minutes.
	silent_requests='' no_answer='.*' short_response=connections no_command=connections leaves=90 protected=2048
else
	short_response="queue 1: a response of [0-9]* bytes" no_command="queue 1: a response to nothing" leaves=40 protected=0
	silent_requests=$requests no_answer="Input/output error"
fi

lacks()
{
	[ "$(verbs_column)" != iwarp ] || echo "over iWARP, the target kfi_rogue can't register memory: it binds no region"
	[ "$1" != format ] || command -v nvme >/dev/null || echo "no nvme-cli"
}

run nvme_rogue ways keys_left long_queue lies silent killed unsupported silent_io lost breaks metadata format
finish
