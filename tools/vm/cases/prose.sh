# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154
#
# tools/check-prose finds comments that are hard to read.  Sourced by tools/vm/selftest.

# The environment sees the project only.
mkdir -p "$TOP/build"
made=$(mktemp -d "$TOP/build/prose.XXXXXX")

# prose KIND|ok RESULT TITLE LINES: A file with these lines has a finding of this KIND only, and
# this result fails; or check-prose passes.
prose()
{
	local want=$1 result=$2 title=$3 rc=0

	printf '%s\n' "$4" >"$made/file.rs"
	"$TOP/tools/env/run" "$TOP/tools/check-prose" --list "$made/file.rs" >"$tmp/out" 2>&1 || rc=$?
	if [ "$want" = ok ] && [ $rc = 0 ] && [ "$(grep -c '^ok' "$tmp/out")" = 3 ]; then
		result 0 "prose: $title"
	elif [ "$want" != ok ] && [ $rc = 1 ] && [ "$(grep -c '^not ok' "$tmp/out")" = 1 ] &&
	     grep -q "^not ok $result " "$tmp/out" && grep -q "^# .*:[0-9]*: $want: " "$tmp/out"; then
		result 0 "prose: $title"
	else
		result 1 "prose: $title"
	fi
}

prose ok - "plain sentences pass" '/// Returns the number of regions.
fn count() {
    // SAFETY: `mr` is valid: `self` owns it until `drop`.
}'
prose long 1 "a sentence of 26 words fails" '/// Returns one two three four five six seven eight nine ten eleven twelve
/// thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty one two three four five.
fn count() {}'
prose clause 1 "a clause as a subject fails" '// What is over goes back.'
prose word 1 "a vague word fails" '// There is no such region.'
prose verb 2 "documentation of a function that begins with a noun fails" '/// The number of regions.
pub(crate) const fn count() {}'
prose verb 2 "documentation of a function that begins with a conjunction fails" '/// As the other one.
#[inline]
fn count() {}'
prose appeal 3 "a SAFETY comment that only points elsewhere fails" '// SAFETY: By the requirements of this function.'
prose appeal 3 "a SAFETY comment that points above fails" '// SAFETY: As above.'

rm -rf "$made"
