# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2016,SC2034,SC2086,SC2154
#
# The last line of a step that failed says what to do.  Sourced by tools/vm/selftest.

# advised PATTERN WHAT: the last line after a step that printed what is on stdin.
advised()
{
	local want=$1 what=$2 rc=0

	cat >"$tmp/said"
	(
		unset KFABRIC_BUFFERED
		step "$tmp/step.log" "the step" sh -c 'cat "$1"; exit 7' sh "$tmp/said"
	) >"$tmp/out" 2>&1 </dev/null || rc=$?
	if [ $rc = 1 ] && tail -n1 "$tmp/out" | grep -q "^error: the step failed.*$want"; then
		result 0 "advice: $what"
	else
		echo "wanted '$want', exit $rc" >>"$tmp/out"
		result 1 "advice: $what"
	fi
}

advised 'see to the network.*KFABRIC_MIRROR' "no archive" <<'END'
Err:1 http://mirror.example trixie InRelease
  Temporary failure resolving 'mirror.example'
E: Failed to fetch http://mirror.example/dists/trixie/InRelease  Temporary failure resolving
END
advised 'setup --update' "a package that is gone" <<'END'
E: Failed to fetch http://mirror.example/pool/linux_7.3.4.deb  404  Not Found [IP: 192.0.2.1 80]
END
advised 'free some of it, or set KFABRIC_CACHE' "no space" <<'END'
tar: linux-source-7.3/COPYING: Cannot write: No space left on device
END
advised 'run it as root' "not root" <<'END'
E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)
END
advised 'mend what the lines above say' "a build" <<'END'
error[E0425]: cannot find value `made_up` in this scope
make[2]: *** [rust/kfabric/kfabric.o] Error 1
END
advised 'KFABRIC_CACHE to a directory elsewhere.$' "a step within the step" <<'END'
error: the 7.3 kernel needs 4500 MiB in /somewhere, 12 MiB are free. Free some, or set KFABRIC_CACHE to a directory elsewhere.
END
(need_space 999999999 "made up") >"$tmp/out" 2>&1 && ok=1 || ok=0
grep -q 'Free some, or set KFABRIC_CACHE' "$tmp/out" || ok=1
result $ok "advice: no space before anything is begun"
