#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck disable=SC2154
#
# The NVMe transport against the kernel's own target in the same machine: what the target receives, and that each byte
# arrives.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nvme_target.sh"
. "$(dirname "$0")/nvme_host.sh"
. "$(dirname "$0")/nvme_io.sh"

# KFI_SOAK=100 is some 8 GiB.
pieces=$((60 * ${KFI_SCALE:-100} / 100 + 4))
[ -z "$KFI_SOAK" ] || pieces=$((225 * KFI_SOAK + 4))
twin=$behind

same_behind()
{
	forget
	same $((4 << 20)) "$1" $behind
}

case_limits()
{
	_is="$(cat "/sys/block/${disk#/dev/}/size") $(queue logical_block_size) $(queue write_cache)"
	[ "$_is" = "2097152 512 write back" ] && [ "$(queue max_hw_sectors_kb)" -ge 512 ] ||
		{ echo "$_is, $(queue max_hw_sectors_kb)"; return 1; }
}

# Each size written and read direct, and seen at the other side.
case_sizes()
{
	for _bs in 512 1024 4096 12288 65536 262144 1048576; do
		copy if="$dir/a" of="$disk" bs=$_bs count=4 seek=1 oflag=direct &&
			copy if="$disk" of="$dir/b" bs=$_bs count=4 skip=1 iflag=direct &&
			copy if=$behind of="$dir/c" bs=$_bs count=4 skip=1 iflag=direct &&
			same $((4 * _bs)) "$dir/a" "$dir/b" && same $((4 * _bs)) "$dir/b" "$dir/c" ||
			{ echo "of $_bs bytes"; return 1; }
	done
}
# busybox's buffers begin within a page.
case_odd()
{
	for _bs in 512 4096 65536 1048576; do
		quiet busybox dd if="$dir/a" of="$disk" bs=$_bs count=3 oflag=direct conv=notrunc &&
			quiet busybox dd if="$disk" of="$dir/b" bs=$_bs count=3 iflag=direct &&
			same $((3 * _bs)) "$dir/a" "$dir/b" && forget && same $((3 * _bs)) "$dir/a" $behind ||
			{ echo "of $_bs bytes"; return 1; }
	done
}

# The I/O commands that the target gets, as its own event says: opcode, first block, length (0 is one block) and the
# control bits, FUA among them.
tracing=/sys/kernel/tracing
requests=$tracing/events/nvmet/nvmet_req_init
traces_commands()
{
	[ -e $tracing/trace ] || mount -t tracefs tracefs $tracing 2>/dev/null
	[ -e $requests/enable ]
}
# gets COMMANDS COMMAND...: the target gets these, and nothing else, while a command runs.
gets()
{
	_expected="$1"
	shift
	echo >$tracing/trace && echo 1 >$requests/enable && "$@"
	_result=$?
	echo 0 >$requests/enable
	# Without queue 0, which is not for I/O.
	_got=$(sed -n 's/.*nvmet_req_init: .*qid=[1-9].*, nsid=\([0-9]*\), .*cmd=(\([^,]*\), \([^)]*\)).*/\1 \2 \3/p' \
		$tracing/trace | sed 's/, dsmgmt=.*//; s/nvme_cmd_//')
	[ $_result = 0 ] && [ "$_got" = "$_expected" ] || { echo "$*: \"$_got\", expected \"$_expected\""; return 1; }
}
# sent_each WHAT: of each size, data in the capsule and by a key.
sent_each()
{
	for _i in 512:0 4096:7 65536:127; do
		_bs=${_i%:*}
		_blocks="slba=$((5 * _bs / 512)), len=${_i#*:}"
		sent_"$1" || return
	done
}
sent_read() { gets "1 read $_blocks, ctrl=0x0" copy if="$disk" of="$dir/b" bs="$_bs" count=1 skip=5 iflag=direct; }
sent_write() { gets "1 write $_blocks, ctrl=0x0" copy if="$dir/a" of="$disk" bs="$_bs" count=1 seek=5 oflag=direct; }
flushes="1 flush cdw10=$(printf '00 %.0s' $(seq 23))00"
sent_fua()
{
	gets "1 write $_blocks, ctrl=0x4000
$flushes" copy if="$dir/a" of="$disk" bs="$_bs" count=1 seek=5 oflag=direct,dsync
}
case_sent_read() { sent_each read; }
case_sent_write() { sent_each write; }
case_sent_fua() { sent_each fua; }
case_sent_flush() { gets "$flushes" copy if=/dev/null of="$disk" count=0 conv=notrunc,fsync; }
# A megabyte into the disk, where it shows that blocks are not bytes.
case_sent_discard() { gets "1 dsm nr=0, attributes=4" blkdiscard -f -o 1048576 -l 65536 "$disk"; }
case_sent_zeroes() { gets "1 write_zeroes slba=2048, len=127, ctrl=0x0" blkdiscard -f -z -o 1048576 -l 65536 "$disk"; }
# The target's disk doesn't say that what it unmaps reads as zeroes, so nothing asks it to unmap.
case_sent_punched()
{
	gets "1 write_zeroes slba=2048, len=127, ctrl=0x0
$flushes" fallocate --punch-hole --keep-size -o 1048576 -l 65536 "$disk"
}

# By the page cache, and back.
case_data()
{
	copy if="$dir/a" of="$disk" bs=64k conv=fsync && same_behind "$dir/a" &&
		same $((4 << 20)) "$dir/a" "$disk"
}
case_random() { random_at_once $pieces; }

# Four at once, each in a place of its own.
case_together()
{
	_jobs=
	for _i in 1 2 3 4; do
		{
			copy if="$dir/a" of="$disk" bs=16k seek=$((_i * 256)) count=256 oflag=direct &&
				copy if="$disk" of="$dir/got.$_i" bs=128k skip=$((_i * 32)) count=32 iflag=direct &&
				same $((4 << 20)) "$dir/a" "$dir/got.$_i"
		} &
		_jobs="$_jobs $!"
	done
	# shellcheck disable=SC2086
	succeed $_jobs
}

# fio writes random blocks with checksums and reads them back, and then finds them at the target.
fio=/kfi/fio
kib=$((8192 * ${KFI_SCALE:-100} / 100))
[ -z "$KFI_SOAK" ] || kib=$((655 * KFI_SOAK))
fio_verifies()
{
	_jobs="--name=verified --rw=randwrite --bssplit=4k/60:64k/30:512k/10 --size=${kib}K --numjobs=2
		--offset_increment=${kib}K --direct=1 --verify=crc32c --verify_fatal=1 --randseed=$seed
		--fallocate=none --group_reporting --eta=never --output=$dir/fio"
	# shellcheck disable=SC2086
	for _from in "$disk $*" "$behind --ioengine=libaio --iodepth=8 --verify_only"; do
		LD_LIBRARY_PATH=$fio quiet $fio/fio $_jobs --filename=$_from || { cat "$dir/fio"; return 1; }
	done
}
case_fio() { fio_verifies --ioengine=libaio --iodepth=8; }
case_uring() { fio_verifies --ioengine=io_uring --iodepth=8; }
# A queue for polling, whose Connect is polled. Nobody polls it when a reset stops it.
polls()
{
	_queues=$(($(nproc) + 2))
	anew nr_poll_queues=1 && [ "$(cat "$sys/$ctrl/queue_count")" = $_queues ] && [ "$(queue io_poll)" = 1 ]
}
resets() { echo 1 >"$sys/$ctrl/reset_controller" && live; }
case_polled() { polls && resets && [ "$(cat "$sys/$ctrl/queue_count")" = $_queues ] && random_pieces 2; }
# The target gets polled I/O by that queue, which is reset under it.
case_polled_io()
{
	polls && echo >$tracing/trace && echo "qid == $((_queues - 1))" >$requests/filter && echo 1 >$requests/enable || return
	fio_verifies --ioengine=io_uring --iodepth=8 --hipri &
	_job=$!
	wait_for 60 grep -q nvmet_req_init $tracing/trace && echo 0 >$requests/enable && resets
	_result=$?
	echo 0 >$requests/enable
	echo 0 >$requests/filter
	wait $_job && return $_result
}

# The packets of a connection have the type of service, as the connection manager's events say.
service=$tracing/events/rdma_cma/cm_send_req
case_tos()
{
	leave && echo >$tracing/trace && echo 1 >$service/enable || return
	connect tos=40
	_result=$?
	echo 0 >$service/enable
	_all=$(grep -c cm_send_req: $tracing/trace) _with=$(grep -c "cm_send_req:.* tos=40 " $tracing/trace)
	[ $_result = 0 ] && [ "$_with" = "$_all" ] && [ "$_all" -gt 1 ] || { echo "$_with of $_all"; return 1; }
}

case_flush()
{
	copy if="$dir/a" of="$disk" bs=4k count=8 conv=fsync && copy if="$dir/a" of="$disk" bs=4k count=8 oflag=direct,dsync
}

# zeroed COMMAND...: it leaves zeroes in the second MiB, and nowhere else.
zeroed()
{
	copy if="$dir/a" of="$disk" bs=1M conv=fsync && "$@" && forget &&
		copy if="$disk" of="$dir/b" bs=1M count=4 iflag=direct &&
		cp "$dir/a" "$dir/c" && copy if=/dev/zero of="$dir/c" bs=1M seek=1 count=1 conv=notrunc &&
		same $((4 << 20)) "$dir/b" "$dir/c"
}
case_discard() { zeroed blkdiscard -o 1048576 -l 1048576 "$disk"; }
case_zeroes() { zeroed blkdiscard -z -o 1048576 -l 1048576 "$disk"; }

case_again() { copy if="$dir/a" of="$disk" bs=64k && anew && forget && same $((4 << 20)) "$dir/a" "$disk"; }

# shape OPTIONS QUEUES: with these options, that many queues, the admin queue included.
shape()
{
	anew "$1" && [ "$(cat "$sys/$ctrl/queue_count")" = "$2" ] && random_pieces 8 ||
		{ echo "$1: $(cat "$sys/$ctrl/queue_count") queues"; return 1; }
}
case_queues()
{
	_cpus=$(nproc)
	shape nr_io_queues=1 2 && shape nr_io_queues=1,queue_size=16 2 && shape nr_io_queues=1,nr_write_queues=1 3 &&
		shape nr_io_queues=8 $((_cpus < 8 ? _cpus + 1 : 9)) && random_at_once 8
}

# The completion queues of an I/O queue have the vector of the first CPU whose requests the queue gets. A polled I/O queue
# has one completion queue, another I/O queue has two. With 32 entries, they have space for 64 requests and 32 receives,
# and for two more of each that the provider needs. The same holds after the number of queues has changed.
alloc=$tracing/events/rdma_core/cq_alloc
case_vectors()
{
	leave && gets_vectors '$s/^/100 /; $!s/.*/66 &\n34 &/' connect queue_size=32,nr_io_queues=2,nr_poll_queues=1 || return
	# The second of two queues for writing becomes the one for reading. (One CPU has no two queues for writing.)
	[ "$(nproc)" -gt 1 ] || return 0
	anew queue_size=32,nr_io_queues=1,nr_write_queues=2 && gets_vectors 's/.*/66 &\n34 &/' queues_become 2 &&
		gets_vectors 's/.*/66 &\n34 &/' queues_become 3
	_result=$?
	echo 127 >$subsystem/attr_qid_max
	return $_result
}
queues_become() { echo "$1" >$subsystem/attr_qid_max && wait_for 60 queues_are "$1" && live; }
queues_are() { [ "$(cat "$sys/$ctrl/queue_count")" = $(($1 + 1)) ]; }
# gets_vectors SCRIPT COMMAND...: checks the last completion queues that COMMAND creates. SCRIPT, for sed, turns the first
# CPU of each I/O queue into the expected lengths and vectors. Other completion queues have other lengths.
gets_vectors()
{
	_script=$1
	shift
	echo >$tracing/trace && echo 1 >$alloc/enable && "$@"
	_result=$?
	echo 0 >$alloc/enable
	_expected=$(sed "s/,.*//; $_script" "$sys/$ctrl"/nvme*n1/mq/*/cpu_list)
	_got=$(sed -n 's/.* cq_alloc: .* nr_cqe=\(66\|34\|100\) comp_vector=\([0-9]*\) .*=SOFTIRQ$/\1 \2/p' $tracing/trace |
		tail -n "$(echo "$_expected" | wc -l)")
	[ $_result = 0 ] && [ -n "$_got" ] && [ "$_got" = "$_expected" ] || { echo "$_got; expected $_expected"; return 1; }
}

# inline BYTES: how much data a capsule of the port has space for.
inline() { leave && close_port && echo "$1" >$port/param_inline_data_size && open_port && connect; }
# Small writes go in the capsule, which saves the target reading them: two packets of each. The bytes are the same.
case_capsule()
{
	_without=$(inline 0 && written) && random_pieces 2 && zeroed blkdiscard -o 1048576 -l 1048576 "$disk" &&
		_with=$(inline 16384 && written) && inline 16384 && random_pieces $((pieces / 4 + 2)) ||
		{ inline 4096; return 1; }
	inline 4096 && [ "$_without" -ge $((_with + 128)) ] || { echo "$_without packets without, $_with with"; return 1; }
}
# How many packets it takes to write 128 sectors one by one, each of which is seen at the other side.
written()
{
	_before=$(packets)
	dd if="$dir/a" of="$disk" bs=512 count=128 oflag=direct 2>/dev/null || return
	# Counters are read anew after a while.
	sleep 0.1
	_after=$(packets)
	forget
	same $((64 << 10)) "$dir/a" $behind >&2 && echo $((_after - _before))
}
# The model counts requests. It sends one more where the target reads.
packets()
{
	if [ -n "$KFI_NIC" ]; then
		nic_count send_ops
	else
		cat /sys/class/infiniband/$ep_device/ports/1/hw_counters/sent_pkts
	fi
}

# The target ends the keys of reads with its responses, so the host posts no invalidations: each read takes a
# registration and a command, a write of the target, and the response. Each side posts its two in one call. The kernel may
# read the table of partitions, too.
case_invalidated()
{
	anew keep_alive_tmo=0 && _calls=$(nic_count posts) && _requests=$(packets) &&
		copy if="$disk" of="$dir/b" bs=4k count=512 iflag=direct || return
	_calls=$(($(nic_count posts) - _calls)) _requests=$(($(packets) - _requests))
	[ $_requests -ge 2048 ] && [ $_requests -lt 2304 ] && [ $_calls -ge 1024 ] && [ $_calls -lt 1152 ] ||
		{ echo "$_requests requests, $_calls calls"; return 1; }
}
# Of eight reads that the block layer has at once, the host posts all registrations and commands in one call. The target
# posts once for each.
case_batched()
{
	anew keep_alive_tmo=0 && _calls=$(nic_count posts) &&
		LD_LIBRARY_PATH=$fio quiet $fio/fio --name=batched --filename="$disk" --rw=randread --bs=4k --number_ios=1024 \
			--direct=1 --ioengine=libaio --iodepth=8 --iodepth_batch=8 --iodepth_batch_complete_min=8 || return
	_calls=$(($(nic_count posts) - _calls))
	[ $_calls -ge 1152 ] && [ $_calls -lt 1408 ] || { echo "$_calls calls"; return 1; }
}

# While there is no I/O, the host sends keep-alives, also to a controller of discovery. A slow machine may be late with
# them, so the verdict is about what the target receives.
case_idle()
{
	for _to in nqn.2014-08.org.nvmexpress.discovery $nqn; do
		leave && echo >$tracing/trace && echo 1 >$requests/enable && try "nqn=$_to,keep_alive_tmo=2,reconnect_delay=1" &&
			wait_for 120 kept_alive 3
		_result=$?
		echo 0 >$requests/enable
		[ $_result = 0 ] || { echo "$_to:"; tail -n 5 $tracing/trace; return 1; }
	done
	wait_for 60 found && copy if="$disk" of=/dev/null bs=4k count=1 iflag=direct
}
kept_alive() { [ "$(grep -c 'qid=0, .*cmd=(nvme_admin_keep_alive' $tracing/trace)" -ge "$1" ]; }

# A response arrives a second before the device reports that its command was sent. The read that does not find this
# report arms the queue for it. Without that, the request ends when it times out. Two completions are late: the target's
# receive and the host's send.
case_early()
{
	_faults=/sys/kernel/debug/kfi_nic/$ep_device
	mark_log
	anew keep_alive_tmo=0 && copy if="$dir/a" of="$disk" bs=4k count=1 oflag=direct && echo 1000 >"$_faults/delay_ms" || return
	# Completions of another request may be the late ones.
	wait_for 20 is_early
	_result=$?
	echo 0 >"$_faults/late"
	[ $_result = 0 ] && same 4096 "$dir/a" "$dir/b" && ! times_out
}
is_early()
{
	echo 2 >"$_faults/late" && within 600 copy if="$disk" of="$dir/b" bs=4k count=1 iflag=direct && [ $_took -ge 2 ]
}

# All atomic allocations of the writing task fail. The task submits 64 writes at once on a new connection, so kfi_send()
# must allocate, and returns -ENOMEM. The block layer queues these requests again, and the data are right.
refusals=$tracing/events/kfi/kfi_refused
case_no_memory()
{
	anew && allow_faults && set_fault failslab/ignore-gfp-wait Y && set_fault fail_page_alloc/ignore-gfp-wait Y &&
		echo >$tracing/trace && echo 1 >$refusals/enable || return
	{
		echo 1 >/proc/self/make-it-fail
		LD_LIBRARY_PATH=$fio quiet $fio/fio --name=no_memory --filename="$disk" --rw=randwrite --bs=4k --size=1M --direct=1 \
			--ioengine=libaio --iodepth=64 --iodepth_batch=64 --iodepth_batch_complete_min=64 --verify=crc32c
	} &
	wait $!
	_result=$?
	forbid_faults
	echo 0 >$refusals/enable
	[ $_result = 0 ] && grep -q "call=send .* err=-12 " $tracing/trace || { tail -n 5 $tracing/trace; return 1; }
}

# No request of any case has ended by its timeout, which recovery would hide. A slow machine gets more time.
default_timeouts() { timeouts 120; }
case_in_time() { _mark=$_beginning; ! times_out; }

lacks()
{
	case $1 in
	sent_punched) fallocate --help 2>&1 | grep -q punch || echo "no fallocate that punches holes" ;;
	fio | uring | polled_io | batched | no_memory)
		[ -x $fio/fio ] || echo "no fio"
		[ -e /proc/sysvipc/shm ] && [ -e /proc/sys/fs/aio-max-nr ] || echo "no shared memory or asynchronous I/O for fio"
		;;
	early) [ -n "$KFI_NIC" ] || echo "no model NIC" ;;
	invalidated)
		[ -n "$KFI_NIC" ] || echo "no model NIC"
		[ "$(verbs_column)" != iwarp ] || echo "over iWARP, the target registers memory"
		;;
	odd) busybox true 2>/dev/null || echo "no busybox" ;;
	vectors)
		[ "$transport" != rdma ] || echo "nvme-rdma has its completion queues from a pool"
		traces_commands && [ -e $alloc/enable ] || echo "the kernel has no event rdma_core:cq_alloc"
		;;
	tos) traces_commands && [ -e $service/enable ] || echo "the kernel has no event rdma_cma:cm_send_req" ;;
	esac
	case $1 in
	sent_* | idle | polled_io) traces_commands || echo "the kernel has no event nvmet:nvmet_req_init" ;;
	esac
	case $1 in
	no_memory)
		[ -e /proc/self/make-it-fail ] || echo "the kernel has no failslab"
		traces_commands && [ -e $refusals/enable ] || echo "the kernel has no event kfi:kfi_refused"
		;;
	batched) [ -n "$KFI_NIC" ] || echo "no model NIC" ;;
	uring | polled_io) [ "$(cat /proc/sys/kernel/io_uring_disabled 2>/dev/null)" = 0 ] || echo "no io_uring" ;;
	esac
}

mark_log
_beginning=$_mark
run nvme limits sizes odd sent_read sent_write sent_fua sent_flush sent_discard sent_zeroes sent_punched data random together \
	fio uring polled polled_io tos flush discard zeroes again queues vectors capsule invalidated batched idle early no_memory in_time
finish
