# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Where Debian's archive is, as this host itself has it configured.  No address is
# written down in this project: the host's own mirror, with its options, is used.
# Sourced after lib.sh.

keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# archive_uri RELEASE-SUFFIX: the address from which the host gets its own Debian
# release ('' or -security), whatever format its sources are in.
archive_uri()
{
	local codename uri

	# shellcheck disable=SC1091
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	# apt's own view of one-line and deb822 sources alike.
	uri=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' \
			'Created-By: Packages' 2>/dev/null |
		awk -v release="$codename$1" \
			'$1 == release && $2 == "main" { print $3; exit }')
	# Cloud images name a file that lists mirrors.
	case $uri in
	mirror+file:*) uri=$(grep -m1 -oE '^[a-z]+://[^ \t]+' "${uri#mirror+file:}") ;;
	esac
	echo "${uri%/}"
}

# The sources of the environment: trixie, its security fixes, and backports for
# the kernels.  KFABRIC_MIRROR names a mirror where the host has none.
archive_sources()
{
	local main security='' signed=

	main=${KFABRIC_MIRROR:-$(archive_uri '')}
	[ -n "$main" ] || die "this host's apt sources name no Debian archive;" \
		"set KFABRIC_MIRROR to the address of a Debian mirror."
	[ -n "${KFABRIC_MIRROR:-}" ] || security=$(archive_uri -security)
	[ ! -e $keyring ] || signed="[signed-by=$keyring] "
	echo "deb $signed$main trixie main"
	echo "deb $signed$main trixie-backports main"
	[ -z "$security" ] || echo "deb $signed$security trixie-security main"
}

# The host's ways of reaching its mirror: proxies, time-outs, validity checks.
archive_options()
{
	apt-config dump |
		grep -E '^Acquire::(http|https|ftp|Retries|Check-|Max-ValidTime|Min-ValidTime|ForceIPv)' |
		grep -vE ' "";$|Auto-?Detect' || :
}

# apt with a state of its own, so that the host's sources don't matter and nothing of them is
# changed.  It is the host's apt, so that the archive can be read while the toolchain root is made.
archive_setup()
{
	mkdir -p "$CACHE/apt/lists/partial" "$CACHE/apt/archives/partial" "$CACHE/apt/empty"
	archive_sources >"$CACHE/apt/sources.list"
	{
		archive_options
		cat <<-END
		Dir::Etc::SourceList "$CACHE/apt/sources.list";
		Dir::Etc::SourceParts "$CACHE/apt/empty";
		Dir::State::Lists "$CACHE/apt/lists";
		Dir::Cache::Archives "$CACHE/apt/archives";
		Dir::Cache::pkgcache "";
		Dir::Cache::srcpkgcache "";
		Acquire::Languages "none";
		APT::Sandbox::User "root";
		APT::Architectures { "amd64"; "arm64"; };
		END
	} >"$CACHE/apt/apt.conf"
}

in_archive()
{
	env APT_CONFIG="$CACHE/apt/apt.conf" "$@"
}

# One look at the archive serves every series of a run.
refresh()
{
	if [ ! -e "$CACHE/apt/updated" ] ||
	   [ "$(cat "$CACHE/apt/updated")" != "$KFABRIC_T0" ]; then
		archive_setup
		step "$CACHE/log/apt-update.log" "asking the archive for its kernels" \
			in_archive apt-get update -o APT::Update::Error-Mode=any
		echo "$KFABRIC_T0" >"$CACHE/apt/updated"
	fi
}
