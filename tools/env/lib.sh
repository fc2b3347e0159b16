# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The common parts of every script under tools/: where things are kept, how progress is told,
# and how two runs stay out of each other's way.  Sourced, never run.

set -euo pipefail
umask 022

TOP=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CACHE=${KFABRIC_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kfabric}
mkdir -p "$CACHE/log"
CACHE=$(cd "$CACHE" && pwd -P)
export KFABRIC_CACHE=$CACHE

# The series that the project is built and tested for, oldest first.
SERIES=$(sed -n 's/^SERIES := //p' "$TOP/Makefile")

# Elapsed time counts from the first script of a run, through its children.
export KFABRIC_T0=${KFABRIC_T0:-$(date +%s)}

say()
{
	local t=$(($(date +%s) - KFABRIC_T0))

	printf '[%2d:%02d] %s\n' $((t / 60)) $((t % 60)) "$*"
}

# Paths inside the checkout are shown relative to it.
short()
{
	printf '%s' "${1#"$TOP/"}"
}

die()
{
	printf 'error: %s\n' "$*" >&2
	exit 1
}

# attempt LOG WHAT CMD...: a long step.  Its output goes to a log, whose place is
# told first; every half minute one line shows that it is still alive.
# (A function that is run as CMD chains with &&: bash ignores -e in there.)
attempt()
{
	local log=$1 what=$2 beat='' rc=0
	shift 2

	mkdir -p "$(dirname "$log")"
	say "$what (log: $(short "$log"))"
	# Where output is shown in one piece at the end, nobody would see it.
	if [ -z "${KFABRIC_BUFFERED:-}" ]; then
		(
			trap 'exit 0' TERM
			while sleep 30 & wait $!; do
				say "  ... still at it: $(tail -n1 "$log" | cut -c1-70)"
			done
		) 2>/dev/null &
		beat=$!
	fi
	"$@" >"$log" 2>&1 </dev/null || rc=$?
	if [ -n "$beat" ]; then
		kill $beat 2>/dev/null || :
		wait $beat 2>/dev/null || :
	fi
	return $rc
}

# advice LOG: what to do about the failure that LOG ends with, in one line.
advice()
{
	local log=$1 inner

	said() { tail -n 200 "$log" | grep -qE "$1"; }
	inner=$(sed -n 's/^error: //p' "$log" | tail -n1)
	if [ -n "$inner" ]; then
		# A step within that one has said it.
		echo "$inner"
	elif said 'No space left on device|not enough free space'; then
		echo "the disk is full: free some of it, or set KFABRIC_CACHE to a directory" \
			"elsewhere, and run it again"
	elif said 'Unable to locate package|no installation candidate|Version .* was not found|404 +Not Found'; then
		echo "the archive no longer has a package of that version: run" \
			"tools/env/setup --update, which asks for newer ones"
	elif said 'Could not resolve|Temporary failure resolving|[Uu]nable to connect|Could not connect|Connection (timed out|refused|failed)|Network is unreachable|Failed to fetch'; then
		echo "the archive can't be reached: see to the network and its proxy, or set" \
			"KFABRIC_MIRROR to a Debian mirror that can be, and run it again"
	elif said 'are you root|[Mm]ust be (root|superuser)|Operation not permitted|Permission denied'; then
		echo "run it as root (sudo -E make ...)"
	else
		echo "mend what the lines above say and run it again"
	fi
}

# step LOG WHAT CMD...: one without which it does not go on.
step()
{
	local rc=0

	attempt "$@" || rc=$?
	[ $rc = 0 ] && return
	tail -n 15 "$1" | sed 's/^/  | /' >&2
	die "$2 failed (exit $rc, all of it is in $(short "$1")): $(advice "$1")"
}

# locked NAME CMD...: one process at a time makes NAME; the others wait and then
# find it made.
locked()
{
	local name=$1
	shift
	(
		exec 9>"$CACHE/.lock-$name"
		if ! flock -n 9; then
			say "waiting for $name, which another process is making"
			flock 9
		fi
		"$@" 9>&-
	)
}

