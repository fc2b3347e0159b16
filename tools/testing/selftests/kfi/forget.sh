#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# A module in safe Rust gives the core a handler and a provider, and never takes them back.  It
# leaves the core a row of regions to be closed one after the other, and goes.  Neither does
# that keep it from going, nor is anything called that has gone.

. "$(dirname "$0")/lib.sh"

plan 19
loaded kfi_loop || { load kfi_loop && loaded_here=kfi_loop; } || exit

# said N LINE: the log has had the line N times since the mark.
said() { [ "$(since_mark | grep -c "^$2\$")" = "$1" ]; }

# The checks that are the same however the module went: NAME
afterwards()
{
	check forget.$1.closed said 1 "kfi_forgetful: the last region is closed"
	check forget.$1.dropped said 1 "kfi_forgetful: handler dropped"
	check forget.$1.cycle said 1 "kfi_forgetful: a queue is closed by its own handler"
	check forget.$1.keeper_goes rmmod kfi_keeper
	check forget.$1.queue_used said 1 "kfi_keeper: written Ok(()), closed Ok(())"
	check forget.$1.not_called said 0 "kfi_forgetful: handler called"
	check forget.$1.no_provider said 1 "kfi_keeper: 0 offers of a provider that is gone"
}

mark_log
check forget.unload.keeper load kfi_keeper
check forget.unload.give load kfi_forgetful
check forget.unload.goes rmmod kfi_forgetful
afterwards unload

mark_log
check forget.fail.keeper load kfi_keeper
refused forget.fail.give load kfi_forgetful fail=1
afterwards fail

unload $loaded_here || exit
finish
