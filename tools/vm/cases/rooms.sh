# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154
#
# tools/check-rooms finds imports that go in a circle, or up.  Sourced by tools/vm/selftest.

# The environment sees the project only.
mkdir -p "$TOP/build"
made=$(mktemp -d "$TOP/build/rooms.XXXXXX")

# A crate with rooms that is in order.
made_up()
{
	rm -rf "$made/rust"
	mkdir -p "$made/rust/kfabric/api" "$made/rust/kfabric/support"
	: >"$made/rust/kfabric/stray.rs"
	printf '%s\n' 'mod api;' 'mod support;' 'pub use crate::api::open::Open;' \
		>"$made/rust/kfabric/kfabric.rs"
	printf '%s\n' 'mod info;' 'pub(crate) mod open;' 'pub(crate) use info::Info;' \
		'const MAX: usize = 1;' >"$made/rust/kfabric/api.rs"
	printf '%s\n' 'mod kunit;' 'use crate::support::{' '    errno::Errno,' '    num, //' '};' \
		'pub struct Open(Errno);' >"$made/rust/kfabric/api/open.rs"
	printf '%s\n' 'use super::{open::Open, MAX};' >"$made/rust/kfabric/api/info.rs"
	mkdir "$made/rust/kfabric/api/open"
	printf '%s\n' 'use super::Open;' 'use crate::Open as Same;' \
		>"$made/rust/kfabric/api/open/kunit.rs"
	printf '%s\n' 'pub(crate) mod errno;' 'pub(crate) mod num;' 'pub(crate) use num::Number;' \
		>"$made/rust/kfabric/support.rs"
	printf '%s\n' '// Not an import: use crate::api::open::Open;' 'use super::num::Number;' \
		>"$made/rust/kfabric/support/errno.rs"
	printf '%s\n' '#[kernel::macros::kunit_tests(made_up)]' 'mod tests {' \
		'    use crate::api::open::Open;' '}' >"$made/rust/kfabric/support/num.rs"
}

# rooms ok|WHAT TITLE [FILE LINE]: with this line added, check-rooms says WHAT is wrong.
rooms()
{
	local want=$1 title=$2 rc=0

	made_up
	[ $# = 2 ] || echo "$4" >>"$made/rust/kfabric/$3"
	"$TOP/tools/env/run" "$TOP/tools/check-rooms" "$made/rust" >"$tmp/out" 2>&1 || rc=$?
	if [ "$want" = ok ] && [ $rc = 0 ] && grep -qx 'ok 1 rooms: kfabric' "$tmp/out"; then
		result 0 "rooms: $title"
	elif [ "$want" != ok ] && [ $rc = 1 ] && grep -qF "$want" "$tmp/out" &&
	     grep -qx 'not ok 1 rooms: kfabric' "$tmp/out"; then
		result 0 "rooms: $title"
	else
		echo "wanted '$want', exit $rc" >>"$tmp/out"
		result 1 "rooms: $title"
	fi
}

rooms ok "imports that go down, and tests that look at everything"
while IFS='|' read -r title want file line; do
	rooms "$want" "made up: $title" "$file" "$line"
done <<'END'
an import that goes up|points up from support/ to api/|support/num.rs|use crate::api::open::Open;
one with an attribute before it|points up from support/ to api/|support/num.rs|#[cfg(y)] use crate::api::open::Open;
one in a function|points up from support/ to api/|support/num.rs|fn f() { use crate::api::open::Open; }
a path that goes up|points up from support/ to api/|support/num.rs|type A = crate::api::open::Open;
one in a macro|points up from support/ to api/|support/num.rs|macro_rules! m { () => { $crate::api::open::Open } }
one by a name that is passed on|points up from support/ to api/|support/num.rs|use crate::Open;
one that is passed on|points up from support/ to api/|support/num.rs|pub use crate::api::open::Open;
a circle of two|in a circle: kfabric/support/errno.rs kfabric/support/num.rs|support/num.rs|use super::errno::Errno;
a circle by a name that is passed on|in a circle: kfabric/api/info.rs kfabric/api/open.rs|api/open.rs|use super::Info;
a parent that uses a child which uses it|in a circle: kfabric/api.rs kfabric/api/info.rs|api.rs|fn f() { info::g() }
a test that is used|names a test, kfabric/api/open/kunit.rs|api/open.rs|use self::kunit::Fake;
a file in no room|stray.rs: in no room|kfabric.rs|mod stray;
END
rm -rf "$made"
said=$("$TOP/tools/env/run" "$TOP/tools/check-rooms" 2>&1) && ok=0 || ok=1
echo "$said" >"$tmp/out"
result "$ok" "rooms: all crates"
