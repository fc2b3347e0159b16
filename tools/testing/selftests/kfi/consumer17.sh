#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# A consumer written for the existing kfabric 1.7 works unchanged.

. "$(dirname "$0")/lib.sh"

plan 3
check consumer17.run load kfi_consumer17
check consumer17.unload rmmod kfi_consumer17
# The same once more: nothing of the first time is in the way.
again() { load kfi_consumer17 && rmmod kfi_consumer17; }
check consumer17.again again
finish
