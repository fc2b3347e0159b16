# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2016,SC2034,SC2086,SC2154
#
# The scripts are in order.  Sourced by tools/vm/selftest.

(
	cd "$TOP" &&
		grep -rlE '^#!/bin/(ba)?sh|^# shellcheck shell' tools .ci >"$tmp/scripts" &&
		xargs "$TOP/tools/env/run" shellcheck -x -P SCRIPTDIR -S warning <"$tmp/scripts"
) >"$tmp/out" 2>&1 && ok=0 || ok=1
[ "$(wc -l <"$tmp/scripts")" -gt 30 ] || ok=1
result $ok "shell: shellcheck has nothing to say"
