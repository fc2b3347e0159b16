#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# A consumer written for the existing kfabric 1.7 works unchanged: over verbs, whose regions need
# no endpoint, and over loop, whose regions are bound to one and enabled.

. "$(dirname "$0")/lib.sh"

tests_loop && plan 7 || plan 3
check consumer17.run load kfi_consumer17
check consumer17.unload rmmod kfi_consumer17
# The same once more: nothing of the first time is in the way.
again() { load kfi_consumer17 && rmmod kfi_consumer17; }
check consumer17.again again

tests_loop || finish
loaded_here=
loaded kfi_loop || { load kfi_loop && loaded_here=kfi_loop; }
over_loop() { load kfi_consumer17 provider=loop; }
check consumer17.bound_run over_loop
# Every one of them.
bound() { [ "$(cat /sys/module/kfi_consumer17/parameters/bound)" = 16 ]; }
check consumer17.bound bound
check consumer17.bound_unload rmmod kfi_consumer17
again_over_loop() { over_loop && rmmod kfi_consumer17; }
check consumer17.bound_again again_over_loop
unload $loaded_here || ktap_failed=1
finish
