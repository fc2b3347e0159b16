#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The NVMe over Fabrics host (samples/nvme) against the kernel's own target, nvmet-rdma, in the same
# machine: data, a file system, leaving and coming back, and what goes wrong.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nvme_target.sh"
. "$(dirname "$0")/nvme_io.sh"

# How many random pieces, disturbances, and connections to who can't be trusted. KFI_SOAK is how much of the
# long form there is to be, in percent: some 8 GiB, 51, and 2000, of which come some ten thousand answers.
pieces=$((60 * ${KFI_SCALE:-100} / 100 + 4)) disturbances=3 rogues=$((60 * ${KFI_SCALE:-100} / 100))
# So many times 4 MiB of memory are swapped.
blocks=4
if [ -n "$KFI_SOAK" ]; then
	pieces=$((225 * KFI_SOAK + 4)) disturbances=$((51 * KFI_SOAK / 100 + 1)) rogues=$((20 * KFI_SOAK))
	blocks=$((4 + KFI_SOAK / 4))
fi
seen="$disk $behind"
calls="reg regv regbv regsgl regattr"
sent="sent_read sent_write sent_fua sent_flush sent_discard sent_zeroes sent_punched"
names="connect limits sizes $sent data random together fio flush discard zeroes partitions ext4 xfs swap again $calls capsule idle
	namespace grown full wrong_nqn wrong_host wrong_port wrong_options rogue ways held disturbed given_up unload removal"
dir=$(mktemp -d) || exit

