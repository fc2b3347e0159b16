# SPDX-License-Identifier: GPL-2.0
#
# The common parts of the test scripts.  For any POSIX shell, busybox's included.
#
# From the environment:
#   KFI_MODULES  a directory below which all modules are (default: modprobe finds them)
#   KFI_DOMAIN   the domain to test (default: the first one)
#   KFI_SEED     what random choices are made from (default: random)
#   KFI_SCALE    how many rounds long tests do, in percent (default: 100)
#   KFI_SOAK     tests that have a form which takes hours do so much of that, in percent
#   KFI_WEAK     1: kfi_verbs was loaded with weak_fence=1
#   KFI_NVME     the cases of the suites nvme* that run, or those that do not as -CASE (default: all run)
#   KFI_COMMAND  the command kfi, for the test observe (default: the one in PATH, or /kfi/kfi)
#   KFI_NIC      parameters of kfi_nic, as "persona=mlx5": the tests run over this model of hardware

here=$(dirname "$0")
[ -z "$KFI_NIC" ] || : "${KFI_DOMAIN:=knic0}"

# load MODULE [PARAMETER=VALUE ...]
load()
{
	_module=$1
	shift
	if [ -z "$KFI_MODULES" ]; then
		modprobe "$_module" "$@"
		return
	fi
	_file=$(find "$KFI_MODULES" -name "$_module.ko" | head -n 1)
	if [ -z "$_file" ]; then
		echo "# no $_module.ko below $KFI_MODULES"
		return 1
	fi
	# The modules that it depends on, as far as they are the kernel's own.
	for _needed in $(modinfo -F depends "$_file" | tr , ' '); do
		loaded "$_needed" || modprobe "$_needed" 2>/dev/null
	done
	insmod "$_file" "$@"
}

loaded()
{
	grep -q "^$1 " /proc/modules
}

# Load a module unless it is.
need()
{
	loaded "$1" || load "$@"
}

# unload MODULE ...: those that are loaded, in this order
unload()
{
	for _module in "$@"; do
		! loaded "$_module" || rmmod "$_module" || return
	done
}

# An RDMA device with addresses of its own: the connection manager doesn't run over those of loopback.
# With KFI_NIC, it is the model's first device, which stays.
ep_address=198.51.100.1 ep_address6=2001:db8::1
ep_device=rxe_ep ep_netdev=kfi_ep0
[ -z "$KFI_NIC" ] || ep_device=knic0 ep_netdev=knic0p1
# InfiniBand's addresses are those of IPoIB.
case " $KFI_NIC " in *" persona=ib "*) ep_netdev=ib0 ;; esac
ep_device_up()
{
	if [ -n "$KFI_NIC" ]; then
		nic_up
		return
	fi
	modprobe -a dummy rdma_rxe rdma_cm 2>/dev/null
	ip link add $ep_netdev type dummy &&
		ip address add $ep_address/24 dev $ep_netdev &&
		ip address add $ep_address6/64 dev $ep_netdev nodad &&
		ip link set $ep_netdev mtu 9000 up && ep_device_add
}
ep_device_down()
{
	[ -z "$KFI_NIC" ] || return 0
	rdma link delete $ep_device 2>/dev/null
	ip link delete $ep_netdev
}
# The device comes back on its netdev.
ep_device_add()
{
	if [ -n "$KFI_NIC" ]; then
		nic_up
	else
		rdma link add $ep_device type rxe netdev $ep_netdev
	fi
}
# The device goes, whoever uses it.
ep_device_remove()
{
	if [ -n "$KFI_NIC" ]; then
		rmmod kfi_nic
	else
		rdma link delete $ep_device
	fi
}

# Do suites that run over each provider run over loop, too? The model has a run of its own, for verbs.
tests_loop() { [ -z "$KFI_NIC" ]; }

# Parameters that say what the model's device lacks, by its personality.
nic_lacks()
{
	case $KFI_NIC in
	*persona=irdma* | *persona=i40iw* | *persona=erdma*) echo srq=0 ;;
	esac
}

