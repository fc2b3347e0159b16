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
# Blocks: fences can't be lines of the table above.
block()
{
	document "$2" "a block: $1" <<<"$3"
}
block "that says nothing" 'a fenced block without a language' $'```\nmake test\n```'
block "of commands for nowhere" 'commands that say neither where they run nor why' $'```sh\nmake test\n```'
block "of commands for somewhere else" 'commands that say neither where' $'```sh there\nmake test\n```'
block "of commands that pass for text" 'commands that say neither' $'```text\nmodprobe kfi_verbs\n```'
block "that runs and says why it does not" 'says why it does not' \
	$'<!-- not run: no time -->\n```sh vm\nmake test\n```'
block "of commands that don't run, with the reason" ok $'<!-- not run: no time -->\n```sh\nmake test\n```'
block "of commands that run" ok $'<!-- before: everything -->\n```sh vm\ntrue\n```'
block "of code" ok $'```c\nint i;\n```'
block "that is a file" ok $'<!-- file: build/hello/hello_c.c -->\n```c\nint i;\n```'
block "that is a file elsewhere" 'a file is code, and in a directory below build' \
	$'<!-- file: tools/hello.c -->\n```c\nint i;\n```'
block "that is a file of commands" 'a file is code, and in a directory below build' \
	$'<!-- file: build/hello/hello.sh -->\n```sh vm\ntrue\n```'
document 'no module says "a reason that is made up"' "made up: a reason" <<'END'
| reason | action |
|---|---|
| `no active port` | none |
| `a reason that is made up` | none |
END

# The judge's verdict on a guest whose every script ended with STATUS and printed TEXT.
judged()
{
	local status=$1 text=$2 want=$3 title=$4 dir=$TOP/build/log/blocks rc=0 i

	rm -rf "$dir"
	mkdir -p "$dir"
	"$TOP/tools/env/run" "$TOP/tools/doc_blocks.py" write "$dir" /kdir
	for i in "$dir"/vm/*; do
		echo "documents: begin ${i##*/}"
		echo "$text"
		[ "$status" = none ] || echo "documents: end ${i##*/} $status"
	done >"$dir/console"
	"$TOP/tools/env/run" "$TOP/tools/doc_blocks.py" judge "$dir" "$dir/console" >"$tmp/out" 2>&1 || rc=$?
	[ $rc = 1 ] && grep -q "$want" "$tmp/out" && i=0 || i=1
	result $i "docs: $title"
}
judged none '' 'kfi_nvme.7.md:[0-9]*: did not run to its end' "a command that did not return has failed"
judged 3 '' 'kfi_nvme.7.md:[0-9]*: ended with 3' "a command that failed has failed"
judged 0 "kfi_refused: err=-22 why='address is NULL' index=1 value=0x0" \
	'kfi_mr.3.md:[0-9]*: did not print: .*err=-14' "other output than the document shows is told"

said=$("$TOP/tools/env/run" "$TOP/tools/check-docs" 2>&1) && ok=0 || ok=1
echo "$said" >"$tmp/out"
result $ok "docs: all documents"
