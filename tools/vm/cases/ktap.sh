# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2016,SC2034,SC2086,SC2154
#
# tools/vm/ktap counts what was reported, and misses nothing.  Sourced by tools/vm/selftest.

# counted "PASSED FAILED SKIPPED" WHAT [ktap options]: what ktap counts on stdin.
counted()
{
	local want=$1 what=$2
	shift 2

	guest >"$tmp/log"
	"$here/ktap" "$@" "$tmp/log" >"$tmp/out" 2>&1 || :
	if [ "$(tail -n1 "$tmp/out")" = "$want" ]; then
		result 0 "ktap: $what"
	else
		echo "wanted $want" >>"$tmp/out"
		result 1 "ktap: $what"
	fi
}

counted "2 0 0" "passes are counted" <<'END'
[    3.0] | TAP version 13
[    3.0] | 1..2
[    3.0] | ok 1 one
[    3.0] | ok 2 two
END
counted "1 1 1" "failures and skips are told apart" <<'END'
| KTAP version 1
| 1..3
| ok 1 one
| not ok 2 two
| ok 3 three # SKIP no such thing here
END
counted "2 1 0" "a result that is missing fails" <<'END'
| 1..3
| ok 1 one
| ok 2 two
END
counted "0 3 0" "all results missing fail" <<'END'
| 1..3
END
counted "1 1 0" "a missing plan fails" <<'END'
| KTAP version 1
| ok 1 one
END
counted "2 1 0" "more results than planned fail" <<'END'
| 1..1
| ok 1 one
| ok 2 two
END
counted "1 1 0" "bailing out fails" <<'END'
| 1..1
| ok 1 one
| Bail out! no device
END
counted "3 1 0" "of nested results only the innermost count" <<'END'
| TAP version 13
| 1..2
| # selftests: kfi: first
| # TAP version 13
| # 1..2
| # ok 1 a
| # ok 2 b
| ok 1 selftests: kfi: first
| # selftests: kfi: second
| #     KTAP version 1
| #     1..2
| #     ok 1 c
| #     not ok 2 d
| # diagnostics may say anything: ok 7 or not
| not ok 2 selftests: kfi: second # exit=1
END
counted "1 1 0" "an outer failure counts if nothing within failed" <<'END'
| TAP version 13
| 1..1
| # 1..1
| # ok 1 a
| not ok 1 selftests: kfi: first # TIMEOUT 45 seconds
END
counted "3 1 0" "results missing from a nested plan fail" <<'END'
| TAP version 13
| 1..2
| # 1..3
| # ok 1 a
| # ok 2 b
| not ok 1 selftests: kfi: first # exit=139
| ok 2 selftests: kfi: second
END
counted "0 0 1" "a skipped plan is a skip" <<'END'
| KTAP version 1
| 1..0 # SKIP no rdma device
END
kunit="KTAP version 1
1..1
    KTAP version 1
    # Subtest: kfabric_shape
    1..2
    # one.speed: normal
    ok 1 one
    not ok 2 two
# kfabric_shape: pass:1 fail:1 skip:0 total:2
not ok 1 kfabric_shape"
counted "1 1 0" "KUnit's results are counted" --kunit <<<"$kunit"
counted "2 0 0" "a suite that ran twice counts once" --kunit \
	<<<"${kunit//not ok/ok}
${kunit//not ok/ok}"
counted "3 1 0" "kernel and script may speak at the same time" <<END
| 1..2
$(sed 2q <<<"$kunit")
| ok 1 one
$(sed -n '3,$p' <<<"$kunit")
| ok 2 two
END
counted "1 1 0" "no suite at all fails where there must be one" --kunit <<'END'
| 1..1
| ok 1 one
END

none="KTAP version 1
1..2
| 1..1
| ok 1 one"
counted "1 2 0" "a kernel that plans suites and runs none has failed" <<<"$none"
counted "1 0 0" "unless it was told to run none" --no-kunit <<<"$none"
