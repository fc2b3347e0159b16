#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck disable=SC2154
#
# Connections of the NVMe transport break under I/O, come back with other limits, or don't; devices, modules and targets
# go.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nvme_target.sh"
. "$(dirname "$0")/nvme_host.sh"
. "$(dirname "$0")/nvme_io.sh"

# KFI_SOAK=100 is 51 disturbances.
disturbances=3
[ -z "$KFI_SOAK" ] || disturbances=$((51 * KFI_SOAK / 100 + 1))
devices=8

clean_up()
{
	umount "$dir/mnt"
	echo optimized >$port/ana_groups/1/ana_state
	dmsetup resume kfi_stall
	echo 0 >$subsystem/namespaces/2/enable
	dmsetup remove kfi_stall
}

breaks() { close_port && sleep "${1:-0.3}" && open_port; }
# The port is closed for longer than the first attempts to connect again take.
case_held() { under_io breaks 3; }

# spread COUNT COMMAND...: under I/O to each of so many namespaces.
spread()
{
	_count=$1
	shift
	leave && _n=2 && while [ $_n -le "$_count" ]; do
		add_namespace $_n /dev/nullb$((_n - 1)) && _n=$((_n + 1)) || return
	done
	connect && wait_for 120 has_disk "$_count" && on_each "$@"
	_result=$?
	while [ "$_count" -gt 1 ]; do
		remove_namespace "$_count"
		_count=$((_count - 1))
	done
	return $_result
}
on_each()
{
	_jobs='' _n=0
	rm -f "$dir/stop"
	while [ $_n -lt "$_count" ]; do
		_n=$((_n + 1))
		{
			disk=$(disk_of $_n)
			random_pieces 1000000 $_n
		} &
		_jobs="$_jobs $!"
	done
	sleep 2
	"$@"
	_result=$?
	touch "$dir/stop"
	[ $_result = 0 ] || leave
	# shellcheck disable=SC2086
	succeed $_jobs && rm "$dir/stop" && return $_result
}
often() { breaks && live && sleep 1 && breaks && live && sleep 1; }
case_two() { spread 2 often; }
case_eight() { spread 8 often; }

# So many disturbances of verified I/O, which goes on after each.
case_disturbed() { under_io disturb; }
disturb()
{
	_round=0
	while [ $_round -lt $disturbances ]; do
		case $((_round % 3)) in
		0) breaks ;;
		1) echo 1 >"$sys/$ctrl/reset_controller" ;;
		2) echo 1 >$subsystem/attr_qid_max && sleep 0.3 && echo 127 >$subsystem/attr_qid_max ;;
		esac && goes_on || return
		_round=$((_round + 1))
		progress "$_round of $disturbances disturbances"
	done
	live
}

# The count of queues falls and rises at reconnecting.
case_fewer_queues() { anew nr_io_queues=2 && under_io queues_change 3 2 0; }
# Queues for reading and for writing become one that does both.
case_split_queues() { anew nr_io_queues=1,nr_write_queues=1 && under_io queues_change 3 2 0; }
# One of two queues for polling stays, and then none.
case_fewer_polled()
{
	anew nr_io_queues=1,nr_poll_queues=2 && under_io queues_change 4 3 1 && under_io queues_change 4 2 0
}
# queues_change MORE FEWER POLLS: numbers with the admin queue, and whether the path to the disk can be polled with the
# fewer queues.
queues_change()
{
	queues_are "$1" && echo $(($2 - 1)) >$subsystem/attr_qid_max && wait_for 60 queues_are "$2" && goes_on &&
		[ "$(cat "$sys/$ctrl"/nvme*n1/queue/io_poll)" = "$3" ] &&
		echo 127 >$subsystem/attr_qid_max && wait_for 60 queues_are "$1"
	_result=$?
	echo 127 >$subsystem/attr_qid_max
	return $_result
}
queues_are() { state_is live && [ "$(cat "$sys/$ctrl/queue_count")" = "$1" ]; }

