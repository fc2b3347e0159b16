#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck disable=SC2154
#
# What the kernel stacks on a disk of the NVMe transport: partitions, file systems, swap, device mapper, RAID.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nvme_target.sh"
. "$(dirname "$0")/nvme_host.sh"
. "$(dirname "$0")/nvme_io.sh"

# So many times 4 MiB of memory are swapped.
blocks=4
[ -z "$KFI_SOAK" ] || blocks=$((4 + KFI_SOAK / 4))
# The number of copies of the files in each file system.
copies=$((2 * ${KFI_SCALE:-100} / 100 + 1))
devices=2

clean_up()
{
	rm -rf "$dir"/ram/*
	swapoff "$disk"
	umount "$dir/ram" "$dir/mnt"
	rmdir "$dir/cgroup/kfi"
	umount "$dir/cgroup"
	dmsetup remove kfi_test
	mdadm --stop $raid
}

# Two partitions, of which the first gets a file system that blkid knows, and both keep to themselves. The table goes
# again.
case_partitions()
{
	printf 'label: dos\n2048,131072,83\n133120,,83\n' >"$dir/table"
	quiet sfdisk "$disk" <"$dir/table" && wait_for 10 test -b "${disk}p2" && in_partitions
	_result=$?
	copy if=/dev/zero of="$disk" bs=1M count=1 oflag=direct && quiet blockdev --rereadpt "$disk" &&
		wait_for 10 not test -b "${disk}p1" && return $_result
}
in_partitions()
{
	_name=${disk#/dev/}
	[ "$(cat "/sys/block/$_name/${_name}p1/size")" = 131072 ] &&
		quiet mke2fs -q -F -t ext4 -L first "${disk}p1" && copy if="$dir/a" of="${disk}p2" bs=64k oflag=direct &&
		[ "$(blkid -o value -s LABEL -s TYPE "${disk}p1" | xargs)" = "first ext4" ] &&
		[ "$(blkid -o value -s PTTYPE "$disk")" = dos ] && quiet e2fsck -f -n "${disk}p1" &&
		forget && same $((4 << 20)) "$dir/a" "${disk}p2" &&
		copy if=$behind of="$dir/b" bs=1M skip=65 count=4 iflag=direct && same $((4 << 20)) "$dir/a" "$dir/b"
}

make_ext4() { mke2fs -q -F -t ext4 "$1"; }
check_ext4() { e2fsck -f -n "$1"; }
make_xfs() { mkfs.xfs -q -f "$1"; }
check_xfs() { xfs_repair -n "$1"; }
make_btrfs() { mkfs.btrfs -q -f "$1"; }
check_btrfs() { btrfs check --check-data-csum "$1"; }

# mounted KIND DISK: a file system, whose files are as they were after it was mounted again, and in which its checker
# finds nothing.
mounted()
{
	quiet make_"$1" "$2" && mount -t "$1" "$2" "$dir/mnt" || return
	for _i in $(seq $copies); do
		mkdir "$dir/mnt/$_i" && cp -r "$here" "$dir/a" "$dir/mnt/$_i" || return
	done
	(cd "$dir/mnt" && find . -type f | sort | xargs md5sum) >"$dir/sums"
	[ "$(wc -l <"$dir/sums")" -gt 30 ] && umount "$dir/mnt" && forget && quiet check_"$1" "$2" &&
		mount -t "$1" "$2" "$dir/mnt" && (cd "$dir/mnt" && quiet md5sum -c "$dir/sums") &&
		same $((4 << 20)) "$dir/a" "$dir/mnt/$copies/a" && umount "$dir/mnt" && quiet check_"$1" "$2"
}
case_ext4() { mounted ext4 "$disk"; }
case_xfs() { mounted xfs "$disk"; }
case_btrfs() { mounted btrfs "$disk"; }

# mapped TABLE: a file system on a device of the device mapper.
mapped()
{
	quiet dmsetup create --noudevsync --noudevrules kfi_test --table "$1" &&
		_dm=/dev/dm-$(dmsetup info -c --noheadings -o minor kfi_test) && mounted ext4 "$_dm"
	_result=$?
	quiet dmsetup remove --noudevsync --noudevrules kfi_test && return $_result
}
case_crypt()
{
	mapped "0 262144 crypt aes-xts-plain64 $(printf 'a5%.0s' $(seq 64)) 0 $disk 0" &&
		! copy if=$behind bs=1M count=128 iflag=direct | tr -d '\0' | grep -q "The common parts of the test scripts"
}
# Two namespaces.
case_striped()
{
	two && mapped "0 262144 striped 2 16 $disk 0 $second 0"
	_result=$?
	remove_namespace 2 && return $_result
}
two() { add_namespace 2 /dev/nullb1 && gets_disk 2 && second=$(disk_of 2); }

# RAID 1 of two namespaces. Each has the bytes.
raid=/dev/md127
case_raid()
{
	two && quiet mdadm --create $raid --run --assume-clean --metadata=1.0 --level=1 --raid-devices=2 "$disk" "$second" &&
		mounted ext4 $raid && copy if="$dir/a" of=$raid bs=64k oflag=direct
	_result=$?
	quiet mdadm --stop $raid && forget && [ $_result = 0 ] && same $((4 << 20)) "$dir/a" "$disk" &&
		same $((4 << 20)) "$dir/a" "$second"
	_result=$?
	remove_namespace 2 && return $_result
}

# Memory that is swapped to the disk, and back: by a group that is held to less, and by the kernel's own thread that
# keeps some free. Each I/O request there is on the way to freeing memory.
case_swap()
{
	swaps && return
	# Nothing else works while there is memory on the disk.
	swapoff "$disk"
	umount "$dir/ram"
	return 1
}
swaps()
{
	! [ -e /sys/module/zswap/parameters/enabled ] || echo N >/sys/module/zswap/parameters/enabled
	quiet mkswap "$disk" && swapon "$disk" && mkdir -p "$dir/ram" && mount -t tmpfs none "$dir/ram" || return
	if limited_group; then
		_swapped=$(swapped_pages)
		(echo 0 >"$group/cgroup.procs" && fill_memory) && pages_swapped_since "$_swapped" &&
			memory_as_filled && rm "$dir"/ram/* && group_down || return
	fi
	fill_memory || return
	_swapped=$(swapped_pages)
	_min=$(cat /proc/sys/vm/min_free_kbytes)
	# With as much to be free as there is just now it wants more.
	awk '/^MemFree/ { print int($2 * 0.88) }' /proc/meminfo >/proc/sys/vm/min_free_kbytes
	wait_for 60 pages_swapped_since "$_swapped"
	_result=$?
	echo "$_min" >/proc/sys/vm/min_free_kbytes
	[ $_result = 0 ] && memory_as_filled && swapoff "$disk" && memory_as_filled && umount "$dir/ram"
}
# With memory.max, memory that is read back while the disk is slow could find no room, which the kernel takes for being
# out of memory.
limited_group() { group_up memory && echo 8M >"$group/memory.high"; }
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

# A group whose writes are limited to a MiB a second by the block layer: they wait, and arrive.
case_throttled()
{
	group_up io && echo "$(cat "/sys/block/${disk#/dev/}/dev") wbps=1048576" >"$group/io.max" || return
	_begun=$(cut -d . -f 1 /proc/uptime)
	(echo 0 >"$group/cgroup.procs" && copy if="$dir/a" of="$disk" bs=256k count=12 oflag=direct)
	_result=$?
	_took=$(($(cut -d . -f 1 /proc/uptime) - _begun))
	group_down
	[ $_result = 0 ] && [ $_took -ge 1 ] && forget && same $((3 << 20)) "$dir/a" $behind || { echo "$_took s"; return 1; }
}

# group_up CONTROLLER: a control group in $group, if the kernel has that controller.
group_up()
{
	group=$dir/cgroup/kfi
	mkdir -p "$dir/cgroup" && mount -t cgroup2 none "$dir/cgroup" 2>/dev/null || return
	grep -qw "$1" "$dir/cgroup/cgroup.controllers" && echo "+$1" >"$dir/cgroup/cgroup.subtree_control" &&
		mkdir "$group" && return
	umount "$dir/cgroup"
	return 1
}
# The group's pages of the page cache may keep it for a while.
group_down() { wait_for 30 rmdir "$group" && umount "$dir/cgroup"; }
has_mapper() { modprobe -a dm-mod "$@" 2>/dev/null && command -v dmsetup >/dev/null; }
lacks()
{
	case $1 in
	partitions) has_file_system ext4 sfdisk blkid || echo "no sfdisk, blkid or ext4" ;;
	ext4 | crypt | striped | raid) has_file_system ext4 mke2fs e2fsck || echo "no ext4" ;;
	xfs) has_file_system xfs mkfs.xfs xfs_repair || echo "no xfs" ;;
	btrfs) has_file_system btrfs mkfs.btrfs btrfs || echo "no btrfs" ;;
	swap) [ -e /proc/swaps ] || echo "no swap" ;;
	throttled) group_up io && group_down || echo "the kernel limits no I/O of groups" ;;
	esac
	case $1 in
	crypt) has_mapper dm-crypt || echo "no dm-crypt" ;;
	striped) has_mapper || echo "no device mapper" ;;
	raid) modprobe raid1 2>/dev/null && command -v mdadm >/dev/null || echo "no RAID" ;;
	esac
}

run nvme_stack partitions ext4 xfs btrfs crypt striped raid swap throttled
finish
