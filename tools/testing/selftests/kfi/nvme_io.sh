# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2154
#
# I/O on a disk, every byte of which is compared. For scripts that have lib.sh, and in $dir/a 4 MiB of anything.

disk=/dev/kfi_nvme0n1
# Where what was written can be read.
seen=$disk
# What is discarded reads as zeroes, if the target's disk is one of which that is so.
discards=1
seed=${KFI_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}

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
# With $again what fails is tried again.
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
	for _from in $seen; do
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
	for _i in $_jobs; do
		wait "$_i" || return
	done
}