end()
{
	rm -rf "$dir"/ram/*
	swapoff $disk
	umount "$dir/ram" "$dir/mnt"
	rmdir "$dir/cgroup/kfi"
	umount "$dir/cgroup"
	rmmod kfi_nvme; rmmod kfi_rogue 2>/dev/null
	ep_device_down
	target_down
	rm -rf "$dir"
} 2>/dev/null
trap end EXIT

# [OPTION=VALUE,...]
connect()
{
	echo "traddr=$ep_address,trsvcid=4420,nqn=kfi,reconnect_delay=1,$1" >/dev/kfi_nvme &&
		wait_for 30 test -b $disk
}
leave()
{
	echo disconnect=0 >/dev/kfi_nvme && ! test -b $disk
}

forget() { echo 3 >/proc/sys/vm/drop_caches; }
same_behind()
{
	forget
	same $((4 << 20)) "$1" $behind
}

limits()
{
	_queue=/sys/block/kfi_nvme0n1/queue
	_is="$(cat /sys/block/kfi_nvme0n1/size) $(cat $_queue/logical_block_size) $(cat $_queue/write_cache)"
	[ "$_is" = "2097152 512 write back" ] && [ "$(cat $_queue/max_hw_sectors_kb)" -ge 512 ] ||
		{ echo "$_is"; grep . $_queue/max*; return 1; }
}

# Each size written and read direct, and seen at the other side.
sizes()
{
	for _bs in 512 1024 4096 12288 65536 262144 1048576; do
		copy if="$dir/a" of=$disk bs=$_bs count=4 seek=1 oflag=direct &&
			copy if=$disk of="$dir/b" bs=$_bs count=4 skip=1 iflag=direct &&
			copy if=$behind of="$dir/c" bs=$_bs count=4 skip=1 iflag=direct &&
			same $((4 * _bs)) "$dir/a" "$dir/b" && same $((4 * _bs)) "$dir/b" "$dir/c" ||
			{ echo "of $_bs bytes"; return 1; }
	done
}

# What the target gets for I/O, as its own event says: opcode, first block, length (0 is one block) and the
# control bits, FUA and DEAC among them.
tracing=/sys/kernel/tracing
requests=$tracing/events/nvmet/nvmet_req_init
traces_commands()
{
	[ -e $tracing/trace ] || mount -t tracefs tracefs $tracing 2>/dev/null
	[ -e $requests/enable ]
}
# gets COMMANDS COMMAND...: that is what the target gets, and nothing else, while a command runs.
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
sent_read()
{
	gets "1 read $_blocks, ctrl=0x0" copy if=$disk of="$dir/b" bs="$_bs" count=1 skip=5 iflag=direct
}
sent_write()
{
	gets "1 write $_blocks, ctrl=0x0" copy if="$dir/a" of=$disk bs="$_bs" count=1 seek=5 oflag=direct
}
flushes="1 flush cdw10=$(printf '00 %.0s' $(seq 23))00"
sent_fua()
{
	gets "1 write $_blocks, ctrl=0x4000
$flushes" copy if="$dir/a" of=$disk bs="$_bs" count=1 seek=5 oflag=direct,dsync
}
sent_flush()
{
	gets "$flushes" copy if=/dev/null of=$disk count=0 conv=notrunc,fsync
}
# A megabyte into the disk, where it shows that blocks are not bytes.
sent_discard() { gets "1 dsm nr=0, attributes=4" blkdiscard -f -o 1048576 -l 65536 $disk; }
sent_zeroes()
{
	gets "1 write_zeroes slba=2048, len=127, ctrl=0x0" blkdiscard -f -z -o 1048576 -l 65536 $disk
}
# Zeroes that need no room.
sent_punched()
{
	gets "1 write_zeroes slba=2048, len=127, ctrl=0x200
$flushes" fallocate --punch-hole --keep-size -o 1048576 -l 65536 $disk
}

# By the page cache, and back.
data()
{
	copy if="$dir/a" of=$disk bs=64k conv=fsync && same_behind "$dir/a" &&
		same $((4 << 20)) "$dir/a" $disk
}

# Four at once, each in a place of its own.
together()
{
	_jobs=
	for _i in 1 2 3 4; do
		{
			copy if="$dir/a" of=$disk bs=16k seek=$((_i * 256)) count=256 oflag=direct &&
				copy if=$disk of="$dir/got.$_i" bs=128k skip=$((_i * 32)) count=32 iflag=direct &&
				same $((4 << 20)) "$dir/a" "$dir/got.$_i"
		} &
		_jobs="$_jobs $!"
	done
	for _i in $_jobs; do
		wait "$_i" || return
	done
}

# fio writes random blocks with checksums and reads them back, and then finds them at the target.
fio=/kfi/fio
fio_verifies()
{
	_jobs="--name=verified --rw=randwrite --bssplit=4k/60:64k/30:512k/10 --size=8M --numjobs=2 --offset_increment=8M
		--ioengine=libaio --iodepth=8 --direct=1 --verify=crc32c --verify_fatal=1 --randseed=$seed
		--fallocate=none --group_reporting --eta=never --output=$dir/fio"
	# shellcheck disable=SC2086
	for _from in "$disk" "$behind --verify_only"; do
		LD_LIBRARY_PATH=$fio quiet $fio/fio $_jobs --filename=$_from || { cat "$dir/fio"; return 1; }
	done
}

flush()
{
	copy if="$dir/a" of=$disk bs=4k count=8 conv=fsync && copy if="$dir/a" of=$disk bs=4k count=8 oflag=direct,dsync
}

# zeroed COMMAND...: it leaves zeroes in the second MiB, and nowhere else.
zeroed()
{
	copy if="$dir/a" of=$disk bs=1M conv=fsync && "$@" && forget &&
		copy if=$disk of="$dir/b" bs=1M count=4 iflag=direct &&
		cp "$dir/a" "$dir/c" && copy if=/dev/zero of="$dir/c" bs=1M seek=1 count=1 conv=notrunc &&
		same $((4 << 20)) "$dir/b" "$dir/c"
}

# Two partitions, of which the first gets a file system that blkid knows, and both keep to themselves. The table goes
# again.
partitions()
{
	printf 'label: dos\n2048,131072,83\n133120,,83\n' >"$dir/table"
	quiet sfdisk $disk <"$dir/table" && wait_for 10 test -b ${disk}p2 && in_partitions
	_result=$?
	copy if=/dev/zero of=$disk bs=1M count=1 oflag=direct && quiet blockdev --rereadpt $disk &&
		wait_for 10 not test -b ${disk}p1 && return $_result
}
in_partitions()
{
	[ "$(cat /sys/block/kfi_nvme0n1/kfi_nvme0n1p1/size)" = 131072 ] &&
		quiet mke2fs -q -F -t ext4 -L first ${disk}p1 && copy if="$dir/a" of=${disk}p2 bs=64k oflag=direct &&
		[ "$(blkid -o value -s LABEL -s TYPE ${disk}p1 | xargs)" = "first ext4" ] &&
		[ "$(blkid -o value -s PTTYPE $disk)" = dos ] && quiet e2fsck -f -n ${disk}p1 &&
		forget && same $((4 << 20)) "$dir/a" ${disk}p2 &&
		copy if=$behind of="$dir/b" bs=1M skip=65 count=4 iflag=direct && same $((4 << 20)) "$dir/a" "$dir/b"
}
not() { ! "$@"; }

make_ext4() { mke2fs -q -F -t ext4 $disk; }
check_ext4() { e2fsck -f -n $disk; }
make_xfs() { mkfs.xfs -q -f $disk; }
check_xfs() { xfs_repair -n $disk; }

# mounted KIND: a file system, whose files are as they were after it was mounted again, and in which its checker
# finds nothing.
mounted()
{
	quiet make_$1 && mount -t "$1" $disk "$dir/mnt" || return
	for _i in 1 2 3; do
		mkdir "$dir/mnt/$_i" && cp -r "$here" "$dir/a" "$dir/mnt/$_i" || return
	done
	(cd "$dir/mnt" && find . -type f | sort | xargs md5sum) >"$dir/sums"
	[ "$(wc -l <"$dir/sums")" -gt 30 ] && umount "$dir/mnt" && forget && quiet check_$1 &&
		mount -t "$1" $disk "$dir/mnt" && (cd "$dir/mnt" && quiet md5sum -c "$dir/sums") &&
		same $((4 << 20)) "$dir/a" "$dir/mnt/3/a" && umount "$dir/mnt" && quiet check_$1
}
# Says something only if it fails.
quiet()
{
	"$@" >"$dir/said" 2>&1 || { echo "$*:"; cat "$dir/said"; return 1; }
}

# Memory that is swapped to the disk, and back: by who may not have as much, and by the kernel's own thread
# that sees to it that some is free. All that I/O takes there is on the way of freeing memory.
swapped()
{
	swaps && return
	# Nothing else works while there is memory on the disk.
	swapoff $disk
	umount "$dir/ram"
	return 1
}
swaps()
{
	! [ -e /sys/module/zswap/parameters/enabled ] || echo N >/sys/module/zswap/parameters/enabled
	quiet mkswap $disk && swapon $disk && mkdir -p "$dir/ram" && mount -t tmpfs none "$dir/ram" || return
	_reserve=$(of_reserve)
	if limited_group; then
		_swapped=$(swapped_pages)
		(echo 0 >"$group/cgroup.procs" && fill_memory) && pages_swapped_since "$_swapped" &&
			memory_as_filled && rm "$dir"/ram/* && rmdir "$group" || return
	fi
	fill_memory || return
	_swapped=$(swapped_pages)
	_min=$(cat /proc/sys/vm/min_free_kbytes)
	# With as much to be free as there is just now it wants more.
	awk '/^MemFree/ { print int($2 * 0.88) }' /proc/meminfo >/proc/sys/vm/min_free_kbytes
	wait_for 60 pages_swapped_since "$_swapped"
	_result=$?
	echo "$_min" >/proc/sys/vm/min_free_kbytes
	# Who frees memory has regions in any case.
	[ $_result = 0 ] && { [ "$_reserve" = none ] || [ "$(of_reserve)" -gt "$_reserve" ] ||
		{ echo "nothing came of the reserve"; return 1; }; } &&
		memory_as_filled && swapoff $disk && memory_as_filled && umount "$dir/ram"
}
# How many regions were made of what is reserved, if the kernel says so.
of_reserve()
{
	grep -q debugfs /proc/mounts || mount -t debugfs none /sys/kernel/debug 2>/dev/null
	cat /sys/kernel/debug/kfi_verbs/*/pool 2>/dev/null |
		awk '/^of_reserve/ { some += $2; found = 1 } END { print found ? some : "none" }'
}
# A group that is held to 8 MiB of memory, if the kernel has such. With memory.max, memory that is read back
# while the disk is slow could find no room, which the kernel takes for being out of memory.
limited_group()
{
	group=$dir/cgroup/kfi
	mkdir -p "$dir/cgroup" && mount -t cgroup2 none "$dir/cgroup" 2>/dev/null &&
		grep -q memory "$dir/cgroup/cgroup.controllers" && echo +memory >"$dir/cgroup/cgroup.subtree_control" &&
		mkdir "$group" && echo 8M >"$group/memory.high"
}
fill_memory()
{
	_i=0
	while [ $_i -lt $blocks ]; do
		_i=$((_i + 1))
		copy if="$dir/a" of="$dir/ram/$_i" bs=64k iflag=skip_bytes skip=$((_i * 4104)) || return
		[ $((_i % 5)) != 0 ] || progress "$_i of $blocks blocks of memory written"
	done
}
memory_as_filled()
{
	_i=0
	while [ $_i -lt $blocks ]; do
		_i=$((_i + 1))
		cmp "$dir/a" "$dir/ram/$_i" $((_i * 4104)) || return
		[ $((_i % 5)) != 0 ] || progress "$_i of $blocks blocks of memory compared"
	done
}
# Not every kernel counts what it has written.
swapped_pages() { awk 'NR > 1 { used += $4 } END { print int(used / 4) }' /proc/swaps; }
pages_swapped_since() { [ $(($(swapped_pages) - $1)) -ge 1024 ]; }

