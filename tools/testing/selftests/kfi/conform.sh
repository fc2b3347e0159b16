#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The statements of kfi_mr(3) and fi_mr(3), over each provider, and a table of who has what.

. "$(dirname "$0")/lib.sh"

providers=verbs
! tests_loop || providers="verbs loop"

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"; ep_device_down' EXIT

# of PROVIDER: a document of its own, below ours.  It is shown as it comes.
of()
{
	{ run_module kfi_conform "$1" provider="$1" address=$ep_address; echo $? >"$tmp/status"; } |
	while IFS= read -r line; do
		printf '    %s\n' "$line"
		case $line in
		"# feature "*) printf '%s\n' "${line#\# feature }" >>"$tmp/$1" ;;
		esac
	done
	return "$(cat "$tmp/status")"
}

# The tables of all providers as one: a line for each feature.
table()
{
	for i in $providers; do
		sed "s/^/$i: /" "$tmp/$i" 2>/dev/null
	done | awk -F ': ' -v providers="$providers" '
		{
			if (!($2 in seen))
				order[++rows] = $2
			seen[$2] = 1
			said[$2, $1] = $3
		}
		function row(first,    i) {
			printf "# %-26s", first
			for (i = 1; i <= n; i++)
				printf " | %-20s", first == "feature" ? p[i] : said[first, p[i]]
			print ""
		}
		END {
			n = split(providers, p, " ")
			row("feature")
			for (r = 1; r <= rows; r++)
				row(order[r])
		}'
}

# Over verbs, connections need a device with an address of its own.
ep_device_up || exit
loaded_here=
for i in $providers; do
	loaded "kfi_$i" || { load "kfi_$i" && loaded_here="kfi_$i $loaded_here"; }
done

# shellcheck disable=SC2086
set -- $providers
plan $#
for i; do
	if of "$i"; then
		pass "conform.$i"
	else
		fail "conform.$i"
	fi
done
table
# shellcheck disable=SC2086
unload $loaded_here || ktap_failed=1
finish
