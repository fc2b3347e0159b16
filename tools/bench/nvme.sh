#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# nvme.sh A B ROUNDS instructions|wall short|long
# nvme.sh A B ROUNDS profile REQUEST REQUESTS
#
# Compares two transports of the kernel's NVMe core, "kfi" or "rdma" each, in one guest (tools/bench/run). Both have
# a controller of the same target and namespace, the same number of queues and no I/O scheduler. The rounds take A and
# B in turns. A line is
#	instructions: A B REQUEST FIGURE_A FIGURE_B RATIO LOWEST HIGHEST
# in thousands of instructions for a request, or
#	wall: A B REQUEST FIGURE_A FIGURE_B RATIO LOWEST HIGHEST
# in requests for a second. Figures and RATIO are medians of the rounds; LOWEST and HIGHEST are ratios of single
# rounds. A ratio above 1 is in favour of A.
#
# "instructions" needs a guest whose clock counts instructions, one a nanosecond. All of them are counted, those of
# the target and of the device, too.
#
# "profile" prints no figures. In each round, it runs REQUESTS requests of A under mark 1 and as many of B under mark 2, for
# tools/bench/profile/run.
#
# fio's buffers are mapped files of a tmpfs. A "scattered" file is written in blocks of a page in random order: the
# pages of memory are allocated in that order, so that neighbours in the file are no neighbours in memory. A
# "contiguous" one is one huge page. A process that maps the file then shows in /proc/PID/pagemap that it is so.

# shellcheck source=../testing/selftests/kfi/lib.sh
. /kfi/selftests/lib.sh
# shellcheck source=../testing/selftests/kfi/nvme_target.sh
. /kfi/selftests/nvme_target.sh

a=$1 b=$2 rounds=$3 unit=$4 form=$5
# The part of the namespace that is used, for each job. It is written before: null_blk then has its memory.
part=32
runtime=500ms
[ "$unit.$form" != instructions.short ] || runtime=250ms
limit="--time_based --runtime=$runtime"
[ "$unit" != profile ] || limit=--number_ios=$6
dir=/bench
mkdir -p $dir/scattered $dir/contiguous || exit

fio() { LD_LIBRARY_PATH=/kfi/fio $exec /kfi/fio/fio --eta=never --clocksource=clock_gettime "$@"; }
exec=

# connect TRANSPORT: prints the disk of a new controller
connect()
{
	_said=$(
		exec 3<>/dev/nvme-fabrics || exit
		echo "transport=$1,traddr=$ep_address,trsvcid=4420,nqn=${subsystem##*/},keep_alive_tmo=600,ctrl_loss_tmo=-1$(
			)${poll:+,nr_poll_queues=1},nr_io_queues=$(nproc),duplicate_connect" >&3 && cat <&3
	) || return
	_disk=nvme$(echo "$_said" | sed 's/instance=\([0-9]*\),.*/\1/')n1
	# The disk is there before its queue takes a scheduler.
	wait_for 30 unscheduled "/sys/block/$_disk/queue/scheduler" 2>/dev/null && echo "/dev/$_disk"
}
unscheduled() { echo none >"$1" && grep -q '\[none\]' "$1"; }

# layout_file LAYOUT FILE: memory for the largest request
layout_file()
{
	rm -f "$2"
	case $1 in
	scattered) fio --name=scatter --filename="$2" --fallocate=none --rw=randwrite --bs=4k --size=16M \
		--randseed=1 >/dev/null ;;
	contiguous) dd if=/dev/zero of="$2" bs=2M count=1 2>/dev/null ;;
	esac
}

