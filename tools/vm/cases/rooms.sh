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

# C files that use each other in one direction.
made_up_c()
{
	rm -rf "$made/c"
	mkdir -p "$made/c/suite"
	printf '%s\n' '#include "suite.h"' '' 'static int count;' '' 'void run(void)' '{' '	check("main_only()");' \
		'	count = limit;' '}' '' 'void main_only(void)' '{' '}' >"$made/c/suite/main.c"
	printf '%s\n' '#include "suite.h"' '' 'unsigned int limit = 2;' '' '/* Not run(). */' 'int check(const char *what)' \
		'{' '	struct at at = {};' '' '	return at.run;' '}' >"$made/c/suite/check.c"
	printf '%s\n' 'void run(void);' 'extern unsigned int limit;' 'int check(const char *what);' \
		>"$made/c/suite/suite.h"
}

# judged ok|WHAT TITLE DIR ROOM: of the files in DIR, check-rooms finds ROOM in order, or says WHAT is wrong there.
judged()
{
	local want=$1 title=$2 rc=0

	"$TOP/tools/env/run" "$TOP/tools/check-rooms" "$3" >"$tmp/out" 2>&1 || rc=$?
	if [ "$want" = ok ] && [ $rc = 0 ] && grep -qx "ok 1 rooms: $4" "$tmp/out"; then
		result 0 "rooms: $title"
	elif [ "$want" != ok ] && [ $rc = 1 ] && grep -qF "$want" "$tmp/out" &&
	     grep -qx "not ok 1 rooms: $4" "$tmp/out"; then
		result 0 "rooms: $title"
	else
		echo "wanted '$want', exit $rc" >>"$tmp/out"
		result 1 "rooms: $title"
	fi
}

# c_files ok|WHAT TITLE [LINE]: judges the C files, with this line added to check.c.
c_files()
{
	made_up_c
	[ $# = 2 ] || printf '%s\n' 'int added(void)' '{' "	$3" '}' >>"$made/c/suite/check.c"
	judged "$1" "$2" "$made/c" c/suite
}

# rooms ok|WHAT TITLE [FILE LINE]: judges the crate, with this line added.
rooms()
{
	made_up
	[ $# = 2 ] || echo "$4" >>"$made/rust/kfabric/$3"
	judged "$1" "$2" "$made/rust" kfabric
}

rooms ok "imports that go down, and tests that look at everything"
rooms ok "everything of a parent, and nothing of its children" api/open.rs \
	$'use super::*;\nenum Kind {\n    Info,\n}\nfn f(info: u32) {}'
rooms ok "a name that hides the one of a parent" api/open.rs \
	'use super::*; use crate::support::num::Number as Info; fn f(info: Info) {}'
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
a circle by everything of a parent|in a circle: kfabric/api/info.rs kfabric/api/open.rs|api/open.rs|use super::*; fn f(info: Info) {}
a circle by a path from a parent|in a circle: kfabric/api/info.rs kfabric/api/open.rs|api/open.rs|use super::*; fn f() { info::g() }
everything of another room, which goes up|points up from support/ to api/|support/num.rs|use crate::*; fn f(o: Open) {}
a parent that uses a child which uses it|in a circle: kfabric/api.rs kfabric/api/info.rs|api.rs|fn f() { info::g() }
a test that is used|names a test, kfabric/api/open/kunit.rs|api/open.rs|use self::kunit::Fake;
a file in no room|stray.rs: in no room|kfabric.rs|mod stray;
END
c_files ok "C files that use each other in one direction"
c_files "in a circle: suite/check.c suite/main.c" "made up: C files that call each other" "run();"
c_files "in a circle: suite/check.c suite/main.c" "made up: a C file that names a function" "return take(&main_only);"
rm -rf "$made"
said=$("$TOP/tools/env/run" "$TOP/tools/check-rooms" 2>&1) && ok=0 || ok=1
echo "$said" >"$tmp/out"
result "$ok" "rooms: all crates"
