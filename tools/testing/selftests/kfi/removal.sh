#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The device goes away under load: its link is deleted, the netdev beneath it is deleted, its
# driver is unloaded.  Open objects say so and close; a device that comes back works.
#
# Then in scenarios of kfi_removal.ko (removal/): domains that are closed in removal callbacks, the
# order of callbacks, a driver that fails, a close that meets removal.

# Names of results have no blanks.
# shellcheck disable=SC2046
. "$(dirname "$0")/lib.sh"

ways="link_delete netdev_delete driver_unload interface_down" driver=rdma_rxe
[ -z "$KFI_NIC" ] || ways="link_delete driver_unload interface_down" driver=kfi_nic
steps="load remove callback gone probe close unload again"
scenarios="each_other with_objects for_both own by_thread order
	leak_mr leak_qp leak_mr_removed leak_qp_removed meet_removal meet_close"
scenario_steps="load remove gone unload log"
names()
{
	for _way in $ways; do for _step in $steps; do echo removal.$_way.$_step; done; done
	echo removal.async removal.close removal.down
	for _way in $scenarios; do
		for _step in $scenario_steps; do echo removal.$_way.$_step; done
	done
}

plan "$(names | wc -w)"

link=rxe_kfi dev=kfi_dummy
[ -z "$KFI_NIC" ] || link=$ep_device dev=$ep_netdev
param=/sys/module/kfi_holder/parameters
get() { cat $param/$1; }
command() { echo "$1" >$param/command; }

# A link whose IPv4 address has become a GID.
link_ready() { grep -qs ffff:c000:02 /sys/class/infiniband/$link/ports/1/gids/*; }
link_up()
{
	if [ -n "$KFI_NIC" ]; then
		nic_up
		return
	fi
	[ -d /sys/class/net/$dev ] || ip link add $dev type dummy || return
	ip addr add 192.0.2.1/24 dev $dev 2>/dev/null
	ip link set $dev up || return
	[ -d /sys/class/infiniband/$link ] || rdma link add $link type rxe netdev $dev || return
	wait_for 60 link_ready
}
link_gone() { [ ! -d /sys/class/infiniband/$link ]; }
link_down()
{
	[ -z "$KFI_NIC" ] || return 0
	[ ! -d /sys/class/infiniband/$link ] || rdma link delete $link
	[ ! -d /sys/class/net/$dev ] || ip link delete $dev
}

# The links of others, which unloading the driver takes along: "name netdev" a line.
other_links()
{
	rdma link show 2>/dev/null |
		sed -n 's/^link \([^ /]*\)\/.* netdev \([^ ]*\).*/\1 \2/p' | grep -v "^$link "
}
restore_links()
{
	echo "$others" | while read -r name netdev; do
		[ -z "$name" ] || [ -d /sys/class/infiniband/$name ] ||
			rdma link add "$name" type rxe netdev "$netdev"
	done
}

# A step that takes longer than this hangs.  It can't be ended, and neither can anything that
# waits for it, so nothing more is tried then.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
run_aside()
{
	rm -f "$tmp/status"
	{ "$@" >"$tmp/said" 2>&1; echo $? >"$tmp/status"; } &
}
in_time()
{
	run_aside "$@" >/dev/null 2>&1
	if ! wait_for 120 [ -s "$tmp/status" ]; then
		: >"$tmp/hangs"
		echo "hangs: $*"
		for _pid in $(pidof "$1"); do cat "/proc/$_pid/stack"; done
		return 1
	fi
	cat "$tmp/said"
	return "$(cat "$tmp/status")"
}
still_alive() { [ ! -e "$tmp/hangs" ] || finish; }
# The driver is unbound from the model, whose module stays.
unbind() { echo "$1" >/sys/bus/pci/drivers/kfi_nic/unbind; }
delete_link()
{
	if [ -n "$KFI_NIC" ]; then
		unbind "$(basename "$(readlink -f /sys/class/infiniband/$link/device)")"
	else
		rdma link delete $link
	fi
}
remove_link_delete() { in_time delete_link; }
remove_netdev_delete() { in_time ip link delete $dev && wait_for 120 link_gone; }
remove_driver_unload() { in_time rmmod $driver; }
# The port is down first, so that nothing gets through any more.
remove_interface_down() { ip link set $dev down && wait_for 60 port_is DOWN && in_time delete_link; }

