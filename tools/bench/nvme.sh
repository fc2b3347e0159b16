#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# nvme.sh ROUNDS [wall]
#
# What a request costs by kfi_nvme, and by the kernel's own nvme-rdma, of the same target in the same guest
# (tools/bench/run): medians of rounds that take turns. In a guest whose clock counts instructions, one a
# nanosecond, all of it is counted, target and device, too. A line is
#	nvme: WORK KFI_NVME NVME_RDMA RATIO
# in thousands of instructions; a ratio above 1 is fewer by kfi_nvme. In wall time it is
#	wall: WORK KFI_NVME_IOPS KFI_NVME_MB_S NVME_RDMA_IOPS NVME_RDMA_MB_S RATIO
# where a ratio above 1 is more by kfi_nvme.

# shellcheck source=../testing/selftests/kfi/lib.sh
. /kfi/selftests/lib.sh
# shellcheck source=../testing/selftests/kfi/nvme_target.sh
. /kfi/selftests/nvme_target.sh

rounds=${1:-5} unit=${2:-instructions}
# More requests where the host's time is another's, too.
[ $unit = wall ] && times=4 || times=1
dir=$(mktemp -d) || exit
trap 'rm -rf "$dir"' EXIT

now() { sed -n 's/^now at \([0-9]*\) nsecs$/\1/p' /proc/timer_list | head -n 1; }

# in_order read|write DISK SIZE JOBS COUNT: so many requests by each of so many at once, each in a place of its own
in_order()
{
	_begin=$(now)
	_job=0 _jobs=
	while [ $_job -lt "$4" ]; do
		if [ "$1" = read ]; then
			dd if="$2" of=/dev/null bs="$3" count="$5" skip=$((_job * $5)) iflag=direct 2>/dev/null &
		else
			dd if=/dev/zero of="$2" bs="$3" count="$5" seek=$((_job * $5)) oflag=direct 2>/dev/null &
		fi
		_jobs="$_jobs $!" _job=$((_job + 1))
	done
	for _job in $_jobs; do
		wait "$_job" || return
	done
	echo $(($(now) - _begin))
}

# random read|write DISK SIZE DEPTH COUNT: so many requests, anywhere on the disk, so many of them at a time
random()
{
	LD_LIBRARY_PATH=/kfi/fio /kfi/fio/fio --name=random --filename="$2" --direct=1 --rw="rand$1" --bs="$3" \
		--ioengine=libaio --iodepth="$4" --size=1G --number_ios="$5" --norandommap --randseed=1 \
		--clocksource=clock_gettime --eta=never --output-format=terse --terse-version=3 >"$dir/fio" || return
	# How many milliseconds it took.
	awk -F ';' -v how="$1" '/^3;/ { ms = $(how == "read" ? 9 : 50) } END { print ms * 1000000; exit !ms }' "$dir/fio"
}

# What a request takes in nanoseconds: EACH read|write DISK SIZE AT_ONCE COUNT
each_in_order()
{
	# Without what it takes to begin.
	_nothing=$(in_order "$1" "$2" "$3" "$4" 0) && _all=$(in_order "$@") && echo $(((_all - _nothing) / ($4 * $5)))
}
each_random()
{
	_all=$(random "$@") && echo $((_all / $5))
}

# work NAME EACH SIZE AT_ONCE COUNT: reading and writing
work()
{
	_count=$(($5 * times))
	for _how in read write; do
		_name=$1$_how.$3.$4 _round=0
		while [ $_round -lt $rounds ]; do
			_round=$((_round + 1))
			for _host in kfi_nvme nvme; do
				"$2" $_how /dev/${_host}0n1 "$3" "$4" $_count >>"$dir/$_name.$_host" || return
			done
		done
		for _host in kfi_nvme nvme; do
			sort -n "$dir/$_name.$_host" | sed -n "$((rounds / 2 + 1))p"
		done | awk -v name="$_name" -v unit=$unit '
			{ cost[NR] = $1 }
			END {
				ratio = cost[2] / cost[1]
				if (unit != "wall") {
					printf "nvme: %-16s %9.1f %9.1f %6.2f\n", name, cost[1] / 1e3, cost[2] / 1e3, ratio
					exit
				}
				split(name, part, ".")
				size = part[2] * (part[2] ~ /M/ ? 1048576 : 1024)
				printf "wall: %-16s", name
				for (i = 1; i <= 2; i++)
					printf " %8.0f %8.2f", 1e9 / cost[i], 1e3 * size / cost[i]
				printf " %6.2f\n", ratio
			}'
	done
}

modprobe nvme-rdma && ep_device_up && target_up $ep_address && load kfi_nvme || exit
_options="traddr=$ep_address,trsvcid=4420,nqn=kfi,nr_io_queues=1,keep_alive_tmo=600"
echo "$_options" >/dev/kfi_nvme && echo "transport=rdma,$_options" >/dev/nvme-fabrics &&
	wait_for 30 test -b /dev/nvme0n1 && wait_for 30 test -b /dev/kfi_nvme0n1 || exit
sleep 1
work rand each_random 4k 1 2000
work rand each_random 4k 32 2000
work "" each_in_order 128k 1 60
work "" each_in_order 128k 2 30
work "" each_in_order 1M 1 16
work "" each_in_order 1M 2 8