# The column of features.def for the provider verbs.
verbs_column()
{
	case $KFI_NIC in
	'') [ "$KFI_WEAK" = 1 ] && echo fenced || echo verbs ;;
	# This device can't invalidate regions.
	*persona=hns*) echo dereg ;;
	*) grep -q RNIC /sys/class/infiniband/$ep_device/node_type && echo iwarp || echo fenced ;;
	esac
}

# Loads the model unless it is there, and gives its first port addresses.
nic_up()
{
	modprobe rdma_cm 2>/dev/null
	[ $ep_netdev != ib0 ] || modprobe ib_ipoib || return
	if [ ! -d /sys/class/infiniband/$ep_device ]; then
		# Its driver may be there without it.
		# shellcheck disable=SC2086
		unload kfi_nic && load kfi_nic $KFI_NIC || return
	fi
	for _netdev in /sys/class/net/knic* /sys/class/net/ib[0-9]*; do
		[ ! -e "$_netdev" ] || ip link set "${_netdev##*/}" up || return
	done
	ip address replace $ep_address/24 dev $ep_netdev &&
		ip address replace $ep_address6/64 dev $ep_netdev nodad && wait_for 60 nic_ready
}
# It counts what it does. Its first port is active and, with RoCE, has GIDs of both addresses.
nic_ready()
{
	[ -n "$(nic_count dma_faults)" ] || return
	_port=/sys/class/infiniband/$ep_device/ports/1
	grep -q ACTIVE $_port/state && grep -q 1 /sys/class/net/$ep_netdev/carrier || return
	! grep -q 'RoCE v2' $_port/gid_attrs/types/* 2>/dev/null ||
		{ grep -q ffff:c633:6401 $_port/gids/* && grep -q 2001:0db8: $_port/gids/*; }
}

# nic_count NAME: what the model has counted, all devices together. Empty if it counts nothing of that name.
nic_count()
{
	awk -v name="$1" '$1 == name { n += $2; found = 1 } END { if (found) print n }' \
		/sys/kernel/debug/kfi_nic/*/stats 2>/dev/null
}
# The kinds of violations; test/frame/model.c has the same names.
nic_kinds="dma_faults freed_accesses unmapped_early keys_again cq_overflows"
# The kernel's target shares the device with a suite. Over iWARP it registers the sinks of its reads by rdma_rw, which uses
# keys again and unmaps the memory of valid regions.
nic_allow_target()
{
	[ "$(verbs_column)" != iwarp ] || nic_kinds="dma_faults freed_accesses cq_overflows"
}
# The model's count of violations. A device that comes back counts from 0.
nic_violations()
{
	[ -z "$KFI_NIC" ] || cat /sys/kernel/debug/kfi_nic/*/stats 2>/dev/null |
		awk -v kinds=" $nic_kinds " 'index(kinds, " " $1 " ") { n += $2 } END { print n + 0 }'
}
nic_counts_no_more()
{
	[ -z "$KFI_NIC" ] || [ "$(nic_violations)" -le "$1" ] || { echo "violations: $(nic_violations), before: $1"; return 1; }
}
# Violations, and those in the log, which outlives the device.
nic_faults()
{
	_said='DMA fault\|.* a page that is free'
	case $nic_kinds in *keys_again*) _said="$_said\|the region " ;; esac
	echo "$(nic_violations)" "$(dmesg | grep -c "knic[0-9]*: \($_said\)")"
}
# The objects that are open in the model.
nic_objects()
{
	# IPoIB makes address handles as neighbours come and go.
	for _kind in pds cqs qps srqs mrs $([ $ep_netdev = ib0 ] || echo ahs); do
		printf '%s=%s ' $_kind "$(nic_count $_kind)"
	done
}
nic_has() { [ "$(nic_objects)" = "$1" ]; }
# nic_is_clean FAULTS OBJECTS: says what the model has seen that it had not before, and fails then.
nic_is_clean()
{
	_result=0
	if [ "$(nic_faults)" != "$1" ]; then
		echo "violations, and those in the log: $(nic_faults), expected $1:"
		grep -E '(dma_faults|freed_accesses|unmapped_early|keys_again|cq_overflows) ' \
			/sys/kernel/debug/kfi_nic/*/stats
		_result=1
	fi
	if ! wait_for 30 nic_has "$2"; then
		echo "open objects: $(nic_objects), expected $2"
		_result=1
	fi
	return $_result
}