busy() { [ "$(get rounds)" -gt 20 ]; }
load_ok()
{
	link_up || { echo "no link"; return 1; }
	load kfi_holder domain=$link regions=32 threads=4 async=1 || return
	wait_for 120 busy || { echo "no load"; return 1; }
	[ "$(get unexpected)" = 0 ] && [ "$(get peer_errors)" = 0 ]
}
removed_once() { [ "$(get removed)" = 1 ] && [ "$(get raw_removed)" = 1 ]; }
# From now on there is -ENODEV and nothing else.
refusing() { [ "$(get enodev)" -gt 4 ]; }
all_gone()
{
	wait_for 60 refusing || { echo "no -ENODEV"; return 1; }
	_before=$(get rounds)
	sleep 1
	[ "$(get rounds)" = "$_before" ] && [ "$(get unexpected)" = 0 ]
}
close_ok() { command close && [ "$(get unexpected)" = 0 ]; }
# Memory is registered, reached, and given back.
works()
{
	_said=$(KFI_DOMAIN=$link run_suite local) || { echo "$_said" | grep -v '^ok '; return 1; }
}
# The device goes while a call of it is held up: SUITE, which takes the link away.
held_up() { link_up && KFI_DOMAIN=$link run_suite "$1"; }
# No port is active, and then one is again.
port_is() { grep -qs "$1" /sys/class/infiniband/$link/ports/1/state; }
port_down()
{
	link_up && ip link set $dev down && wait_for 60 port_is DOWN || return
	KFI_DOMAIN=$link run_suite down || return
	link_up && wait_for 60 port_is ACTIVE && works
}
again_ok()
{
	[ $way != driver_unload ] || [ -n "$KFI_NIC" ] || { modprobe rdma_rxe && restore_links; } || return
	link_up || return
	works
}

if [ -n "$KFI_NIC" ]; then
	# The model has all that is needed.
	link_up || exit
elif ! link_up 2>/dev/null; then
	link_down 2>/dev/null
	skip_rest "no dummy netdev with rxe on it" $(names)
	finish
fi
others=$(other_links)

for way in $ways; do
	if [ $way = driver_unload ] && ! loaded $driver; then
		skip_rest "the driver is built in" \
			$(for i in $steps; do echo removal.$way.$i; done)
		continue
	fi
	# With lock debugging, rxe's sockets hold rxe's module as long as there is a link, used or not.
	# So the module can't be unloaded at all.
	if [ $way = driver_unload ] && link_up && [ "$(cat /sys/module/$driver/refcnt)" != 0 ]; then
		skip_rest "a mere link keeps $driver from being unloaded on this kernel" \
			$(for i in $steps; do echo removal.$way.$i; done)
		continue
	fi
	check removal.$way.load load_ok
	check removal.$way.remove remove_$way
	still_alive
	check removal.$way.callback removed_once
	check removal.$way.gone all_gone
	check removal.$way.probe command probe
	check removal.$way.close close_ok
	check removal.$way.unload unload kfi_holder
	check removal.$way.again again_ok
done
check removal.async held_up gone_async
check removal.close held_up gone_close
check removal.down port_down

# What is open is logged in one of the scenarios.
slow_wait=/sys/module/kfabric/parameters/slow_wait
slow_wait_before=$(cat $slow_wait)
scenario_load()
{
	[ $scenario != meet_removal ] || { mark_log && echo 0 >$slow_wait; }
	link_up && load kfi_removal device=$link scenario=$scenario
}
scenario_gone() { echo gone >/sys/module/kfi_removal/parameters/command; }
# How often the log says of each kind of object that one was leaked: "PDS MRS QPS".  Read once for
# each scenario: a log gets long.
leaked()
{
	dmesg | awk -v said="$link: leaked a " '
		i = index($0, said) { n[substr($0, i + length(said), 3)]++ }
		END { print n["pro"] + 0, n["mem"] + 0, n["que"] + 0 }'
}
# The log must have each message that is due, no more and no less often.
scenario_log()
{
	_pds=0 _mrs=0 _qps=0
	case $scenario in
	leak_mr) _pds=2 _mrs=3 ;;
	leak_qp) _pds=2 _qps=2 ;;
	leak_mr_removed) _pds=1 _mrs=2 ;;
	leak_qp_removed) _pds=1 _qps=1 ;;
	esac
	# shellcheck disable=SC2086
	set -- $before $(cat "$tmp/leaked")
	echo "leaked: $(($4 - $1)) $(($5 - $2)) $(($6 - $3))"
	if [ $scenario = meet_removal ]; then
		echo "$slow_wait_before" >$slow_wait
		since_mark | grep -q "kfabric: region [0-9]* in .*, owner kfi_removal, open for [0-9]* s" || return
	fi
	# Regions that the pool has kept ready are among those that are leaked.
	[ $(($4 - $1)) = $_pds ] && [ $(($5 - $2)) -ge $_mrs ] &&
		{ [ $_mrs != 0 ] || [ "$5" = "$2" ]; } && [ $(($6 - $3)) = $_qps ]
}

leaked >"$tmp/leaked"
for scenario in $scenarios; do
	before=$(cat "$tmp/leaked")
	check removal.$scenario.load scenario_load
	check removal.$scenario.remove remove_link_delete
	still_alive
	check removal.$scenario.gone scenario_gone
	check removal.$scenario.unload unload kfi_removal
	leaked >"$tmp/leaked"
	check removal.$scenario.log scenario_log
done
link_down
finish
