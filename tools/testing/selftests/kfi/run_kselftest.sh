#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# run_kselftest.sh [-l] [TEST ...]
#
# Runs the kfabric selftests, or those that are named, and reports in KTAP; -l lists
# them.  README says what comes from the environment.

. "$(dirname "$0")/lib.sh"

# Of kfi_selftest.ko, and scripts of their own.
suites="oracle inject negotiate core slots eq cntr cq lifetime async held rights local errors segments badmem badruns
	scattered order matrix contiguous raw refresh pieces reserve batch later stress hammer recovery queue stuck"
scripts="badpages noio loop states ep ep_rs siw nvme nvme_stack nvme_admin nvme_namespaces nvme_recovery nvme_rogue nvme_pair pair cm conform consumer17 trace observe faults random pool unload parameters forget port removal nic hardware"
# Only by name: for devices that can't be served.
named="unserved"

if [ "$1" = -l ]; then
	printf '%s\n' $suites $scripts
	exit 0
fi
[ $# -gt 0 ] || set -- $suites $scripts

# refuse WHAT [WHY]: reports one failure and ends.
refuse()
{
	echo "KTAP version 1"
	echo "1..1"
	[ -z "$2" ] || echo "# $2"
	echo "not ok 1 $1"
	exit 1
}

for name; do
	case " $suites $scripts $named " in
	*[[:space:]]"$name"[[:space:]]*) ;;
	*) refuse "$name" "there is no test '$name'; there are: $(echo $suites $scripts $named)" ;;
	esac
done

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

entry()
{
	case " $suites " in
	*[[:space:]]"$1"[[:space:]]*) run_suite "$1" ;;
	*) sh "$here/$1.sh" ;;
	esac
}

# Line by line, so that what is printed can be followed.
indent()
{
	while IFS= read -r line; do
		printf '    %s\n' "$line"
	done
}

# An RDMA device to run on, and the modules.  Those that were not there go again.
prepare()
{
	loaded_here='' objects_first=''
	if [ -n "$KFI_NIC" ]; then
		loaded kfi_nic || nic_here=kfi_nic
		nic_up || return
		objects_first=$(nic_objects)
	fi
	for i in kfi_peer kfi_inject kfi_noio kfabric kfi_verbs; do
		loaded $i && continue
		load $i || return
		loaded_here="$i $loaded_here"
	done
	[ -z "$KFI_NIC" ] || return 0
	[ -z "$(ls /sys/class/infiniband 2>/dev/null)" ] || return 0
	modprobe rdma_rxe && rdma link add rxe_lo type rxe netdev lo && link_made=1
}

prepare || refuse prepare

echo "KTAP version 1"
echo "1..$#"
number=0 failed=0
for name; do
	number=$((number + 1))
	before=$(health)
	if [ -n "$KFI_NIC" ]; then
		# The suite before may have taken it away.
		nic_up
		nic_kinds_before=$nic_kinds
		case $name in nvme*) nic_allow_target ;; esac
		faults=$(nic_faults) objects=$(nic_objects)
	fi
	start=$(cut -d . -f 1 /proc/uptime)
	{ entry "$name" 2>&1; echo $? >"$tmp/status"; } | indent | tee -a "$tmp/results"
	result=ok
	[ "$(cat "$tmp/status")" = 0 ] || result="not ok"
	if [ "$(health)" != "$before" ]; then
		echo "# $name: the kernel complained, see its log"
		result="not ok"
	fi
	if [ -n "$KFI_NIC" ]; then
		nic_up
		nic_is_clean "$faults" "$objects" | sed "s/^/# $name: the model: /" | tee "$tmp/unclean"
		[ ! -s "$tmp/unclean" ] || result="not ok"
		nic_kinds=$nic_kinds_before
	fi
	[ "$result" = ok ] || failed=$((failed + 1))
	echo "# $name: $(($(cut -d . -f 1 /proc/uptime) - start)) s"
	echo "$result $number $name"
done

[ -z "$link_made" ] || rdma link delete rxe_lo
unload $loaded_here || { echo "# modules can't be unloaded: $loaded_here"; failed=1; }
if [ -n "$KFI_NIC" ]; then
	nic_is_clean "$(nic_faults)" "$objects_first" | sed "s/^/# unloaded: the model: /" | tee "$tmp/unclean"
	[ ! -s "$tmp/unclean" ] || failed=1
	unload $nic_here || { echo "# kfi_nic can't be unloaded"; failed=1; }
fi
count() { grep -c "$@" "$tmp/results"; }
skipped=$(count '^ *ok .*# SKIP')
echo "# results: $(($(count '^ *ok ') - skipped)) passed, $(count '^ *not ok ') failed," \
	"$skipped skipped"
[ $failed -eq 0 ]
