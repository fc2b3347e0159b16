#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The pool of device regions: who is next in line, how much is kept, and for how long.
# The provider is loaded with other parameters for that, and with its own in the end.

. "$(dirname "$0")/lib.sh"

debug=/sys/kernel/debug

# document SUITE: a document of its own, below ours
document()
{
	{ run_suite "$1"; echo $? >"$tmp"; } | sed 's/^/    /'
	return "$(cat "$tmp")"
}

# with SUITE PARAMETER=VALUE ...
with()
{
	_one=$1
	shift
	if unload kfi_verbs && load kfi_verbs "$@" && document "$_one"; then
		pass "pool.$_one"
	else
		fail "pool.$_one"
	fi
}

plan 5
[ -d $debug/kfi_verbs ] || mount -t debugfs debugfs $debug 2>/dev/null
if [ ! -d $debug/kfi_verbs ]; then
	skip_rest "the kernel has no debugfs" pool.pool_line pool.pool_idle pool.pool_ahead pool.pool_large \
		pool.pool_none
	finish
fi
tmp=$(mktemp) || exit 1
trap 'rm -f "$tmp"' EXIT
with pool_line weak_fence=1 pool_idle=0 pool_pages=700
with pool_idle weak_fence=1 pool_idle=1
with pool_ahead pool_idle=0
with pool_large weak_fence=1 pool_idle=0
with pool_none weak_fence=1 pool_pages=0
unload kfi_verbs && load kfi_verbs || ktap_failed=1
finish
