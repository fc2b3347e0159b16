#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Random calls with hostile arguments, random accesses by a peer, and many registrations, over each provider.
# The sequences of calls in corpus/ come first.

. "$(dirname "$0")/lib.sh"

corpus=$(mktemp) || exit
allow_faults && faults=faults=1
trap 'forbid_faults; ep_device_down 2>/dev/null; rm -f "$corpus"' EXIT
for i in "$here"/corpus/*.calls; do
	echo "# ${i##*/}" && cat "$i" && echo "---"
done >"$corpus"
result=0
if tests_loop; then
	loaded kfi_loop || { load kfi_loop && loaded_here=kfi_loop; } || exit
	run_module kfi_selftest random_loop suite=random provider=loop address=192.0.2.1 corpus=$corpus $faults || result=$?
	unload $loaded_here || exit
fi
ep_device_up &&
	run_module kfi_selftest random_verbs suite=random provider=verbs address=$ep_address corpus=$corpus $faults ||
	result=$?
exit $result
