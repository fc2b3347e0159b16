#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The crate `block`, by a disk in memory (kfi_memdisk.ko): data, errors, and requests that are not
# carried out at once.

. "$(dirname "$0")/lib.sh"

disk=/dev/kfi_mem0
dir=$(mktemp -d) || exit
trap 'rm -rf "$dir"' EXIT

# [PARAMETER=VALUE ...]
with_disk()
{
	load kfi_memdisk "$@" && wait_for 30 test -b $disk
}
without_disk()
{
	unload kfi_memdisk
}

# dd that says something only if it fails.
copy()
{
	dd "$@" 2>"$dir/dd" || { cat "$dir/dd"; return 1; }
}

# Reads back what it wrote, COUNT sectors at a time, direct or not.
data()
{
	copy if=/dev/urandom of="$dir/a" bs=1024k count=4 &&
		copy if="$dir/a" of=$disk bs=1024k seek=2 conv=fsync &&
		echo 3 >/proc/sys/vm/drop_caches &&
		copy if=$disk of="$dir/b" bs=1024k skip=2 count=4 && cmp -s "$dir/a" "$dir/b" || return
	for _bs in 512 1536 4096 36864 262144 1048576; do
		copy if="$dir/a" of=$disk bs=$_bs seek=3 count=3 oflag=direct &&
			copy if=$disk of="$dir/b" bs=$_bs skip=3 count=3 iflag=direct &&
			copy if="$dir/a" of="$dir/c" bs=$_bs count=3 &&
			cmp -s "$dir/b" "$dir/c" || { echo "of $_bs bytes"; return 1; }
	done
}

# The first byte of sector 2048, in hexadecimal.
first_byte()
{
	echo 3 >/proc/sys/vm/drop_caches
	dd if=$disk bs=512 skip=2048 count=1 iflag=direct 2>/dev/null | od -An -tx1 -N1 | tr -d ' '
}

forgets()
{
	copy if=/dev/urandom of=$disk bs=1024k seek=1 count=1 oflag=direct &&
		blkdiscard -o 1048576 -l 1048576 $disk && [ "$(first_byte)" = dd ]
}

limits()
{
	_queue=/sys/block/kfi_mem0/queue
	[ "$(cat $_queue/max_hw_sectors_kb) $(cat $_queue/max_segments) $(cat $_queue/write_cache)" = \
		"256 32 write back" ] || { grep . $_queue/* 2>/dev/null; return 1; }
}

one_fails()
{
	! dd if=$disk of=/dev/null bs=512 skip=8192 count=1 iflag=direct 2>/dev/null &&
		copy if=$disk of=/dev/null bs=512 skip=8256 count=1 iflag=direct
}

# A sector that comes in the end all the same.
one_comes()
{
	copy if=$disk of=/dev/null bs=512 skip="$1" count=1 iflag=direct
}

one_is_late()
{
	! dd if=$disk of=/dev/null bs=512 skip=20480 count=1 iflag=direct 2>/dev/null &&
		kernel_log | grep -q '^kfi_memdisk: took too long'
}

flushed()
{
	copy if=/dev/zero of=$disk bs=4096 count=1 conv=fsync && without_disk &&
		kernel_log | grep -q '^kfi_memdisk: [1-9][0-9]* flushes'
}

held_open()
{
	exec 3<$disk
	! rmmod kfi_memdisk 2>/dev/null
	_held=$?
	exec 3<&-
	return $_held
}

# A disk that is added while those of its tag set are held up waits with them.
waits()
{
	with_disk quiet=1 && ! kernel_log | grep -q '^kfi_memdisk: a request of a quiesced disk' &&
		kernel_log | grep -q '^kfi_memdisk: not quiet any more' && one_comes 8 && without_disk
}

plan 12
with_disk || exit
check block.limits limits
check block.data data
check block.discard forgets
check block.held_open held_open
check block.flush flushed
with_disk later=1 && check block.later data && without_disk || exit
with_disk bad=8192 busy=12288 again=16384 lost=20480 || exit
check block.bad one_fails
check block.busy one_comes 12288
check block.again one_comes 16384
check block.lost one_is_late
check block.leaves without_disk
check block.quiesced waits
finish