again()
{
	copy if="$dir/a" of=$disk bs=64k && leave && connect && forget &&
		same $((4 << 20)) "$dir/a" $disk
}

# The memory of I/O is registered by that call. By kfi_mr_reg() a request is in one piece.
registered_by()
{
	leave && connect "register=$1" || return
	_segments=$(cat /sys/block/kfi_nvme0n1/queue/max_segments)
	if [ "$1" = reg ]; then
		[ "$_segments" = 1 ]
	else
		[ "$_segments" -gt 1 ]
	fi || { echo "$_segments segments"; return 1; }
	random_pieces $((pieces / 12 + 1))
}

# Small writes go in the capsule, which saves the target reading them: two packets of each. Without it is
# the same data.
in_capsule()
{
	_without=$(leave && connect in_capsule=0 && written) &&
		random_pieces 2 && zeroed blkdiscard -o 1048576 -l 1048576 $disk || return
	_with=$(leave && connect && written) && [ "$_without" -ge $((_with + 128)) ] ||
		{ echo "$_without packets without, $_with with"; return 1; }
}
# How many packets it takes to write 128 sectors one by one, each of which is seen at the other side.
written()
{
	_before=$(packets)
	dd if="$dir/a" of=$disk bs=512 count=128 oflag=direct 2>/dev/null || return
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

# Silence for longer than the target puts up with: the host says that it is there.
idle()
{
	mark_log
	leave && connect keep_alive_tmo=1 && sleep 4 && copy if=$disk of=/dev/null bs=4k count=1 iflag=direct &&
		! since_mark | grep "^kfi_nvme: .*connection is broken" && leave && connect
}

# A namespace that the target has taken away, and gives back.
namespace()
{
	echo 0 >$subsystem/namespaces/1/enable
	fails_to_read
	_result=$?
	echo 1 >$subsystem/namespaces/1/enable
	[ $_result = 0 ] && copy if=$disk of=/dev/null bs=4k count=1 iflag=direct
}

# Another namespace, a file that grows, and then is taken away, which the host finds when it connects again.
grown()
{
	_space=$subsystem/namespaces/2
	_second=${disk%1}2
	copy if="$dir/a" of="$dir/file" bs=1M count=2 && mkdir $_space && echo 1 >$_space/buffered_io &&
		echo "$dir/file" >$_space/device_path && echo 1 >$_space/enable && leave && connect &&
		wait_for 10 sectors_are 4096 && grows && echo 0 >$_space/enable && connects_again &&
		wait_for 60 is_gone
	_result=$?
	echo 0 >$_space/enable
	rmdir $_space
	leave && connect && rm "$dir/file" && return $_result
}
grows()
{
	copy if="$dir/a" of="$dir/file" bs=1M skip=2 seek=2 count=2 && echo 1 >$_space/revalidate_size &&
		connects_again && wait_for 60 sectors_are 8192 &&
		copy if=$_second of="$dir/b" bs=1M count=4 iflag=direct && same $((4 << 20)) "$dir/a" "$dir/b"
}
sectors_are() { [ "$(cat "/sys/block/${_second#/dev/}/size")" = "$1" ]; } 2>/dev/null
connects_again() { close_port && sleep 0.3 && open_port; }
is_gone() { ! dd if=$_second of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null; }

# The target has room for one.
full()
{
	leave && echo 1 >$subsystem/attr_cntlid_max && wait_for 30 connect &&
		fails "connect: controller busy" "Device or resource busy"
	_result=$?
	echo 65519 >$subsystem/attr_cntlid_max
	return $_result
}

# fails WORDS ERROR OPTION=VALUE,...: connecting fails with that, and the log says why.
fails()
{
	mark_log
	! printf %s "traddr=$ep_address,trsvcid=4420,nqn=kfi${3:+,$3}" | dd of=/dev/kfi_nvme 2>"$dir/said" || return
	since_mark | grep -q "^kfi_nvme: .*$1" && grep -q ": $2\$" "$dir/said" || { since_mark; cat "$dir/said"; return 1; }
}
# What is no use at all, and what leads nowhere.
wrong_options()
{
	fails "unknown, or of no such value: colour=red" "Invalid argument" colour=red &&
		fails "unknown, or of no such value: queue_size=1" "Invalid argument" queue_size=1 &&
		fails "no way to 203.0.113.1" "No data available" traddr=203.0.113.1 &&
		! echo disconnect=7 >/dev/kfi_nvme 2>/dev/null
}
wrong_host()
{
	echo 0 >$subsystem/attr_allow_any_host
	fails "not allowed" "Permission denied"
	_result=$?
	echo 1 >$subsystem/attr_allow_any_host
	return $_result
}

# Targets that can't be trusted, of which some answers are wrong, by a seed that the log has: connecting fails,
# or I/O, or nothing. The target of the kernel's finds everything as before.
rogue()
{
	leave && load kfi_rogue address=0xc6336401 "seed=$seed" || return
	_n=0 _connected=0
	while [ $_n -lt $rogues ]; do
		_n=$((_n + 1))
		[ $((_n % 100)) != 0 ] || progress "$_n of $rogues connections to who can't be trusted"
		echo "traddr=$ep_address,trsvcid=4421,nqn=kfi,ctrl_loss_tmo=0,nr_io_queues=1" >/dev/kfi_nvme || continue
		_connected=$((_connected + 1))
		# What isn't a disk would become a file.
		if test -b $disk; then
			dd if=$disk of=/dev/null bs=4k count=16 iflag=direct
			dd if="$dir/a" of=$disk bs=2k count=8 oflag=direct
		fi
		leave || return
	done 2>/dev/null
	rmmod kfi_rogue && [ $_connected -gt 0 ] && connect && random_pieces 2
}

# Targets each of whose answers to I/O is wrong in one way: what the log says then, and that nobody gets at
# memory without a key that is good for it. What comes of another key's end, of none, and of two answers isn't
# said: that depends on what is sooner.
ways()
{
	leave || return
	while read -r _way _says; do
		# What is forbidden may not have been tried when the connection ended: another one then.
		case $_says in *forbidden*) _tries=20 ;; *) _tries=1 ;; esac
		while one_way "$_way" && ! grep -q ": $_says" "$dir/log" && [ $_tries -gt 1 ]; do
			_tries=$((_tries - 1))
		done
		nobody_gets_in && grep -q ": $_says" "$dir/log" ||
			{ echo "way $_way:"; grep kfi "$dir/log"; return 1; }
	done <<-END
		0 a response of [0-9]* bytes
		1 queue 1: a response to nothing
		6 .* connections
		7 .* connections
		8 .* connections
		9 .* wrong; [1-9][0-9]* forbidden
		11 .* wrong; [1-9][0-9]* forbidden
		12 .* wrong; [1-9][0-9]* forbidden
		13 queue 1: a response to nothing
	END
	connect && random_pieces 2
}
# A target whose answers are wrong in that way, and what the log says of it.
one_way()
{
	mark_log
	load kfi_rogue address=0xc6336401 way="$1" || return
	{
		# Of so few tags some come again.
		echo "traddr=$ep_address,trsvcid=4421,nqn=kfi,ctrl_loss_tmo=0,nr_io_queues=1,in_capsule=0,io_timeout=5" \
			"queue_size=4" >/dev/kfi_nvme
		! test -b $disk || for _n in 1 2 3; do
			dd if=$disk of="$dir/b" bs=4k count=1 skip=$_n iflag=direct
			dd if="$dir/a" of=$disk bs=4k count=1 oflag=direct
		done
		leave
	} 2>/dev/null
	rmmod kfi_rogue && since_mark >"$dir/log" && nobody_gets_in
}
nobody_gets_in() { grep -q "^kfi_rogue: .* accesses refused, 0 done" "$dir/log"; }

# The port is closed under I/O of four at once, each in places of its own, and opened again: it goes on, and
# nothing is lost.
held()
{
	rm -f "$dir/begun"
	_jobs=
	for _i in 0 1 2 3; do
		{
			for _k in 0 1 2; do
				copy if="$dir/a" of=$disk bs=128k seek=$((32 * (1 + 4 * _k + _i))) oflag=direct || exit
				touch "$dir/begun"
			done
		} &
		_jobs="$_jobs $!"
	done
	wait_for 60 test -e "$dir/begun" && close_port || return
	sleep 2
	open_port || return
	for _i in $_jobs; do
		wait "$_i" || return
	done
	forget
	_k=1
	while [ $_k -le 12 ]; do
		copy if=$disk of="$dir/b" bs=1M count=4 skip=$((4 * _k)) iflag=direct &&
			same $((4 << 20)) "$dir/a" "$dir/b" || { echo "place $_k"; return 1; }
		_k=$((_k + 1))
	done
}

# So many disturbances of verified I/O, which goes on after each: the port is closed for a while, the namespace
# is taken away, of which errors come, and the link goes down and up.
disturbed()
{
	rm -f "$dir/stop" "$dir/ended" "$dir/progress"
	{
		again=1 random_pieces 1000000
		echo $? >"$dir/ended"
	} &
	_job=$! _round=0
	while [ $_round -lt $disturbances ] && goes_on; do
		case $((_round % 3)) in
		0) close_port && sleep 0.3 && open_port ;;
		1) echo 0 >$subsystem/namespaces/1/enable && sleep 0.1 &&
			echo 1 >$subsystem/namespaces/1/enable ;;
		2) cut_link ;;
		esac
		_round=$((_round + 1))
		progress "$_round of $disturbances disturbances"
	done
	goes_on && touch "$dir/stop" && wait $_job && rm "$dir/stop" && [ $_round = $disturbances ] &&
		[ "$(cat "$dir/ended")" = 0 ]
}
# Over rxe nothing is connected any more after that (kfi_nvme(7)), so the device is made anew. The target doesn't
# listen there by itself.
cut_link()
{
	ip link set $ep_netdev down && sleep 0.3 && ip link set $ep_netdev up && ep_device_remove &&
		ep_device_add && close_port && open_port
}
# Two more pieces are written from here on.
goes_on()
{
	wait_for 10 test -s "$dir/progress" || return
	_then=$(cat "$dir/progress")
	wait_for 60 written_since $((_then + 2)) || { echo "no progress since piece $_then"; return 1; }
}
written_since() { [ "$(cat "$dir/progress")" -ge "$1" ] || [ -e "$dir/ended" ]; }

