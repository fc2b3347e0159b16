#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck disable=SC2154
#
# Namespaces of the NVMe transport: they come, go, grow and change while connected, are many or none, zoned or
# write-protected.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nvme_target.sh"
. "$(dirname "$0")/nvme_host.sh"
. "$(dirname "$0")/nvme_io.sh"

many=64
[ -z "$KFI_SOAK" ] || many=$((64 + 936 * KFI_SOAK / 100))
devices=2

clean_up()
{
	rm -f $port/subsystems/$nqn
	echo 0 >$subsystem/namespaces/2/enable
	null_gone kfi_zoned
	null_gone kfi_plain
}

# with_second DEVICE COMMAND...: while DEVICE is namespace 2, added while connected, with $second the disk.
with_second()
{
	add_namespace 2 "$1" && gets_disk 2 && second=$(disk_of 2) && shift && "$@"
	_result=$?
	remove_namespace 2 && wait_for 60 lacks_disk 2 && return $_result
}
on_second() { disk=$second random_pieces "$1"; }
case_added() { with_second /dev/nullb1 on_second 8; }

# A namespace that the target takes away, and gives back.
case_gone()
{
	copy if="$dir/a" of="$disk" bs=64k oflag=direct && echo 0 >$subsystem/namespaces/1/enable && wait_for 60 lacks_disk 1
	_result=$?
	echo 1 >$subsystem/namespaces/1/enable
	gets_disk 1 && found && [ $_result = 0 ] && same $((4 << 20)) "$dir/a" "$disk" && state_is live
}

