#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# A device that the provider refuses: the log has the reason, which is KFI_REASON, and there is no
# domain of that device.

. "$(dirname "$0")/lib.sh"

plan 2
said() { kernel_log | grep -qF "kfi_verbs: $KFI_DOMAIN: can't serve: $KFI_REASON"; }
# -61: no offer.
no_domain()
{
	! load kfi_holder domain="$KFI_DOMAIN" 2>/dev/null &&
		kernel_log | tail -n 20 | grep -q 'kfi_holder: open: -61$'
}
if [ -z "$KFI_REASON" ]; then
	skip_rest "KFI_REASON names no reason" unserved.reason unserved.no_domain
	finish
fi
check unserved.reason said
check unserved.no_domain no_domain
finish
