# SPDX-License-Identifier: GPL-2.0
#
# The kernel's own NVMe over Fabrics target, with a namespace in memory. For any script that has lib.sh.

config=/sys/kernel/config
subsystem=$config/nvmet/subsystems/kfi
port=$config/nvmet/ports/1
# What is behind the namespace.
behind=/dev/nullb0

# target_up ADDRESS: a namespace of 1 GiB, at an address of an RDMA device's.
target_up()
{
	modprobe -a nvmet nvmet-rdma 2>/dev/null
	modprobe null_blk nr_devices=1 gb=1 memory_backed=1 bs=512 discard=1 || return
	[ -d $config/nvmet ] || mount -t configfs none $config || return
	mkdir $subsystem $subsystem/namespaces/1 $port &&
		echo 1 >$subsystem/attr_allow_any_host &&
		echo $behind >$subsystem/namespaces/1/device_path &&
		echo 6b666162-7269-4300-8000-000000000001 >$subsystem/namespaces/1/device_uuid &&
		echo 1 >$subsystem/namespaces/1/enable &&
		echo rdma >$port/addr_trtype && echo ipv4 >$port/addr_adrfam &&
		echo "$1" >$port/addr_traddr && echo 4420 >$port/addr_trsvcid &&
		open_port
}
target_down()
{
	rm -f $port/subsystems/kfi
	echo 0 >$subsystem/namespaces/1/enable
	rmdir $port $subsystem/namespaces/1 $subsystem
	rmmod nvmet-rdma nvmet null_blk
}
open_port() { ln -s $subsystem $port/subsystems/kfi; }
close_port() { rm $port/subsystems/kfi; }
