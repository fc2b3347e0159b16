# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154
#
# The version changes in all places at once.  Sourced by tools/vm/selftest.

copy=$tmp/version
mkdir -p "$copy/tools/debian" "$copy/tools/kfi"
cp "$TOP/CHANGELOG.md" "$TOP/Kbuild" "$copy/"
cp "$TOP/tools/version" "$copy/tools/"
cp "$TOP/tools/debian/control" "$copy/tools/debian/"
cp "$TOP/tools/kfi/Cargo.toml" "$copy/tools/kfi/"

{
	"$copy/tools/version" 1000.0.1 &&
		grep -x 'KFABRIC_VERSION := 1000.0.1' "$copy/Kbuild" &&
		grep -x 'version = "1000.0.1"' "$copy/tools/kfi/Cargo.toml" &&
		grep -E '^## 1000\.0\.1 - [0-9-]{10}$' "$copy/CHANGELOG.md" &&
		[ "$("$copy/tools/version")" = 1000.0.1 ] &&
		[[ "$("$copy/tools/version" changelog)" == "kfabric (1000.0.1) "* ]]
} >"$tmp/out" 2>&1 && ok=0 || ok=1
result $ok "version: a release changes all places"

rc=0
"$copy/tools/version" 999.0.0 >"$tmp/out" 2>&1 || rc=$?
[ $rc = 1 ] && grep -q '^error: 999.0.0 is older than 1000.0.1' "$tmp/out" && ok=0 || ok=1
result $ok "version: an older one is refused"