# The target takes less at once: 64 KiB.
case_mdts()
{
	under_io mdts 4 && [ "$(queue max_hw_sectors_kb)" = 64 ] && copy if="$dir/a" of="$disk" bs=1M oflag=direct && forget &&
		same $((4 << 20)) "$dir/a" $behind
	_result=$?
	mdts 0 && leave && return $_result
}
mdts() { close_port && echo "$1" >$port/param_mdts && open_port && live; }

# Without patience there are errors, and the controller goes.
case_given_up() { anew ctrl_loss_tmo=0 && close_port && wait_for 60 alone; _result=$?; open_port && return $_result; }
# Errors after a second, while the controller still tries.
case_fails_fast()
{
	anew fast_io_fail_tmo=1,ctrl_loss_tmo=600 && close_port || return
	within 30 not dd if="$disk" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null && [ -n "$(controllers)" ]
	_result=$?
	open_port && live && [ $_result = 0 ] && random_pieces 2
}
# Leaving while it tries doesn't wait for the timeout of a command.
case_left_trying() { close_port && wait_for 60 state_is connecting && within 40 leave; _result=$?; open_port && return $_result; }

# No path for three seconds: I/O waits, and goes on.
case_ana() { under_io inaccessible; }
inaccessible()
{
	echo inaccessible >$port/ana_groups/1/ana_state && wait_for 60 stands_still
	_result=$?
	echo optimized >$port/ana_groups/1/ana_state
	return $_result
}
# What was under way may go on for a while.
stands_still() { rm -f "$dir/progress" && sleep 3 && [ ! -e "$dir/progress" ]; }
# Deletes the path that has the I/O.
case_failover() { try duplicate_connect && under_io one_goes && [ "$(controllers | wc -l)" = 1 ]; }
one_goes()
{
	for ctrl in $(controllers); do
		! carries || break
	done
	carries && echo 1 >"$sys/$ctrl/delete_controller" && ctrl=$(controllers) && live
}
carries() { _before=$(path_ios) && goes_on && [ "$(path_ios)" -gt "$_before" ]; }
path_ios() { awk '{ print $1 + $5 }' "$sys/$ctrl"/nvme*n1/stat; }

