#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The NVMe transport in one machine, and the kernel's own target in another, which a link joins that
# tools/vm/pair has made: the target's machine is paused, and killed and booted again, under I/O that is verified.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nvme_target.sh"
. "$(dirname "$0")/nvme_host.sh"
. "$(dirname "$0")/nvme_io.sh"

discards=0
# KFI_SOAK=100 is 51 deaths. (The long form of the suite nvme is the one that moves much data.)
pieces=$((40 * ${KFI_SCALE:-100} / 100)) deaths=1
[ -z "$KFI_SOAK" ] || deaths=$((KFI_SOAK / 2 + 1))

# It comes here once more when it has been killed. The disk has what was written then, too.
server()
{
	plan 2
	modprobe virtio_blk
	behind=/dev/vda
	wait_for 60 test -b $behind
	check nvme_pair.target target_up "$KFI_ADDRESS"
	meet 21
	check nvme_pair.target_down target_down
}

# More small writes at once than there are capsules with room for data: the others go by keys. Nothing that is
# sent to a machine that is paused is acknowledged, so no capsule comes back meanwhile.
capsules()
{
	# They are written when that is asked for, not before: nor when nobody has the disk open.
	exec 4<"$disk"
	echo 0 >/proc/sys/vm/dirty_writeback_centisecs
	_n=0
	while [ $_n -lt 48 ]; do
		_n=$((_n + 1))
		copy if="$dir/a" of="$disk" bs=4k count=1 skip=$((_n * 7)) seek=$((_n * 16)) conv=notrunc || return
	done
	echo "pair: pause peer" >&3
	wait_for 120 silent || return
	sync &
	_job=$!
	wait_for 60 under_way 40
	_result=$?
	echo "pair: resume peer" >&3
	wait $_job
	exec 4<&-
	echo 500 >/proc/sys/vm/dirty_writeback_centisecs
	[ $_result = 0 ] || { cat "$sys/$ctrl"/nvme*n1/inflight; return 1; }
	_n=0
	while [ $_n -lt 48 ]; do
		_n=$((_n + 1))
		copy if="$dir/a" of="$dir/b" bs=4k count=1 skip=$((_n * 7)) &&
			copy if="$disk" of="$dir/c" bs=4k count=1 skip=$((_n * 16)) iflag=direct &&
			same 4096 "$dir/b" "$dir/c" || { echo "write $_n"; return 1; }
	done
}
silent() { ! ping -c 1 -W 1 "$KFI_PEER" >/dev/null 2>&1; }
under_way() { [ "$(awk '{ print $1 + $2 }' "$sys/$ctrl"/nvme*n1/inflight)" -ge "$1" ]; }

# I/O waits while the target's machine is gone, and goes on when that is there again.
killed()
{
	_death=0
	while [ $_death -lt $deaths ]; do
		_death=$((_death + 1))
		rm -f "$dir/stop" "$dir/progress"
		random_pieces 1000000 1 &
		_job=$!
		wait_for 60 at_piece 3 || return
		echo "pair: restart peer" >&3
		wait_for 600 not state_is live && wait_for 600 state_is live || { echo "not connected again"; return 1; }
		_then=$(cat "$dir/progress")
		wait_for 120 at_piece $((_then + 3)) || { echo "no progress since piece $_then"; return 1; }
		touch "$dir/stop"
		wait $_job || return
		progress "killed $_death of $deaths times"
	done
	rm "$dir/stop"
}
at_piece() { [ -s "$dir/progress" ] && [ "$(cat "$dir/progress")" -ge "$1" ]; }

client()
{
	dir=$(mktemp -d) || exit
	trap 'host_down; rm -rf "$dir"' EXIT
	ep_address=$KFI_PEER
	dd if=/dev/urandom of="$dir/a" bs=1M count=4 2>/dev/null
	plan 6
	echo "# seed $seed"
	host_up
	check nvme_pair.connect wait_for 600 connect nr_io_queues=1,ctrl_loss_tmo=-1
	found
	check nvme_pair.random random_at_once $pieces
	check nvme_pair.capsules capsules
	check nvme_pair.killed killed
	check nvme_pair.random_again random_pieces 4 2
	check nvme_pair.leave leave
	meet 21
}

case $KFI_ROLE in
server) server ;;
client) client ;;
*)
	plan 1
	skip nvme_pair "one machine"
	;;
esac
finish
