#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# shellcheck disable=SC2154
#
# Controllers of the NVMe transport: connecting by each way and what is refused, the commands of nvme-cli, authentication.

. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/nvme_target.sh"
. "$(dirname "$0")/nvme_host.sh"
. "$(dirname "$0")/nvme_io.sh"

# cli COMMAND [ARGUMENT...]: of nvme-cli.
cli() { nvme "$@" >"$dir/cli" 2>"$dir/cli.said" || { echo "nvme $*:"; cat "$dir/cli" "$dir/cli.said"; return 1; }; }
# tells REGEXP: what nvme-cli has said.
tells() { grep -q -e "$1" "$dir/cli" || { echo "no $1:"; cat "$dir/cli"; return 1; }; }
cli_connect()
{
	cli connect -t "$transport" -a $ep_address -s 4420 -n $nqn -q $hostnqn -I $hostid --reconnect-delay=1
}

# Connected by nvme-cli as by a write to /dev/nvme-fabrics, with the port that nvme-rdma has by default.
case_cli() { leave && cli_connect && wait_for 60 found && random_pieces 4 && cli disconnect -n $nqn && wait_for 60 alone; }
case_port() { leave && without_port && wait_for 60 found; }
without_port() { options | sed 's/trsvcid=4420,//' | dd of=/dev/nvme-fabrics 2>/dev/null; }
case_listed()
{
	cli list && tells "$disk " && cli list-subsys && tells "$ctrl $transport traddr=$ep_address,trsvcid=4420" && tells live &&
		cli list-subsys -o json && tells "\"Transport\":\"$transport\""
}
case_identified()
{
	cli id-ctrl "/dev/$ctrl" && tells "^subnqn *: $nqn\$" && cli id-ns "$disk" && tells "^nsze *: 0x200000\$" &&
		cli show-regs "/dev/$ctrl" && tells cap
}
case_discovered()
{
	cli discover -t "$transport" -a $ep_address -s 4420 -q $hostnqn -I $hostid && tells "subnqn: *$nqn\$" && tells "trtype: *rdma"
}
# Reads and writes that a program makes up.
case_passthru()
{
	_blocks="--namespace-id=1 --cdw10=9 --cdw12=15 --data-len=8192"
	# shellcheck disable=SC2086
	cli io-passthru "$disk" --opcode=1 --write $_blocks --input-file="$dir/a" &&
		cli io-passthru "$disk" --opcode=2 --read --raw-binary $_blocks && same 8192 "$dir/a" "$dir/cli" &&
		copy if=$behind of="$dir/b" bs=512 skip=9 count=16 && same 8192 "$dir/a" "$dir/b" &&
		cli admin-passthru "/dev/$ctrl" --opcode=6 --cdw10=1 --read --data-len=4096 --raw-binary &&
		[ "$(wc -c <"$dir/cli")" = 4096 ]
}
# An error of the target reaches the program: beyond the end, and a command that there isn't.
case_passthru_fails()
{
	! cli io-passthru "$disk" --opcode=2 --read --namespace-id=1 --cdw10=2097152 --data-len=512 &&
		! cli io-passthru "$disk" --opcode=0x7e --namespace-id=1 && ! cli format "$disk" --force && random_pieces 2
}
case_reset() { under_io resets; }
resets()
{
	for _i in 1 2 3; do
		cli reset "/dev/$ctrl" && live && echo 1 >"$sys/$ctrl/reset_controller" && live || return
	done
}

# Controllers that are deleted before their namespaces have been found.
case_deleted_at_once()
{
	for _i in 1 2 3 4 5; do
		leave && try || return
	done
	leave
}