# The port is closed, and nobody wants to wait: errors.
given_up()
{
	leave && connect ctrl_loss_tmo=0 && close_port || return
	wait_for 30 fails_to_read
	_result=$?
	open_port
	leave && connect && return $_result
}
fails_to_read()
{
	! dd if=$disk of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null
}

# With a controller that nobody has left.
unloads()
{
	unload kfi_nvme && load kfi_nvme && connect
}

# The device goes under I/O, of a file system if there is one.
removed()
{
	leave && connect ctrl_loss_tmo=1 || return
	_file=$disk
	if has_file_system ext4 mke2fs e2fsck; then
		make_ext4 && mount -t ext4 $disk "$dir/mnt" || return
		_file=$dir/mnt/file
	fi
	rm -f "$dir/begun"
	# Only an error ends it.
	while dd if=/dev/zero of="$_file" bs=4k count=256 oflag=direct 2>"$dir/dd"; do : >"$dir/begun"; done &
	_job=$!
	wait_for 60 test -e "$dir/begun" && ep_device_remove && wait_for 60 fails_to_read && wait $_job || return
	! grep -q "$dir/mnt" /proc/mounts || umount "$dir/mnt" && unload kfi_nvme
}

# KFI_NVME names the cases that are to run.
names=${KFI_NVME:-$names}
wanted() { case " $names " in *[[:space:]]"${1#nvme.}"[[:space:]]*) ;; *) return 1 ;; esac; }
does() { ! wanted "$1" || check "$@"; }
lacks() { ! wanted "$1" || skip "$@"; }

