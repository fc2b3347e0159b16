#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Pages that can't be registered.  The suite makes them; this script sees to it that memory
# which it adds isn't taken into use, where there is none.

. "$(dirname "$0")/lib.sh"

auto=/sys/devices/system/memory/auto_online_blocks
before=$(cat $auto 2>/dev/null)
hotplug=0
if [ -n "$before" ] && echo offline >$auto; then
	hotplug=1
	trap 'echo "$before" >$auto' EXIT
fi
run_suite badpages hotplug=$hotplug