# A second connection to the same place is refused, unless it is asked for.
case_duplicate()
{
	! try && grep -q ": Operation already in progress\$" "$dir/said" && ! cli_connect && grep -q "already connected" "$dir/cli.said" &&
		try duplicate_connect && [ "$(controllers | wc -l)" = 2 ] && random_pieces 4
	_result=$?
	leave && return $_result
}
case_wrong_nqn() { leave && fails "Input/output error" nqn=other; }
case_wrong_host()
{
	leave && echo 0 >$subsystem/attr_allow_any_host && fails "Input/output error"
	_result=$?
	echo 1 >$subsystem/attr_allow_any_host
	return $_result
}
case_wrong_port() { leave && fails "$refused" trsvcid=4499; }
case_wrong_address()
{
	leave && fails "$unreachable" traddr=203.0.113.1 && fails "Invalid argument" traddr=nowhere &&
		fails "Cannot assign requested address" host_traddr=203.0.113.1
}
# nvme-core refuses what no transport knows, and what this transport doesn't allow.
case_wrong_options()
{
	leave && for _i in colour=red queue_size=1 nr_io_queues=0 hdr_digest data_digest host_iface=lo transport=other \
		trsvcid=word reconnect_delay=-1; do
		fails "Invalid argument" $_i || { echo "$_i"; return 1; }
	done
}
# The host limits these options to the number of CPUs, which nvme-core does not.
case_many_queues()
{
	anew nr_write_queues=2147483647,nr_poll_queues=2147483647,nr_io_queues=1 && random_pieces 4 &&
		[ "$(cat "$sys/$ctrl/queue_count")" = $((2 + 2 * $(nproc))) ]
}
# The target has space for one controller.
case_full()
{
	echo 1 >$subsystem/attr_cntlid_max && anew && ! try duplicate_connect && grep -q ": Input/output error\$" "$dir/said"
	_result=$?
	echo 65519 >$subsystem/attr_cntlid_max
	return $_result
}
# The options that sysfs shows, and the address of this side.
case_options()
{
	anew host_traddr=$ep_address,ctrl_loss_tmo=30,fast_io_fail_tmo=5,keep_alive_tmo=7,queue_size=32 &&
		_is="$(cat "$sys/$ctrl/address") $(cat "$sys/$ctrl/reconnect_delay" "$sys/$ctrl/ctrl_loss_tmo" \
			"$sys/$ctrl/fast_io_fail_tmo" "$sys/$ctrl/kato" "$sys/$ctrl/sqsize" "$sys/$ctrl/transport" | xargs)" &&
		[ "$_is" = "traddr=$ep_address,trsvcid=4420,host_traddr=$ep_address 1 30 5 7 31 $transport" ] ||
		{ echo "$_is"; return 1; }
}
# IPv6, and addresses that are good on one link only.
case_ipv6() { over_ipv6 $ep_address6; }
case_link_local()
{
	_local=$(ip -6 -o address show dev $ep_netdev scope link | sed -n 's/.*inet6 \([^/]*\).*/\1/p' | head -n 1)
	over_ipv6 "$_local%$ep_netdev" && ! try "traddr=$_local" >/dev/null
}
over_ipv6()
{
	leave && close_port && listen_at "$1" && connect "traddr=$1" && random_pieces 4
	_result=$?
	leave && close_port && listen_at $ep_address && return $_result
}

# Without a device that leads there, the provider "loop" does, where only targets on kfabric listen. The log says so.
case_over_loop()
{
	leave && loaded_here='' || return
	loaded kfi_loop || { load kfi_loop && loaded_here=kfi_loop; } || return
	mark_log
	fails "Connection refused" traddr=203.0.113.1 && says 'over "loop", so the target must use kfabric, too'
	_result=$?
	unload $loaded_here && return $_result
}

