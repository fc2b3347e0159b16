# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2154
#
# I/O on $disk, every byte of which is compared. For scripts that have nvme_host.sh, and in $dir/a 4 MiB of anything.

# Another device that has the same bytes.
twin=
# Discarded blocks read as zeroes, if the target's disk is one of which that is so.
discards=1

# dd that says something only if it fails.
copy()
{
	dd "$@" 2>"$dir/dd$_place" || { cat "$dir/dd$_place"; return 1; }
}
# What takes hours says now and then how far it is, while its results are not told yet.
exec 3>&1
progress() { [ -z "$KFI_SOAK" ] || echo "# $*" >&3; }
# same LEN A B: do both begin with the same bytes?
same()
{
	cmp -s -n "$@" || { echo "$2 and $3 differ"; return 1; }
}

# chance N: a number below that, as the seed has it
chance()
{
	_dice=$((_dice * 6364136223846793005 + 1442695040888963407))
	_chance=$(((_dice >> 33 & 0x7fffffff) % $1))
}
# Others may have the disk open.
discard()
{
	blkdiscard -f "$@" 2>"$dir/dd$_place" || { cat "$dir/dd$_place"; return 1; }
}
# With $again, failed I/O is tried again.
persist()
{
	until "$@"; do
		[ -n "$again" ] || return 1
	done
}

# random_pieces COUNT [PLACE]: so many pieces of any offset and length within 4 MiB, the first of the disk or a
# later place, or fewer if there is a file that says stop: written, zeroed, or read and compared. What should be
# there is in a file, with which all of it is compared at last.
random_pieces()
{
	_count=$1 _place=${2:-0} _n=0 _written=0
	_shadow=$dir/shadow.$_place _piece=$dir/piece.$_place _base=$((_place << 22)) _dice=$((seed + _place))
	copy if="$dir/a" of="$_shadow" bs=1M && copy if="$dir/a" of=$disk bs=1M seek=$((_place * 4)) oflag=direct || return
	while [ $_n -lt "$_count" ] && [ ! -e "$dir/stop" ]; do
		_n=$((_n + 1))
		echo $_n >"$dir/progress"
		random_piece || { echo "piece $_n of seed $seed, place $_place: $_what of $_len bytes at $_at"; return 1; }
		[ $((_n % 256)) != 0 ] || whole || return
		[ $((_n % 64)) != 0 ] || progress "place $_place: $_n of $_count pieces, $((_written >> 20)) MiB written"
	done
	whole
}
random_piece()
{
	_what=write _most=2048 _flag=direct
	chance 4; [ $_chance != 0 ] || _most=8
	chance $_most; _len=$((_chance + 1 << 9))
	chance $((8193 - (_len >> 9))); _at=$((_chance << 9))
	chance 16
	case $_chance in
	0) [ $discards = 1 ] && _what=discard || _what=zeroes ;;
	1) _what=zeroes ;;
	2|3|4|5) _what="read" ;;
	6|7|8) _flag=direct,dsync ;;
	esac
	case $_what in
	read)
		persist copy if=$disk of="$_piece" bs=$_len count=1 skip=$((_base + _at)) iflag=direct,skip_bytes &&
			cmp -s -n $_len "$_shadow" "$_piece" $_at
		return
		;;
	write)
		chance $((8193 - (_len >> 9)))
		copy if="$dir/a" of="$_shadow" bs=$_len count=1 skip=$((_chance << 9)) seek=$_at \
			iflag=skip_bytes oflag=seek_bytes conv=notrunc &&
			persist copy if="$_shadow" of=$disk bs=$_len count=1 skip=$_at seek=$((_base + _at)) \
				iflag=skip_bytes oflag=$_flag,seek_bytes || return
		_written=$((_written + _len))
		;;
	*)
		[ $_what = discard ] && _zeroes='' || _zeroes=-z
		copy if=/dev/zero of="$_shadow" bs=$_len count=1 seek=$_at oflag=seek_bytes conv=notrunc &&
			persist discard $_zeroes -o $((_base + _at)) -l $_len $disk
		;;
	esac
}
whole()
{
	for _from in $disk $twin; do
		persist copy if=$_from of="$_piece" bs=1M count=4 skip=$((_place * 4)) iflag=direct &&
			cmp -s "$_shadow" "$_piece" || { echo "$_from is wrong, place $_place of seed $seed"; return 1; }
	done
}

# random_at_once COUNT: so many by four at once
random_at_once()
{
	_jobs=
	for _i in 0 1 2 3; do
		random_pieces $(($1 / 4)) $_i &
		_jobs="$_jobs $!"
	done
	# shellcheck disable=SC2086
	succeed $_jobs
}
forget() { echo 3 >/proc/sys/vm/drop_caches; }

# Two more pieces are written from here on.
goes_on()
{
	wait_for 60 test -s "$dir/progress" || return
	_then=$(cat "$dir/progress")
	wait_for 120 written_since $((_then + 2)) || { echo "no progress since piece $_then"; return 1; }
}
written_since() { [ "$(cat "$dir/progress")" -ge "$1" ] || [ -e "$dir/ended" ]; }
# under_io COMMAND...: while random pieces are written, which go on after it and are all right.
under_io()
{
	rm -f "$dir/stop" "$dir/ended" "$dir/progress"
	{
		random_pieces 1000000
		echo $? >"$dir/ended"
	} &
	_io=$!
	goes_on && "$@" && goes_on
	_result=$?
	touch "$dir/stop"
	# I/O that waits for ever ends by that.
	[ $_result = 0 ] || leave
	wait $_io
	rm "$dir/stop"
	[ $_result = 0 ] && [ "$(cat "$dir/ended")" = 0 ]
}
