// SPDX-License-Identifier: GPL-2.0
/* Shortens sequences. tools/vm/cases/shorten.sh also builds this file as a program, with a made-up sequence.h. */
#include "sequence.h"

/* Tries a sequence without the @n steps at @at. If it still fails, removes them and returns true. */
static bool remove_steps(struct random_sequence *s, struct random_sequence *try, unsigned int at, unsigned int n,
			 sequence_fails *fails, void *arg)
{
	*try = *s;
	memmove(try->step + at, try->step + at + n, (s->count - at - n) * sizeof(*try->step));
	try->count -= n;
	if (!fails(try, arg))
		return false;
	*s = *try;
	return true;
}

/**
 * sequence_shorten() - Remove steps from a sequence that fails.
 * @s: The failing sequence. If memory is short, it stays unchanged. Otherwise it still fails, and each step is needed:
 *	it passes if any one step is removed.
 * @fails: Returns whether a sequence fails.
 * @arg: The second argument of @fails.
 *
 * Removes smaller and smaller chunks of steps, each only if the remaining steps still fail. Single steps are tried until
 * none can be removed: a removed step can make an earlier one needless.
 */
void sequence_shorten(struct random_sequence *s, sequence_fails *fails, void *arg)
{
	struct random_sequence *try = kmalloc_obj(*try);
	unsigned int chunk = max(s->count / 2, 1U), at, before;

	while (try && chunk) {
		before = s->count;
		for (at = 0; at < s->count;) {
			unsigned int n = min(chunk, s->count - at);

			if (!remove_steps(s, try, at, n, fails, arg))
				at += n;
		}
		if (chunk > 1 || s->count == before)
			chunk /= 2;
	}
	kfree(try);
}
