#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Parameters out of range are refused, and those of the providers can be read. The sample kfi_pingpong says what it
# lacks.

. "$(dirname "$0")/lib.sh"

plan 15

# refuses "MODULE [PARAMETER=VALUE ...]" TEXT: loading fails, and the kernel's log has TEXT.
refuses()
{
	mark_log
	# shellcheck disable=SC2086
	! load $1 2>/dev/null || { rmmod "${1%% *}"; return 1; }
	since_mark | grep -F -- "$2" || { since_mark; return 1; }
}
# is MODULE PARAMETER VALUE
is() { grep -x "$3" /sys/module/$1/parameters/$2; }

loaded kfi_loop || loop_here=kfi_loop
unload kfi_loop kfi_verbs || exit
for i in weak_fence=7 weak_fence=-1 wr_timeout=0 pool_pages=-1 pool_idle=soon; do
	check parameters.verbs.$i refuses "kfi_verbs $i" "kfi_verbs: \`${i#*=}' invalid for parameter \`${i%=*}'"
done
for i in domains=0 domains=65; do
	check parameters.loop.$i refuses "kfi_loop $i" "kfi_loop: \`${i#*=}' invalid for parameter \`${i%=*}'"
done
load kfi_verbs && load kfi_loop domains=64 || exit
check parameters.weak_fence is kfi_verbs weak_fence N
check parameters.pool_pages is kfi_verbs pool_pages 16384
check parameters.pool_idle is kfi_verbs pool_idle 10
check parameters.domains is kfi_loop domains 64
check parameters.sample.verbs=2 refuses "kfi_pingpong verbs=2" "kfi_pingpong: verbs=2 is neither 0 nor 1"
check parameters.sample.no_address refuses "kfi_pingpong verbs=1" "kfi_pingpong: verbs=1 needs address="
unload kfi_loop || exit
check parameters.sample.no_provider refuses kfi_pingpong \
	'kfi_pingpong: no offer of the provider "loop" at 192.0.2.1: is its module loaded'
# modprobe loads the core.
core() { unload kfi_verbs kfi_peer kfi_inject kfi_noio kfabric && refuses kfi_pingpong 'is its module loaded'; }
core_back()
{
	for i in kfi_peer kfi_inject kfi_noio kfabric kfi_verbs; do
		need $i || return
	done
}
if [ -n "$KFI_MODULES" ]; then
	skip parameters.sample.no_core "KFI_MODULES: nothing is found by modprobe"
else
	check parameters.sample.no_core core
fi
core_back || exit
[ -n "$loop_here" ] || load kfi_loop || exit
finish