plan "$(echo $names | wc -w)"
echo "# seed $seed"
modprobe -a ext4 xfs 2>/dev/null
mkdir "$dir/mnt"
if ! ep_device_up || ! target_up $ep_address || ! load kfi_nvme; then
	echo "# the target or the host is not there"
	exit 1
fi
nic_allow_target
dd if=/dev/urandom of="$dir/a" bs=1M count=4 2>/dev/null
does nvme.connect connect
does nvme.limits limits
does nvme.sizes sizes
if traces_commands; then
	for i in read write fua; do
		does nvme.sent_$i sent_each $i
	done
	for i in flush discard zeroes; do
		does nvme.sent_$i sent_$i
	done
	if fallocate --help 2>&1 | grep -q punch; then
		does nvme.sent_punched sent_punched
	else
		lacks nvme.sent_punched "no fallocate that punches holes"
	fi
else
	for i in $sent; do
		lacks nvme.$i "the kernel has no event nvmet:nvmet_req_init"
	done
fi
does nvme.data data
does nvme.random random_at_once $pieces
does nvme.together together
if [ -x $fio/fio ]; then
	does nvme.fio fio_verifies
else
	lacks nvme.fio "no fio"
fi
does nvme.flush flush
does nvme.discard zeroed blkdiscard -o 1048576 -l 1048576 $disk
does nvme.zeroes zeroed blkdiscard -z -o 1048576 -l 1048576 $disk
has_file_system()
{
	grep -q "$1\$" /proc/filesystems && command -v "$2" >/dev/null && command -v "$3" >/dev/null
}
if has_file_system ext4 mke2fs e2fsck && command -v sfdisk >/dev/null && command -v blkid >/dev/null; then
	does nvme.partitions partitions
