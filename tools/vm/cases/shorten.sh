# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154
#
# make stress removes calls from a failing sequence until each remaining call is needed.  This builds the suite's code
# as a program, with made-up rules that decide which sequences fail.  Sourced by tools/vm/selftest.

# The environment sees the project only.
mkdir -p "$TOP/build"
made=$(mktemp -d "$TOP/build/shorten.XXXXXX")

cp "$TOP/tools/testing/selftests/kfi/test/random/shorten.c" "$made/"
cat >"$made/sequence.h" <<'END'
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define kmalloc_obj(of)	malloc(sizeof(of))
#define kfree		free
#define min(a, b)	((a) < (b) ? (a) : (b))
#define max(a, b)	((a) > (b) ? (a) : (b))

struct random_sequence {
	unsigned int mode;
	unsigned int count;
	unsigned int step[500];
};

typedef bool sequence_fails(const struct random_sequence *s, void *arg);
void sequence_shorten(struct random_sequence *s, sequence_fails *fails, void *arg);
END
cat >"$made/main.c" <<'END'
#include "sequence.h"

/* Returns where a step is, or the number of steps. */
static unsigned int at(const struct random_sequence *s, unsigned int step)
{
	unsigned int i = 0;

	while (i < s->count && s->step[i] != step)
		i++;
	return i;
}

static bool has(const struct random_sequence *s, unsigned int step)
{
	return at(s, step) < s->count;
}

static bool always(const struct random_sequence *s, void *arg)
{
	return true;
}

static bool never(const struct random_sequence *s, void *arg)
{
	return false;
}

static bool one(const struct random_sequence *s, void *arg)
{
	return has(s, 333);
}

static bool in_order(const struct random_sequence *s, void *arg)
{
	return has(s, 20) && at(s, 20) < at(s, 21) && at(s, 21) < at(s, 499) && has(s, 499);
}

static bool scattered(const struct random_sequence *s, void *arg)
{
	return has(s, 0) && has(s, 63) && has(s, 250) && has(s, 251) && has(s, 498);
}

/* Step 8 prevents the failure unless step 0 is there: 0 is needless when 8 has gone. */
static bool undone(const struct random_sequence *s, void *arg)
{
	return has(s, 9) && (has(s, 0) || !has(s, 8));
}

static const struct {
	const char *name;
	sequence_fails *fails;
	unsigned int count;
} rules[] = {
	{ "always", always, 500 }, { "never", never, 4 }, { "one", one, 500 }, { "in_order", in_order, 500 },
	{ "scattered", scattered, 499 }, { "undone", undone, 10 },
};

int main(void)
{
	static struct random_sequence s;
	unsigned int i, j;

	for (i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		s.count = rules[i].count;
		for (j = 0; j < s.count; j++)
			s.step[j] = j;
		sequence_shorten(&s, rules[i].fails, NULL);
		printf("%s:", rules[i].name);
		for (j = 0; j < s.count; j++)
			printf(" %u", s.step[j]);
		printf("\n");
	}
	return 0;
}
END
cat >"$tmp/want" <<'END'
always:
never: 0 1 2 3
one: 333
in_order: 20 21 499
scattered: 0 63 250 251 498
undone: 9
END
"$TOP/tools/env/run" sh -c 'gcc -Wall -Werror -fsanitize=address,undefined -o "$1/shorten" "$1/shorten.c" "$1/main.c" && "$1/shorten"' \
	sh "$made" >"$tmp/got" 2>&1 || :
diff "$tmp/want" "$tmp/got" >"$tmp/out" && ok=0 || ok=1
result $ok "shorten: no step can be removed from a shortened sequence"
rm -rf "$made"
