#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Connections and transfers through the Rust API, over each provider that has them: cases of
# kfi_ep_rs.ko, and a sample.

. "$(dirname "$0")/lib.sh"

# In the order in which the module has them.
cases="data rejected dropped messages parts refused access pieces flags atomics regions lists listed_regions listed_pages closing cancelled handlers shared unshared many close_now bio_vecs reuse framed sizes"

# Loads a module, which fails if what it does has failed, and unloads it: MODULE [PARAMETER=VALUE ...]
once()
{
	load "$@" && rmmod "$1" && return
	kernel_log | grep "^$1: " | tail -n 5
	return 1
}

# run_cases PROVIDER COLUMN [PARAMETER=VALUE ...]
run_cases()
{
	_provider=$1 _column=$2 _number=0 _features=
	shift 2
	for _name in CANCEL ATOMIC_WRITE DESC REUSE; do
		_has=$(feature $_name "$_column") || exit
		_features="$_features $(echo $_name | tr A-Z a-z)=$_has"
	done
	for _case in $cases; do
		# shellcheck disable=SC2086
		check ep_rs.$_provider.$_case once kfi_ep_rs case=$_number $_features "$@"
		_number=$((_number + 1))
	done
	check ep_rs.$_provider.sample once kfi_pingpong "$@"
}

if tests_loop; then
	plan 52
	loaded kfi_loop || { load kfi_loop && loaded_here=kfi_loop; } || exit
	run_cases loop loop
	unload $loaded_here || exit
else
	plan 26
fi

trap ep_device_down EXIT
ep_device_up || exit
# $ep_address as a number: module parameters in Rust are no strings.
run_cases verbs "$(verbs_column)" verbs=1 address=0xc6336401
finish