else
	lacks nvme.partitions "no sfdisk, blkid or ext4"
fi
if has_file_system ext4 mke2fs e2fsck; then
	does nvme.ext4 mounted ext4
else
	lacks nvme.ext4 "no ext4"
fi
if has_file_system xfs mkfs.xfs xfs_repair; then
	does nvme.xfs mounted xfs
else
	lacks nvme.xfs "no xfs"
fi
if [ -e /proc/swaps ]; then
	does nvme.swap swapped
else
	lacks nvme.swap "no swap"
fi
does nvme.again again
for call in $calls; do
	does "nvme.$call" registered_by "$call"
done
does nvme.capsule in_capsule
does nvme.idle idle
does nvme.namespace namespace
does nvme.grown grown
does nvme.full full
does nvme.wrong_nqn fails "no such subsystem" "No such file or directory" nqn=other
does nvme.wrong_host wrong_host
does nvme.wrong_port fails "not connected" "Connection refused" trsvcid=4421
does nvme.wrong_options wrong_options
if [ "$(verbs_column)" = iwarp ]; then
	for i in rogue ways; do
		lacks nvme.$i "over iWARP, the target kfi_rogue can't register memory: it binds no region"
	done
else
	does nvme.rogue rogue
	does nvme.ways ways
fi
does nvme.held held
does nvme.disturbed disturbed
does nvme.given_up given_up
does nvme.unload unloads
does nvme.removal removed
finish