# extents FILE BYTES: how many pages do not follow the page before in memory
extents()
{
	_pages=$(($2 / 4096))
	# Fills the buffer and is busy with nothing until it is killed.
	(
		exec="exec"
		fio --name=hold --ioengine=null --thread --rw=write --bs="$2" --size=1T --time_based --runtime=1000 \
			--mem=mmapshared:"$1"
	) >/dev/null 2>&1 &
	_pid=$!
	mapped() { grep -q " $1\$" /proc/$_pid/maps && [ "$(counted "$1")" != 0 ]; }
	counted()
	{
		_at=$(awk -v file="$1" '$6 == file { sub("-.*", "", $1); print $1; exit }' /proc/$_pid/maps)
		# A page is two words of 32 bits: its number, and whether it is there.
		dd if=/proc/$_pid/pagemap bs=8 skip=$((0x$_at / 4096)) count=$_pages 2>/dev/null | od -An -v -w8 -tu4 | awk '
			$2 < 2147483648 { missing = 1 }
			$1 != last + 1 { n++ }
			{ last = $1 }
			END { print missing ? 0 : n }'
	}
	wait_for 60 mapped "$1"
	counted "$1"
	kill $_pid
	wait $_pid 2>/dev/null
}

# run read|write|randread|randwrite SIZE DEPTH JOBS ENGINE LAYOUT: prints lines of round, side, milliseconds and KiB.
# One fio runs all rounds, one after the other. Round 0 translates code.
run()
{
	_how=$1 _size=$2 _depth=$3 _jobs=$4 _engine=$5 _layout=$6
	case $_engine in
	polled) set -- --ioengine=io_uring --hipri ;;
	*) set -- --ioengine="$_engine" ;;
	esac
	# shellcheck disable=SC2086
	set -- "$@" --direct=1 --rw="$_how" --bs="$_size" --iodepth="$_depth" --size=${part}M \
		$limit --norandommap --randseed=1 --zero_buffers --scramble_buffers=0 \
		--disable_lat=1 --disable_clat=1 --disable_slat=1 --disable_bw_measurement=1 \
		--group_reporting --output-format=terse --terse-version=3
	_round=0
	while [ $_round -le "$rounds" ]; do
		_order="a b"
		[ $((_round % 2)) = 0 ] || _order="b a"
		for _side in $_order; do
			[ $_side = a ] && _disk=$disk_a _mark=1 || _disk=$disk_b _mark=2
			_job=0
			while [ $_job -lt "$_jobs" ]; do
				set -- "$@" --name="$_round $_side" --filename="$_disk" --offset=$((_job * part))M \
					--mem=mmapshared:$dir/$_layout/$_job
				# It begins when the jobs before have ended.
				[ $_job != 0 ] || set -- "$@" --stonewall
				[ $unit != profile ] || [ $_round = 0 ] || set -- "$@" --exec_prerun="/kfi/mark $_mark" \
					--exec_postrun="/kfi/mark 0"
				_job=$((_job + 1))
			done
		done
		_round=$((_round + 1))
	done
	fio "$@" >$dir/fio || { cat $dir/fio >&2; return 1; }
	awk -F ';' -v how="$_how" -v groups=$((2 * (rounds + 1))) '
		/^3;/ && $5 == 0 { at = how ~ /read/ ? 6 : 47; print $3, $(at + 3), $at; n++ }
		END { exit n != groups }' $dir/fio | grep -v '^0 '
}