# Leaving a target that answers no I/O: it ends after the timeout, with errors. The rest of the limit is for a
# slow machine.
case_stalled()
{
	timeouts 5 && leave && quiet dmsetup create --noudevsync --noudevrules kfi_stall --table "0 2097152 linear /dev/nullb1 0" &&
		add_namespace 2 "/dev/dm-$(dmsetup info -c --noheadings -o minor kfi_stall)" && connect &&
		gets_disk 2 && stalls "$(disk_of 2)"
	_result=$?
	default_timeouts
	remove_namespace 2 && quiet dmsetup remove --noudevsync --noudevrules kfi_stall && return $_result
}
# Each queue has requests that wait.
stalls()
{
	quiet dmsetup suspend --noudevsync --nolockfs --noflush kfi_stall || return
	_jobs='' _cpus=$(nproc) _cpu=0
	while [ $_cpu -lt "$_cpus" ]; do
		_on="taskset $(printf %x $((1 << _cpu)))"
		$_on dd if="$dir/a" of="$1" bs=4k count=8 oflag=direct 2>/dev/null &
		_jobs="$_jobs $!"
		$_on dd if="$1" of=/dev/null bs=1M count=1 iflag=direct 2>/dev/null &
		_jobs="$_jobs $!" _cpu=$((_cpu + 1))
	done
	wait_for 30 under_way "$1" $((2 * _cpus)) && within 30 leave
	_result=$?
	for _job in $_jobs; do
		not wait "$_job" || _result=1
	done
	quiet dmsetup resume --noudevsync kfi_stall && return $_result
}
under_way() { [ "$(awk '{ print $1 + $2 }' "/sys/block/${1#/dev/}/inflight")" -ge "$2" ]; }

# A command is lost together with the completion of its send, which comes by no flush either. A reset gives its capsule
# up, and the request is sent again.
case_unflushed()
{
	_fault=/sys/kernel/debug/kfi_nic/$ep_device/lose
	anew keep_alive_tmo=0 && quiet copy if="$dir/a" of="$disk" bs=1M oflag=direct && forget && echo 2 >"$_fault" || return
	copy if="$disk" of="$dir/b" bs=4k count=1 iflag=direct &
	_job=$!
	wait_for 30 grep -q '^0$' "$_fault" && echo 1 >"$sys/$ctrl/reset_controller" && live 120
	_result=$?
	echo 0 >"$_fault"
	wait $_job && [ $_result = 0 ] && same 4096 "$dir/a" "$dir/b" && random_pieces 2 &&
		dmesg | grep -q 'kfi_nvme: .* capsules are leaked'
}

# The module goes while a file system is mounted.
case_unload_mounted()
{
	quiet mke2fs -q -F -t ext4 "$disk" && mount -t ext4 "$disk" "$dir/mnt" && cp "$dir/a" "$dir/mnt/a" && sync &&
		host_down && alone && umount "$dir/mnt" && host_up && connect || return
	# The journal is replayed.
	e2fsck -f -y "$disk" >/dev/null 2>&1
	quiet e2fsck -f -n "$disk" && mount -t ext4 "$disk" "$dir/mnt" && same $((4 << 20)) "$dir/a" "$dir/mnt/a" && umount "$dir/mnt"
}

# The link is down until attempts to connect have failed. Over rxe nothing is connected any more then (kfi_nvme(7)), so
# the device is made anew. The target doesn't listen there by itself.
case_link() { under_io cut_link; }
cut_link()
{
	mark_log
	ip link set $ep_netdev down && wait_for 120 attempt_fails
	_result=$?
	ip link set $ep_netdev up && [ $_result = 0 ] || return
	[ -n "$KFI_NIC" ] || { ep_device_remove && ep_device_add && breaks 0; }
}
attempt_fails() { since_mark | grep -q "attempt 1 to connect failed"; }

# The device goes under I/O of a file system.
case_removed()
{
	anew ctrl_loss_tmo=1 && quiet mke2fs -q -F -t ext4 "$disk" && mount -t ext4 "$disk" "$dir/mnt" || return
	rm -f "$dir/begun"
	# Only an error ends it.
	while dd if=/dev/zero of="$dir/mnt/file" bs=4k count=256 oflag=direct 2>"$dir/dd"; do : >"$dir/begun"; done &
	_job=$!
	wait_for 60 test -e "$dir/begun" && ep_device_remove && wait_for 60 alone && wait $_job && umount "$dir/mnt" &&
		host_down && host_up
}

lacks()
{
	# A mounted disk keeps the module, and requests of a queue that the target no longer grants wait for it.
	case $1 in
	ana | failover | unload_mounted | fewer_queues | split_queues) multipath || echo "no multipath" ;;
	esac
	case $1 in
	unload_mounted | removed) has_file_system ext4 mke2fs e2fsck || echo "no ext4" ;;
	stalled) modprobe dm-mod 2>/dev/null && command -v dmsetup >/dev/null || echo "no device mapper" ;;
	fewer_queues | fewer_polled) [ "$(nproc)" -gt 1 ] || echo "one CPU" ;;
	unflushed) [ -n "$KFI_NIC" ] || echo "no model NIC" ;;
	split_queues) [ "$transport" != rdma ] || echo "nvme-rdma keeps the old map, and oopses" ;;
	link) [ "$transport" != rdma ] || echo "nvme-rdma deletes controllers whose device goes" ;;
	esac
}

run nvme_recovery held two eight disturbed fewer_queues split_queues fewer_polled mdts given_up fails_fast left_trying ana failover stalled unflushed \
	unload_mounted link removed
finish