# Lets tasks make their own allocations fail. Returns an error if the kernel can't.
allow_faults()
{
	_debug=/sys/kernel/debug
	[ -d $_debug/failslab ] || mount -t debugfs debugfs $_debug 2>/dev/null
	[ -d $_debug/failslab ] && [ -d $_debug/fail_page_alloc ] || return
	for _kind in failslab fail_page_alloc; do
		set_fault $_kind/ignore-gfp-wait N
		set_fault $_kind/verbose 0
		# Nothing fails but what the suite asks for: the n-th allocation, or all of a task that
		# is marked.
		set_fault $_kind/task-filter Y
		set_fault $_kind/times -1
		set_fault $_kind/probability 100
	done
	set_fault fail_page_alloc/min-order 0
}
# set_fault NAME VALUE; forbid_faults puts back what was set, the last first.
set_fault()
{
	[ -e "$_debug/$1" ] || return 0
	_undo="echo $(cat "$_debug/$1") >$_debug/$1; $_undo"
	echo "$2" >"$_debug/$1"
}
forbid_faults()
{
	eval "$_undo"
	_undo=
}

# feature NAME COLUMN: 1 if the table features.def says that the provider has the feature, or 0.
feature()
{
	awk -v name="$1" -v column="$2" -F '[(,)][ \t]*' '
		/FEATURE\(name,/ { for (i = 3; i < NF; i++) if ($i == column) at = NF - i }
		/^FEATURE\(/ && $2 == name { print $(NF - at) == "YES"; found = 1 }
		END { exit !(at && found) }' "$here/features.def"
}

# The kernel's log, without the stamps.
kernel_log()
{
	dmesg | sed 's/^\(<[0-9]*>\)*\[[^]]*\] *//'
}

# mark_log, then since_mark: the lines of the kernel's log since. The kernel drops its oldest lines, so the number of
# lines of a kind in the whole log can fall; where the mark itself was dropped, every line is newer.
mark_log()
{
	_mark="kfi $$ $(cut -d ' ' -f 1 /proc/uptime)"
	echo "$_mark" >/dev/kmsg
}
since_mark()
{
	kernel_log | awk -v mark="$_mark" '
		$0 == mark { n = 0; next }
		{ line[++n] = $0 }
		END { for (i = 1; i <= n; i++) print line[i] }'
}

# Kernel bits that say "something went wrong", not "this module is ours": a bad page or
# KASAN, a machine check, a WARN, an oops, a lockup.  And whether lockdep has given up.
health()
{
	_taint=$(cat /proc/sys/kernel/tainted)
	_locks=$(sed -n 's/^ *debug_locks: *//p' /proc/lockdep_stats 2>/dev/null)
	echo "$((_taint & (16 | 32 | 128 | 512 | 16384))) $_locks"
}

# A script's own results: plan N, then pass NAME, fail NAME WHY, skip NAME WHY, and at
# the end finish, which gives the script's exit status.
ktap_planned=0 ktap_number=0 ktap_failed=0

plan()
{
	ktap_planned=$1
	echo "KTAP version 1"
	echo "1..$1"
}

pass()
{
	ktap_number=$((ktap_number + 1))
	echo "ok $ktap_number $1"
}

fail()
{
	ktap_number=$((ktap_number + 1))
	ktap_failed=1
	[ -z "$2" ] || echo "# $1: $2"
	echo "not ok $ktap_number $1"
}

skip()
{
	ktap_number=$((ktap_number + 1))
	echo "ok $ktap_number $1 # SKIP $2"
}

# skip_rest WHY NAME ...
skip_rest()
{
	_why=$1
	shift
	for _name in "$@"; do
		skip "$_name" "$_why"
	done
}

# check NAME COMMAND ...: passes if the command succeeds and the model counts no violation. The command's output is
# diagnosis.
check()
{
	_name=$1 _violations=$(nic_violations)
	shift
	if _said=$("$@" 2>&1 && nic_counts_no_more "$_violations"); then
		pass "$_name"
	else
		[ -z "$_said" ] || echo "$_said" | sed 's/^/# /'
		fail "$_name" "failed: $*"
	fi
}

# refused NAME COMMAND ...: passes if the command fails.
refused()
{
	_name=$1
	shift
	if _said=$("$@" 2>&1); then
		fail "$_name" "succeeded: $*"
	else
		pass "$_name"
	fi
}

finish()
{
	while [ "$ktap_number" -lt "$ktap_planned" ]; do
		fail "result_missing" "planned $ktap_planned"
	done
	exit $ktap_failed
}

# run_suite SUITE [PARAMETER=VALUE ...]: a suite of kfi_selftest.ko.
run_suite()
{
	_name=$1
	shift
	run_module kfi_selftest "$_name" suite="$_name" ${KFI_DOMAIN:+domain=$KFI_DOMAIN} "$@"
}

# run_module MODULE NAME [PARAMETER=VALUE ...]: a module that runs cases when it is loaded.
# Prints their results and succeeds if all are there and none is bad.
run_module()
{
	_runs=$1
	_suite=$2
	shift 2
	_token=$_suite-$$-$(cut -d ' ' -f 1 /proc/uptime)
	# tools/check-features tells the providers apart by it.
	_weak=$KFI_WEAK
	_iwarp=
	case ${KFI_NIC:+$(verbs_column)} in
	fenced) _weak=1 ;;
	iwarp) _iwarp=1 ;;
	esac
	for _parameter in "$@"; do
		case $_parameter in provider=*) echo "# provider ${_parameter#*=}" ;; esac
	done
	if ! load "$_runs" token="$_token" \
	     ${KFI_SEED:+seed=$KFI_SEED} ${KFI_SCALE:+scale=$KFI_SCALE} \
	     ${_weak:+weak=$_weak} ${_iwarp:+iwarp=1} ${KFI_NIC:+hardware=1} $(nic_lacks) "$@"; then
		echo "1..1"
		echo "not ok 1 $_suite.load"
		return 1
	fi
	dmesg | awk -v suite="$_suite" -v token="$_token" '
		# The log may be long: most of its lines are dropped without a regular expression.
		!(i = index($0, "kfi-ktap: ")) || ended { next }
		{ $0 = substr($0, i + 10) }
		$0 == "begin " token { begun = 1; next }
		!begun { next }
		$0 == "end " token { ended = 1; next }
		/^1\.\.[0-9]+$/ { plan = substr($0, 4) + 0; planned = 1 }
		/^ok [0-9]+ / { if ($2 != ++n) bad = 1 }
		/^not ok [0-9]+ / { if ($3 != ++n) bad = 1; bad = 1 }
		{ print }
		END {
			if (!planned)
				print "1.." (plan = 1)
			if (!ended)
				print "# the suite did not come to its end, or the log is too small"
			for (; n < plan; bad = 1)
				print "not ok " ++n " " suite ".result_missing"
			exit (bad || !ended || !planned || n != plan)
		}'
	_result=$?
	unload "$_runs" || return
	return $_result
}

# wait_for SECONDS COMMAND ...: tries it again and again, for that long, and at least twice.
wait_for()
{
	read -r _end _ </proc/uptime
	_end=$((${_end%%.*} + $1)) _tried=0
	shift
	until "$@"; do
		read -r _now _ </proc/uptime
		[ $_tried = 0 ] || [ "${_now%%.*}" -lt $_end ] || return 1
		_tried=1
		sleep 0.1 2>/dev/null || sleep 1
	done
}