# work read|write SIZE DEPTH JOBS ENGINE LAYOUT: compares A and B by such requests
work()
{
	case $2 in
	4k) _how=rand$1 _name=rand$1.$2.$3.$5 ;;
	*) _how=$1 _name=$1.$2.$4.$6 ;;
	esac
	_bytes=$((${2%?} * ($(case $2 in *M) echo 1048576 ;; *) echo 1024 ;; esac))))
	_file=0
	while [ $_file -lt "$4" ]; do
		layout_file "$6" $dir/"$6"/$_file || return
		_file=$((_file + 1))
	done
	run "$_how" "$2" "$3" "$4" "$5" "$6" >$dir/figures || return
	# Two pages can be neighbours by chance.
	_file=0
	while [ $_bytes -gt 4096 ] && [ $_file -lt "$4" ]; do
		_extents=$(extents $dir/"$6"/$_file $_bytes)
		case $6 in
		scattered) [ "$_extents" -ge $((_bytes / 4096 * 9 / 10)) ] ;;
		*) [ "$_extents" = 1 ] ;;
		esac || { echo "$_name: $((_bytes / 4096)) pages are in $_extents places of memory"; return 1; }
		_file=$((_file + 1))
	done
	awk -v name="$_name" -v unit="$unit" -v sides="$a $b" -v kib=$((_bytes / 1024)) '
		function sort(list, n,    i, j, k) {
			for (i = 2; i <= n; i++)
				for (j = i; j > 1 && list[j] < list[j - 1]; j--) {
					k = list[j]; list[j] = list[j - 1]; list[j - 1] = k
				}
		}
		function median(list, n) { return (list[int((n + 1) / 2)] + list[int(n / 2) + 1]) / 2 }
		{
			# Nanoseconds, or instructions, for a request.
			cost[$2, $1] = $3 * 1e6 * kib / $4
			if ($1 > n)
				n = $1
		}
		END {
			for (i = 1; i <= n; i++) {
				ratio[i] = cost["b", i] / cost["a", i]
				a[i] = unit == "wall" ? 1e9 / cost["a", i] : cost["a", i] / 1e3
				b[i] = unit == "wall" ? 1e9 / cost["b", i] : cost["b", i] / 1e3
			}
			sort(ratio, n); sort(a, n); sort(b, n)
			printf "%s: %s %s %.1f %.1f %.3f %.3f %.3f\n", unit, sides, name, median(a, n), median(b, n),
				median(ratio, n), ratio[1], ratio[n]
		}' $dir/figures
}

# Both disks are seen, each with its controller's transport.
modprobe nvme-core multipath=N
modprobe -a nvme-fabrics nvme-rdma && ep_device_up && target_up $ep_address || exit
case " $a $b " in *" kfi "*) load kfi_nvme || exit ;; esac
mount -t tmpfs -o huge=never,size=512M none $dir/scattered && mount -t tmpfs -o huge=always,size=64M none $dir/contiguous ||
	exit
poll=1
if ! disk_a=$(connect "$a") || ! disk_b=$(connect "$b"); then
	poll=
	disk_a=$(connect "$a") && disk_b=$(connect "$b") || exit
fi
for i in "$a $disk_a" "$b $disk_b"; do
	_queue=/sys/block/${i##*/}/queue
	echo "# ${i% *}: ${i#* }, $(ls "/sys/block/${i##*/}/mq" | wc -l) queues of $(cat "$_queue/nr_requests")," \
		"$(cat "$_queue/max_segments") segments, $(cat "$_queue/max_sectors_kb") KiB, scheduler $(cat "$_queue/scheduler")"
done
dd if=/dev/zero of="$disk_a" bs=1M count=$((2 * part)) oflag=direct 2>/dev/null || exit

if [ "$unit" = profile ]; then
	# shellcheck disable=SC2046
	set -- $(echo "$form" | awk -F . '$2 == "4k" { print $1, $2, $3, 1, $4, "scattered"; next }
		{ print $1, $2, 1, 1, "psync", $4 }')
	layout_file "$6" $dir/"$6"/0 && run "$@"
	exit
fi
# The short form has one line of each kind.
case $form in
short) engines=io_uring jobs=1 layouts=scattered ;;
*) engines="libaio io_uring${poll:+ polled}" jobs="1 2" layouts="scattered contiguous" ;;
esac
for i in $engines; do
	for depth in 1 32; do
		for how in read write; do
			work $how 4k $depth 1 "$i" scattered || exit
		done
	done
done
for layout in $layouts; do
	for size in 128k 1M; do
		for job in $jobs; do
			for how in read write; do
				work $how $size 1 "$job" psync "$layout" || exit
			done
		done
	done
done
