# SPDX-License-Identifier: GPL-2.0
#
# What the test scripts share.  For any POSIX shell, busybox's included.
#
# From the environment:
#   KFI_MODULES  a directory below which all modules are (default: modprobe finds them)
#   KFI_DOMAIN   the domain to test (default: the first one)
#   KFI_SEED     what random choices are made from (default: random)
#   KFI_SCALE    how many rounds long tests do, in percent (default: 100)
#   KFI_SOAK     tests that have a form which takes hours do so much of that, in percent
#   KFI_WEAK     1: kfi_verbs was loaded with weak_fence=1

here=$(dirname "$0")

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
	# What it depends on, as far as it is the kernel's own.
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
ep_address=198.51.100.1 ep_address6=2001:db8::1
ep_device_up()
{
	modprobe -a dummy rdma_rxe rdma_cm 2>/dev/null
	ip link add kfi_ep0 type dummy &&
		ip address add $ep_address/24 dev kfi_ep0 &&
		ip address add $ep_address6/64 dev kfi_ep0 nodad &&
		ip link set kfi_ep0 mtu 9000 up &&
		rdma link add rxe_ep type rxe netdev kfi_ep0
}
ep_device_down()
{
	rdma link delete rxe_ep 2>/dev/null
	ip link delete kfi_ep0
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

# check NAME COMMAND ...: passes if the command succeeds.  What it prints is diagnosis.
check()
{
	_name=$1
	shift
	if _said=$("$@" 2>&1); then
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
	for _parameter in "$@"; do
		case $_parameter in provider=*) echo "# provider ${_parameter#*=}" ;; esac
	done
	if ! load "$_runs" token="$_token" \
	     ${KFI_SEED:+seed=$KFI_SEED} ${KFI_SCALE:+scale=$KFI_SCALE} \
	     ${KFI_WEAK:+weak=$KFI_WEAK} "$@"; then
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
