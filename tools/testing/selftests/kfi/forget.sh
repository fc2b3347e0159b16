#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# A module in safe Rust gives the core a handler and a provider, and never takes them back.  It
# leaves the core a row of regions to be closed one after the other, and goes.  Neither does
# that keep it from going, nor is anything called that has gone.

. "$(dirname "$0")/lib.sh"

plan 19
loaded kfi_loop || { load kfi_loop && loaded_here=kfi_loop; } || exit

# How often the log has a line.
said() { kernel_log | grep -c "^$1\$"; }
count()
{
	closed=$(said "kfi_forgetful: the last region is closed")
	dropped=$(said "kfi_forgetful: handler dropped")
	cycles=$(said "kfi_forgetful: a queue is closed by its own handler")
	called=$(said "kfi_forgetful: handler called")
	gone=$(said "kfi_keeper: 0 offers of a provider that is gone")
	used=$(said "kfi_keeper: written Ok(()), closed Ok(())")
}
grown() { [ "$(said "$1")" = $(($2 + 1)) ]; }
same() { [ "$(said "$1")" = "$2" ]; }

# The checks that are the same however the module went: NAME
afterwards()
{
	check forget.$1.closed grown "kfi_forgetful: the last region is closed" "$closed"
	check forget.$1.dropped grown "kfi_forgetful: handler dropped" "$dropped"
	check forget.$1.cycle grown "kfi_forgetful: a queue is closed by its own handler" "$cycles"
	check forget.$1.keeper_goes rmmod kfi_keeper
	check forget.$1.queue_used grown "kfi_keeper: written Ok(()), closed Ok(())" "$used"
	check forget.$1.not_called same "kfi_forgetful: handler called" "$called"
	check forget.$1.no_provider \
		grown "kfi_keeper: 0 offers of a provider that is gone" "$gone"
}

count
check forget.unload.keeper load kfi_keeper
check forget.unload.give load kfi_forgetful
check forget.unload.goes rmmod kfi_forgetful
afterwards unload

count
check forget.fail.keeper load kfi_keeper
refused forget.fail.give load kfi_forgetful fail=1
afterwards fail

unload $loaded_here || exit
finish
