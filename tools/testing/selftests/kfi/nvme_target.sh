# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# The kernel's own NVMe over Fabrics target nvmet-rdma: one subsystem at one port, with namespaces in memory. For any
# script that has lib.sh.

nqn=kfi
config=/sys/kernel/config
subsystem=$config/nvmet/subsystems/$nqn
port=$config/nvmet/ports/1
# The device behind namespace 1.
behind=/dev/nullb0
# How many devices in memory there are.
devices=1
uuid=6b666162-7269-4300-8000-0000

# target_up ADDRESS: a namespace of 1 GiB, at an address of an RDMA device.
target_up()
{
	modprobe -a nvmet nvmet-rdma 2>/dev/null
	# (novalidate/ says why.)
	[ ! -e /proc/lockdep_stats ] || { load kfi_novalidate && unload kfi_novalidate; } || return
	modprobe null_blk nr_devices=$devices gb=1 memory_backed=1 bs=512 discard=1 cache_size=8 || return
	[ -d $config/nvmet ] || mount -t configfs none $config || return
	mkdir $subsystem $port && echo 1 >$subsystem/attr_allow_any_host && add_namespace 1 $behind &&
		echo rdma >$port/addr_trtype && listen_at "$1"
}
target_down()
{
	rm -f $port/subsystems/$nqn
	for _n in "$subsystem"/namespaces/*; do
		remove_namespace "${_n##*/}"
	done
	rm -f $subsystem/allowed_hosts/*
	rmdir $config/nvmet/hosts/* 2>/dev/null || :
	rmdir $port $subsystem
	rmmod nvmet-rdma nvmet null_blk
}

# listen_at ADDRESS: the port is closed, or new.
listen_at()
{
	case $1 in
	*:*) echo ipv6 >$port/addr_adrfam ;;
	*) echo ipv4 >$port/addr_adrfam ;;
	esac && echo "$1" >$port/addr_traddr && echo 4420 >$port/addr_trsvcid && open_port
}
open_port() { ln -s $subsystem $port/subsystems/$nqn; }
# Ends all connections, too.
close_port() { rm $port/subsystems/$nqn; }

# add_namespace NSID DEVICE [NUMBER]: NUMBER is the end of its UUID.
add_namespace()
{
	_space=$subsystem/namespaces/$1
	mkdir "$_space" && echo "$2" >"$_space/device_path" &&
		printf '%s%08d' $uuid "${3:-$1}" >"$_space/device_uuid" && echo 1 >"$_space/enable"
}
remove_namespace()
{
	echo 0 >$subsystem/namespaces/"$1"/enable && rmdir $subsystem/namespaces/"$1"
}

# null_device NAME ATTRIBUTE=VALUE...: one more device in memory, /dev/NAME, of 1 GiB if nothing else is said.
null_device()
{
	_null=$config/nullb/$1
	mkdir "$_null" || return
	shift
	for _i in memory_backed=1 size=1024 "$@" power=1; do
		echo "${_i#*=}" >"$_null/${_i%%=*}" || return
	done
}
null_gone() { rmdir $config/nullb/"$1"; }
# behind_is DEVICE NUMBER: what is behind namespace 1, and the end of its UUID. The port is closed meanwhile.
behind_is()
{
	_space=$subsystem/namespaces/1
	close_port && echo 0 >$_space/enable && echo "$1" >$_space/device_path &&
		printf '%s%08d' $uuid "$2" >$_space/device_uuid && echo 1 >$_space/enable && open_port
}
