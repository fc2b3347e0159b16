# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2154,SC2034,SC2120
#
# The NVMe host under test: the kernel's nvme-core with the transport kfi. And the frame of its suites. For scripts that
# have lib.sh and nvme_target.sh.
#
# From the environment:
#   KFI_NVME            the cases that run, or those that do not as -CASE (default: all run)
#   KFI_NVME_TRANSPORT  rdma: the kernel's nvme-rdma instead, to test the tests

transport=${KFI_NVME_TRANSPORT:-kfi}
# The nvme-cli of a distribution has an identity of its own; this one tells these controllers from others.
hostid=6b666162-7269-4300-8000-00000000ffff
hostnqn=nqn.2014-08.org.nvmexpress:uuid:$hostid
sys=/sys/class/nvme
seed=${KFI_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}

host_up()
{
	if [ "$transport" = rdma ]; then
		modprobe nvme-rdma
	else
		modprobe nvme-fabrics && need kfi_nvme
	fi
}
host_down()
{
	if [ "$transport" = rdma ]; then
		rmmod nvme-rdma
	else
		unload kfi_nvme
	fi
}

# The options of each connection; later ones win.
options() { printf %s "transport=$transport,traddr=$ep_address,trsvcid=4420,nqn=$nqn,hostnqn=$hostnqn,hostid=$hostid${1:+,$1}"; }
# try [OPTION=VALUE,...]: connects, and says why not.
try() { options "$1" | dd of=/dev/nvme-fabrics 2>"$dir/said" || { cat "$dir/said"; return 1; }; }
# connect [OPTION=VALUE,...]: connects, and sets $ctrl and $disk once namespace 1 is there.
connect() { try "reconnect_delay=1${1:+,$1}" && wait_for 60 found; }
# Deletes each controller of this host, and returns when they have gone.
leave()
{
	for _ctrl in $(controllers); do
		echo 1 >$sys/"$_ctrl"/delete_controller
	done 2>/dev/null
	wait_for 60 alone
}
alone() { [ -z "$(controllers)" ]; }
anew() { leave && connect "$@"; }

# The names of this host's controllers.
controllers()
{
	for _c in $sys/nvme*; do
		[ "$(cat "$_c/hostnqn" 2>/dev/null)" != $hostnqn ] || echo "${_c##*/}"
	done
}
# disk_of NSID: the disk of that namespace of $ctrl. With multipath, a path has a hidden disk beside it.
disk_of()
{
	for _n in "$sys/$ctrl"/nvme*n*; do
		[ "$(cat "$_n/nsid" 2>/dev/null)" != "$1" ] || echo "/dev/${_n##*/}" | sed 's/c[0-9]*n/n/'
	done
}
has_disk() { [ -b "$(disk_of "$1")" ]; }
lacks_disk() { ! has_disk "$1"; }
# gets_disk NSID: of a namespace that was just enabled. The target announces a namespace before it lists it
# (nvmet_ns_enable()). A host that looks in between finds nothing, and must look again.
gets_disk()
{
	wait_for 10 has_disk "$1" || { echo 1 >"$sys/$ctrl/rescan_controller" && wait_for 60 has_disk "$1"; }
}
found()
{
	ctrl=$(controllers | head -n 1)
	disk=$(disk_of 1)
	[ -b "$disk" ]
}
state_is() { [ "$(cat "$sys/$ctrl/state" 2>/dev/null)" = "$1" ]; }
# A request ended by its timeout since mark_log: the words of kfi, and of nvme-rdma.
times_out() { since_mark | grep -e "timed out" -e "QID [0-9]* timeout"; }
live() { wait_for "${1:-60}" state_is live; }
queue() { cat "/sys/block/${disk#/dev/}/queue/$1"; }
multipath() { [ "$(cat /sys/module/nvme_core/parameters/multipath 2>/dev/null)" = Y ]; }

# timeouts SECONDS: of commands, for controllers that are made later.
timeouts()
{
	echo "$1" >/sys/module/nvme_core/parameters/admin_timeout &&
		echo "$1" >/sys/module/nvme_core/parameters/io_timeout
}
default_timeouts() { timeouts 60 && echo 30 >/sys/module/nvme_core/parameters/io_timeout; }

# fails ERROR [OPTION=VALUE,...]: connecting fails with that, and leaves nothing.
fails()
{
	_error=$1
	! try "$2" >/dev/null && grep -q ": $_error\$" "$dir/said" && alone || { cat "$dir/said"; controllers; return 1; }
}

# within SECONDS COMMAND...: it succeeds, and takes no longer.
within()
{
	_limit=$1 _begun=$(cut -d . -f 1 /proc/uptime)
	shift
	"$@" || return
	_took=$(($(cut -d . -f 1 /proc/uptime) - _begun))
	[ $_took -le "$_limit" ] || { echo "$*: $_took s"; return 1; }
}
not() { ! "$@"; }
# Says something only if it fails.
quiet()
{
	"$@" >"$dir/said" 2>&1 || { echo "$*:"; cat "$dir/said"; return 1; }
}
# succeed WHAT JOB...: all of the shell's jobs.
succeed()
{
	_all=0
	for _job; do
		wait "$_job" || _all=1
	done
	return $_all
}

# The device, the target and the host, and 4 MiB of anything in $dir/a.
stage_up()
{
	dir=$(mktemp -d) && mkdir "$dir/mnt" && trap stage_down EXIT &&
		dd if=/dev/urandom of="$dir/a" bs=1M count=4 2>/dev/null &&
		ep_device_up && target_up $ep_address && host_up || { echo "# the target or the host is not there"; exit 1; }
	nic_allow_target
	default_timeouts
}
stage_down()
{
	clean_up
	leave
	host_down
	rmmod kfi_rogue
	ep_device_down
	target_down
	# The completion queues of the target stay in the pool of the device until the device goes.
	[ -z "$KFI_NIC" ] || ep_device_remove
	rm -rf "$dir"
} 2>/dev/null
# What a suite undoes in the end.
clean_up() { :; }
# lacks CASE: says why the case can't run, if it can't.
lacks() { :; }
# Before each case: connected as by default.
settle() { found && state_is live || anew; }

# run SUITE CASE...: each case is a function.
run()
{
	_suite=$1
	shift
	# shellcheck disable=SC2086
	case $KFI_NVME in ''|-*) ;; *) set -- $KFI_NVME ;; esac
	_wanted=
	for _case; do
		case " $KFI_NVME " in *" -$_case "*) continue ;; esac
		! command -v "case_$_case" >/dev/null || _wanted="$_wanted $_case"
	done
	# shellcheck disable=SC2086
	set -- $_wanted
	plan $#
	[ $# -gt 0 ] || exit 0
	echo "# seed $seed, transport $transport"
	stage_up
	for _case; do
		_lack=$(lacks "$_case" | head -n 1)
		if [ -n "$_lack" ]; then
			skip "$_suite.$_case" "$_lack"
		else
			settle >"$dir/settled" 2>&1 || sed "s/^/# not connected before $_case: /" "$dir/settled"
			check "$_suite.$_case" "case_$_case"
		fi
	done
}
has_file_system()
{
	grep -q "$1\$" /proc/filesystems || modprobe "$1" 2>/dev/null && command -v "$2" >/dev/null && command -v "$3" >/dev/null
}