need_space()
{
	local mib=$1 what=$2 have

	have=$(df -Pm "$CACHE" | awk 'NR == 2 { print $4 }')
	[ "$have" -ge "$mib" ] ||
		die "$what needs $mib MiB in $CACHE, $have MiB are free." \
		    "Free some, or set KFABRIC_CACHE to a directory elsewhere."
}

need_root()
{
	[ "$(id -u)" = 0 ] ||
		die "$1 needs root. Run it as root (sudo -E make ...)."
}

hash_of()
{
	cat "$@" | sha256sum | cut -c1-12
}

# On Debian 13 the host is the environment; elsewhere a root directory is.
host_is_trixie()
{
	[ "${KFABRIC_FORCE_ROOT:-}" = 1 ] && return 1
	# shellcheck disable=SC1091
	( . /etc/os-release && [ "${ID:-}:${VERSION_CODENAME:-}" = debian:trixie ] )
}

# The packages file is one name a line, # comments.
packages()
{
	sed 's/#.*//' "$TOP/tools/env/packages" | xargs
}

root_dir()
{
	echo "$CACHE/root-$(packages | sha256sum | cut -c1-12)"
}

# The programs of guests for arm64.
userland_dir()
{
	echo "$CACHE/userland-$(hash_of "$TOP/tools/env/userland")"
}

# libraries FILE [DIR]: prints the libraries and the interpreter that a program needs. Those below DIR, for another
# architecture, can't be asked of their interpreter, which does not run here.
libraries()
{
	local file=$1 dir=${2-} name path left=("$1")
	local -A found=()

	if [ -z "$dir" ]; then
		ldd "$file" | grep -o '/[^ ]*'
		return
	fi
	while [ ${#left[@]} -gt 0 ]; do
		file=${left[0]}
		left=("${left[@]:1}")
		for name in $(readelf -dl "$file" |
				sed -nE 's/.*(NEEDED.*\[|interpreter: .*\/)(.*)\]/\2/p'); do
			path=$(find "$dir/usr/lib" -name "$name" -print -quit)
			[ -n "$path" ] && [ -z "${found[$path]-}" ] || continue
			found[$path]=1
			left+=("$path")
		done
	done
	[ ${#found[@]} = 0 ] || printf '%s\n' "${!found[@]}"
}

# The debug kernel of this configuration; another checkout may have another one.
debug_tree()
{
	echo "$CACHE/debug-$(hash_of "$TOP/tools/debug.config")"
}

# The flavours of Debian's kernels for arm64: pages of 4 and of 16 KiB.
ARM64="arm64 arm64-16k"

# flavour_of KERNEL: a kernel for arm64 is named after series and flavour, as in 7.3-arm64-16k.
flavour_of()
{
	case $1 in
	*-*) echo "${1#*-}" ;;
	*) echo amd64 ;;
	esac
}

# shared_source DIR TARBALL: unpacks the kernel's source to DIR/source, for all builds that have their objects
# elsewhere.
shared_source()
{
	[ ! -d "$1/source" ] || return 0
	rm -rf "$1/source.tmp" && mkdir -p "$1/source.tmp" &&
		"$TOP/tools/env/run" tar -C "$1/source.tmp" --strip-components=1 -xf "$2" &&
		mv "$1/source.tmp" "$1/source"
}

# known_kernel NAME: refuses a kernel that this project does not know.
known_kernel()
{
	[ "$1" != debug ] || return 0
	case " $SERIES newest " in
	*" ${1%%-*} "*) ;;
	*) die "KERNEL='$1' is no kernel of this project: give one of $SERIES newest debug," \
		"as in make KERNEL=${SERIES##* } modules" ;;
	esac
	case " amd64 $ARM64 " in
	*" $(flavour_of "$1") "*) ;;
	*) die "KERNEL='$1' is no kernel of this project: give ${1%%-*}, or for arm64 one of" \
		"${1%%-*}-${ARM64// / ${1%%-*}-}" ;;
	esac
}

# The newest series whose stock kernel is there, of NAME's flavour; nothing if there is none.
newest_series()
{
	local s newest='' flavour=${1-}

	flavour=${flavour#newest}
	for s in $SERIES; do
		[ ! -e "$CACHE/stock-$s$flavour/src/.complete" ] || newest=$s$flavour
	done
	echo "$newest"
}
