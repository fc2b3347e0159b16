# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154
#
# tools/check-names finds doubled names and private words.  Sourced by tools/vm/selftest.

# The environment sees the project only.
mkdir -p "$TOP/build"
made=$(mktemp -d "$TOP/build/names.XXXXXX")

# names ok|WHAT TITLE [FILE LINE]: with this line added to a crate in order, check-names prints WHAT.
names()
{
	local want=$1 title=$2 rc=0

	rm -rf "$made/rust"
	mkdir -p "$made/rust/kfabric/kunit"
	printf '%s\n' 'mod eq;' 'mod cq;' 'pub trait Ops {' '    type Event;' '}' \
		>"$made/rust/kfabric/kfabric.rs"
	printf '%s\n' 'pub struct Event;' 'struct State;' 'pub enum Ended {}' \
		>"$made/rust/kfabric/eq.rs"
	printf '%s\n' 'pub(crate) struct CqEntry;' 'struct State;' '/* pub struct Event; */' \
		'#[kernel::macros::kunit_tests(made_up)]' 'mod tests {' '    pub struct Event;' '}' \
		>"$made/rust/kfabric/cq.rs"
	printf '%s\n' 'pub struct Event;' >"$made/rust/kfabric/kunit/fake.rs"
	[ $# = 2 ] || echo "$4" >>"$made/rust/kfabric/$3"
	"$TOP/tools/env/run" "$TOP/tools/check-names" "$made" >"$tmp/out" 2>&1 || rc=$?
	if [ "$want" = ok ] && [ $rc = 0 ] && grep -qx 'ok 2 kfabric: 0 private words' "$tmp/out"; then
		result 0 "names: $title"
	elif [ "$want" != ok ] && [ $rc = 1 ] && grep -qxF "# $want" "$tmp/out"; then
		result 0 "names: $title"
	else
		echo "wanted '$want', exit $rc" >>"$tmp/out"
		result 1 "names: $title"
	fi
}

names ok "one name for each type; private types, associated types and unit tests don't count"
while IFS='|' read -r title want file line; do
	names "$want" "made up: $title" "$file" "$line"
done <<'END'
two public types of one name|Event: rust/kfabric/cq.rs:8, rust/kfabric/eq.rs:1|cq.rs|pub(super) struct Event;
a type and a trait|CqEntry: rust/kfabric/cq.rs:1, rust/kfabric/eq.rs:4|eq.rs|pub trait CqEntry {}
a private word|rust/kfabric/eq.rs:4: EqStash: "Stash": magazine|eq.rs|pub(crate) type EqStash = u32;
a private word in the name of a file|rust/kfabric/eq_stash.rs: "stash": magazine|eq_stash.rs|struct Events;
END
rm -rf "$made"
said=$("$TOP/tools/env/run" "$TOP/tools/check-names" 2>&1) && ok=0 || ok=1
echo "$said" >"$tmp/out"
result "$ok" "names: all crates"
