# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2016,SC2034,SC2086,SC2154
#
# tools/check-docs finds what a document names and what isn't there.  Sourced by
# tools/vm/selftest.

# document ok|WHAT TITLE: of the document on stdin, check-docs says WHAT is wrong.
document()
{
	local want=$1 title=$2 rc=0

	"$TOP/tools/env/run" "$TOP/tools/check-docs" - >"$tmp/out" 2>&1 || rc=$?
	if [ "$want" = ok ] && [ $rc = 0 ] && grep -qx 'ok 1 docs: Documentation/stdin.md' "$tmp/out"; then
		result 0 "docs: $title"
	elif [ "$want" != ok ] && [ $rc = 1 ] && grep -qF "$want" "$tmp/out" &&
	     grep -qx 'not ok 1 docs: Documentation/stdin.md' "$tmp/out"; then
		result 0 "docs: $title"
	else
		echo "wanted '$want', exit $rc" >>"$tmp/out"
		result 1 "docs: $title"
	fi
}

document ok "what exists is found" <<'END'
`kfi_mr_regattr()` and `struct kfi_mr_attr` are in [a header](../include/kfi_domain.h), see
[how](kfi_mr.3.md#errors), kfi_mr(3), include/kfi_eq.h and rust/kfabric/. `KFI_MR_RAW`,
`-KFI_EINVAL`, `weak_fence=1`, `ValidMr::deregister`, `kfi_verbs.ko`, `KFI_SCALE`, mr/bind.rs,
`make doc-check`, test/*.c, `ib_dereg_mr()`.
END

# One mistake of each kind is enough.
while IFS='|' read -r title want line; do
	document "$want" "made up: $title" <<<"$line"
done <<'END'
function|kfi_mr_regfoo() does not exist|Call `kfi_mr_regfoo()`.
function without its backticks|kfi_mr_regfoo() does not exist|Call kfi_mr_regfoo().
function of the kernel|ib_made_up() does not exist|Call `ib_made_up(mr)`.
constant|KFI_MADE_UP does not exist|Set KFI_MADE_UP.
error|KFI_EMADEUP|It is `-KFI_EMADEUP`.
structure|struct kfi_made_up does not exist|Fill in a `struct kfi_made_up`.
field|`made_up_field` is nowhere|Set `attr->made_up_field`.
parameter|`weaker_fence` is nowhere|Load it with `weaker_fence=1`.
type of Rust|`MadeUpMr` is nowhere|It is a `MadeUpMr`.
method|ValidMr::made_up does not exist|Call `ValidMr::made_up`.
method of another type|ValidMr::getinfo does not exist|Call `ValidMr::getinfo`.
module|kfi_made_up.ko does not exist|Load kfi_made_up.ko.
file|made_up.rs does not exist|See made_up.rs.
file in a directory|file mr/made_up.rs does not exist|See mr/made_up.rs.
path|path rust/made_up/ does not exist|See rust/made_up/ for it.
tool|path tools/vm/made-up does not exist|Run tools/vm/made-up here.
link|link to made_up.md|See [this](made_up.md).
anchor|link to #made-up|See [this](kfi_mr.3.md#made-up).
manual page|manual page kfi_made(3) does not exist|See kfi_made(3).
target|no target made-up of make|Run `make made-up`.
errno of a call|KFI_ENOTRECOVERABLE is not in the table of kfi_close()|If `kfi_close()` fails with `-KFI_ENOTRECOVERABLE`, give up.
errno of a variant|KFI_EACCES is not in the table of kfi_sendv()|`kfi_sendv()` returns `-KFI_EACCES`.
END
document "kfi_mr_regfoo() does not exist" "made up: in an example" <<'END'
```c
	ret = kfi_mr_regfoo(domain, NULL);
```
END
document "KFI_EPERM is not in the table of kfi_mr_enable()" "made up: errno in a guide's table" <<'END'
| error | of | do |
|---|---|---|
| `-KFI_EPERM` | `kfi_mr_enable()` | give up |
END
said=$("$TOP/tools/env/run" "$TOP/tools/check-docs" 2>&1) && ok=0 || ok=1
echo "$said" >"$tmp/out"
result $ok "docs: all documents"