# A file that grows.
case_grown()
{
	copy if="$dir/a" of="$dir/file" bs=1M count=2 && mkdir $subsystem/namespaces/2 &&
		echo 1 >$subsystem/namespaces/2/buffered_io && echo "$dir/file" >$subsystem/namespaces/2/device_path &&
		echo 1 >$subsystem/namespaces/2/enable && gets_disk 2 && second=$(disk_of 2) &&
		sectors_are 4096 && copy if="$dir/a" of="$dir/file" bs=1M skip=2 seek=2 count=2 &&
		echo 1 >$subsystem/namespaces/2/revalidate_size && wait_for 60 sectors_are 8192 &&
		copy if="$second" of="$dir/b" bs=1M count=4 iflag=direct && same $((4 << 20)) "$dir/a" "$dir/b"
	_result=$?
	remove_namespace 2 && wait_for 60 lacks_disk 2 && return $_result
}
sectors_are() { [ "$(cat "/sys/block/${second#/dev/}/size")" = "$1" ]; }

# A controller without a namespace, which gets one.
case_none()
{
	leave && remove_namespace 1 && try && wait_for 60 controls && live && lacks_disk 1
	_result=$?
	add_namespace 1 $behind && [ $_result = 0 ] && gets_disk 1 && found && random_pieces 2
}
controls() { ctrl=$(controllers) && [ -n "$ctrl" ]; }

case_many()
{
	leave && each_of_many add_namespace && connect && wait_for 600 has_disks "$many" && copy_from_last && leave
	_result=$?
	each_of_many remove_namespace && return $_result
}
each_of_many()
{
	_number=2
	while [ $_number -le "$many" ]; do
		"$1" $_number $behind || return
		_number=$((_number + 1))
	done
}
has_disks() { [ "$(grep -l . $sys/"$ctrl"/nvme*n*/nsid 2>/dev/null | wc -l)" = "$1" ]; }
copy_from_last()
{
	copy if="$dir/a" of="$disk" bs=64k oflag=direct && wait_for 60 has_disk "$many" &&
		copy if="$(disk_of "$many")" of="$dir/b" bs=64k count=64 iflag=direct && same $((4 << 20)) "$dir/a" "$dir/b"
}

# Another volume is at the same place when the connection is back. The old disk goes, and a file that is open writes
# nothing to the other volume then. The new disk is another one. (Before nvme-core has compared the identities, it sends
# requests already: so nothing is written until then.)
case_other_volume()
{
	quiet blkdiscard /dev/nullb1 && copy if="$dir/a" of="$disk" bs=64k oflag=direct && exec 5<>"$disk" || return
	behind_is /dev/nullb1 99 && live && echo 1 >"$sys/$ctrl/rescan_controller" && wait_for 60 reads_nothing &&
		fails_to_write && same $((4 << 20)) /dev/zero /dev/nullb1 && wait_for 60 found && state_is live &&
		[ "$(cat "/sys/block/${disk#/dev/}/uuid")" = ${uuid}00000099 ]
	_result=$?
	exec 5<&-
	behind_is $behind 1 && anew && [ $_result = 0 ] && forget && same $((4 << 20)) "$dir/a" "$disk"
}
reads_nothing() { [ "$(dd bs=4k count=1 iflag=direct <&5 2>/dev/null | wc -c)" = 0 ]; }
fails_to_write() { ! dd if="$dir/a" bs=4k count=1 oflag=direct >&5 2>/dev/null; }

# The same volume gets a volatile cache, which is flushed from then on.
case_cached()
{
	null_device kfi_plain cache_size=0 && leave && behind_is /dev/kfi_plain 1 && connect && [ "$(queue write_cache)" = "write through" ] &&
		behind_is $behind 1 && live && wait_for 60 is_cached && twin=$behind random_pieces 4
	_result=$?
	[ "$(cat $subsystem/namespaces/1/device_path)" = $behind ] || behind_is $behind 1
	null_gone kfi_plain && return $_result
}
is_cached() { [ "$(queue write_cache)" = "write back" ]; }

case_protected()
{
	copy if="$dir/a" of="$disk" bs=64k oflag=direct && protect 1 && wait_for 60 read_only 1 &&
		! dd if=/dev/zero of="$disk" bs=4k count=1 oflag=direct 2>/dev/null && forget &&
		same $((4 << 20)) "$dir/a" "$disk"
	_result=$?
	protect 0 && wait_for 60 read_only 0 && [ $_result = 0 ] && random_pieces 2
}
protect() { quiet nvme set-feature "/dev/$ctrl" --namespace-id=1 --feature-id=0x84 --value="$1"; }
read_only() { [ "$(cat "/sys/block/${disk#/dev/}/ro")" = "$1" ]; }

# A zoned namespace: zones are written in order, reset, and written anew. After an error, the block layer wants a report
# before the next write.
case_zoned()
{
	null_device kfi_zoned zoned=1 zone_size=64 blocksize=4096 zone_nr_conv=0 && with_second /dev/kfi_zoned in_zones
	_result=$?
	null_gone kfi_zoned && return $_result
}
in_zones()
{
	[ "$(cat "/sys/block/${second#/dev/}/queue/zoned")" = host-managed ] || return
	for _zone in 0 5; do
		copy if="$dir/a" of="$second" bs=64k count=32 seek=$((_zone * 1024)) oflag=direct &&
			! dd if="$dir/a" of="$second" bs=64k count=1 seek=$((_zone * 1024 + 50)) oflag=direct 2>/dev/null &&
			quiet blkzone report -o $((_zone * 131072)) -c 1 "$second" &&
			copy if="$dir/a" of="$second" bs=64k count=32 skip=32 seek=$((_zone * 1024 + 32)) oflag=direct &&
			copy if="$second" of="$dir/b" bs=64k count=64 skip=$((_zone * 1024)) iflag=direct &&
			same $((4 << 20)) "$dir/a" "$dir/b" &&
			blkzone report -o $((_zone * 131072)) -c 1 "$second" | grep -q 'wptr 0x002000' || return
	done
	quiet blkzone reset -o 0 -c 1 "$second" && blkzone report -o 0 -c 1 "$second" | grep -q 'wptr 0x000000' &&
		copy if="$dir/a" of="$second" bs=64k count=16 oflag=direct
}

lacks()
{
	case $1 in
	protected) command -v nvme >/dev/null || echo "no nvme-cli" ;;
	zoned) command -v blkzone >/dev/null && grep -q zoned $config/nullb/features || echo "no zoned null_blk or blkzone" ;;
	grown) [ -e $subsystem/namespaces/1/revalidate_size ] || echo "the target has no revalidate_size" ;;
	esac
}

run nvme_namespaces added gone grown none many other_volume cached protected zoned
finish