# DH-HMAC-CHAP: of the host, of both, and with a wrong key. The target ends the connection at once then, maybe before its
# answer has arrived.
host=$config/nvmet/hosts/$hostnqn rejected="Key was rejected by service"
case_authenticated()
{
	_key=$(nvme gen-dhchap-key -n $hostnqn -m 1) && _own=$(nvme gen-dhchap-key -n $nqn -m 1) &&
		_other=$(nvme gen-dhchap-key -n $hostnqn -m 1) && timeouts 5 && leave && mkdir $host && echo "$_key" >$host/dhchap_key &&
		echo 0 >$subsystem/attr_allow_any_host && ln -s $host $subsystem/allowed_hosts/$hostnqn && with_keys
	_result=$?
	default_timeouts
	leave && rm -f $subsystem/allowed_hosts/$hostnqn && rmdir $host && echo 1 >$subsystem/attr_allow_any_host &&
		return $_result
}
with_keys()
{
	connect "dhchap_secret=$_key" && random_pieces 4 && under_io authenticate_again && authenticate_wrong && leave &&
		fails "Required key not available" && fails "\($rejected\|Input/output error\)" "dhchap_secret=$_other" &&
		echo "$_own" >$host/dhchap_ctrl_key &&
		connect "dhchap_secret=$_key,dhchap_ctrl_secret=$_own" && random_pieces 4 && leave &&
		fails "$rejected" "dhchap_secret=$_key,dhchap_ctrl_secret=$_other"
}

# The host authenticates again when sysfs is given a key. If that is wrong, the target ends the connection, and recovery
# doesn't wait for a command of authentication.
authenticate_again()
{
	mark_log
	echo "$_key" >"$sys/$ctrl/dhchap_secret" && wait_for 60 says "qid 0: authenticated" && state_is live
}
authenticate_wrong() { echo "$_other" >"$sys/$ctrl/dhchap_secret" && wait_for 60 recovers; }
recovers() { alone || state_is connecting; }
says() { since_mark | grep -q "$1"; }

# A module that has a controller goes.
case_unload() { host_down && alone && host_up && connect && random_pieces 2; }
# A connection loads the module.
case_loaded_by_alias() { host_down && not loaded kfi_nvme && connect && loaded kfi_nvme; }
# The name of the transport is a parameter, for connect-all and others. A connection loads nvme-rdma, too, which would take
# its controllers with it.
case_renamed()
{
	host_down && load kfi_nvme name=rdma &&
		cli connect-all -t rdma -a $ep_address -s 4420 -q $hostnqn -I $hostid --reconnect-delay=1 && wait_for 60 found &&
		[ "$(controllers | wc -l)" = 1 ] && [ "$(cat "$sys/$ctrl/transport")" = rdma ] &&
		wait_for 30 unload nvme_rdma && state_is live && random_pieces 2
	_result=$?
	host_down && host_up && return $_result
}

# What the two transports tell of failures.
if [ "$transport" = rdma ]; then
	refused="Connection reset by peer" unreachable="Network is unreachable"
else
	refused="Connection refused" unreachable="No such device"
fi

lacks()
{
	case $1 in
	cli | listed | identified | discovered | passthru | passthru_fails | reset | duplicate | authenticated | renamed)
		command -v nvme >/dev/null || echo "no nvme-cli"
		;;
	esac
	case $1 in
	authenticated) [ -e $config/nvmet/hosts ] && grep -q dhchap_secret /dev/nvme-fabrics || echo "no authentication" ;;
	loaded_by_alias) [ "$transport" != rdma ] && [ -z "$KFI_MODULES" ] || echo "modprobe doesn't find kfi_nvme" ;;
	over_loop) [ "$transport" != rdma ] && tests_loop || echo "no provider loop" ;;
	renamed) not loaded nvme_rdma || echo "nvme-rdma was first" ;;
	link_local) [ -n "$(ip -6 -o address show dev $ep_netdev scope link)" ] || echo "no link-local address" ;;
	esac
}

run nvme_admin cli port listed identified discovered passthru passthru_fails reset deleted_at_once duplicate wrong_nqn wrong_host \
	wrong_port wrong_address wrong_options many_queues full options ipv6 link_local over_loop authenticated unload loaded_by_alias renamed
finish
