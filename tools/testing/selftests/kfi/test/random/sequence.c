// SPDX-License-Identifier: GPL-2.0
/* Sequences: made from a seed, run, written and read as text. */
#include <linux/ctype.h>

#include "failing.h"
#include "ep/driver.h"
#include "sequence.h"

static const struct random_call *const tables[] = {
	random_region_calls, random_object_calls, random_queue_calls, random_transfer_calls,
};

/* Driver calls that fail. Calls that end something are not here, because their failure leaks by design. */
static const enum kfi_inject_op driver_ops[] = {
	KFI_INJECT_POST_REG, KFI_INJECT_POST_INV, KFI_INJECT_POST_NEXT, KFI_INJECT_POST_TO_PEER, KFI_INJECT_POST_RECV,
	KFI_INJECT_POST_SRQ_RECV, KFI_INJECT_ALLOC_MR, KFI_INJECT_MAP_MR_SG, KFI_INJECT_CREATE_QP,
	KFI_INJECT_CREATE_CQ, KFI_INJECT_CREATE_SRQ, KFI_INJECT_ALLOC_PD,
};

static_assert(ARRAY_SIZE(driver_ops) <= MAX_OPS);

/* Returns the call with this index, or NULL behind the last one. */
const struct random_call *sequence_call(unsigned int index)
{
	const struct random_call *call;
	int i;

	for (i = 0; i < ARRAY_SIZE(tables); i++)
		for (call = tables[i]; call->name; call++)
			if (!index--)
				return call;
	return NULL;
}

unsigned int sequence_calls(void)
{
	unsigned int n = 0;

	while (sequence_call(n))
		n++;
	return n;
}

/* Makes a sequence from a seed. All calls are equally probable. */
void sequence_make(struct random_sequence *s, unsigned long seed)
{
	unsigned int i, j, calls = sequence_calls();
	struct rnd_state rnd;

	prandom_seed_state(&rnd, seed);
	s->mode = prandom_u32_state(&rnd) % 3;
	s->count = SEQUENCE_STEPS;
	for (i = 0; i < s->count; i++) {
		s->step[i].call = prandom_u32_state(&rnd) % calls;
		s->step[i].has_result = false;
		for (j = 0; j < STEP_NUMBERS; j++)
			s->step[i].number[j] = prandom_u32_state(&rnd);
	}
}

static bool documented(const struct random_call *call, ssize_t ret)
{
	const int *errnos;

	for (errnos = call->errnos->number; *errnos; errnos++)
		if (ret == -*errnos)
			return true;
	return false;
}

/* Arms the next failure of a call: the one after the last failure that the call has met. */
static void fail_next(struct sequence_tally *y, unsigned int call, struct driver_step *step)
{
	unsigned int op = y->count % ARRAY_SIZE(driver_ops);

#ifdef CONFIG_FAULT_INJECTION
	if (y->faults == ALLOCATIONS_FAIL)
		arm(y->next[call][0] + 1);
#endif
	if (y->faults == DRIVER_FAILS)
		*step = driver_fails(driver_ops[op], y->next[call][op]);
}

static bool failed(struct sequence_tally *y, unsigned int call, const struct driver_step *step)
{
	unsigned int op = 0;
	bool met = false;

	if (y->faults == NO_FAULTS)
		return false;
#ifdef CONFIG_FAULT_INJECTION
	if (y->faults == ALLOCATIONS_FAIL)
		met = disarm();
#endif
	if (y->faults == DRIVER_FAILS) {
		op = y->count % ARRAY_SIZE(driver_ops);
		met = driver_failed(step);
	}
	y->failures += met;
	if (met)
		y->next[call][op]++;
	else
		y->next[call][op] = 0;
	if (y->next[call][op] > y->points[call][op])
		y->points[call][op] = y->next[call][op];
	return met;
}

static bool expected(const struct random_step *step, ssize_t ret)
{
	return !step->has_result || ret == step->result;
}

/* Makes the call of a step. Repeats it while it returns -KFI_EAGAIN, if the step must have another result. */
static ssize_t run_call(struct random_world *w, const struct random_step *step)
{
	unsigned long end = jiffies + msecs_to_jiffies(EP_WAIT_MS);
	ssize_t ret;

	for (;;) {
		w->out = NULL;
		w->want = 0;
		ret = sequence_call(step->call)->run(w, step->number);
		if (ret != -KFI_EAGAIN || expected(step, ret) || time_after(jiffies, end))
			return ret;
		usleep_range(1000, 2000);
	}
}

static void run_step(struct random_world *w, const struct random_step *step, struct sequence_tally *y)
{
	const struct random_call *call = sequence_call(step->call);
	struct driver_step driver;
	ssize_t ret;
	bool met;

	fail_next(y, step->call, &driver);
	ret = run_call(w, step);
	met = failed(y, step->call, &driver);
	y->count++;
	if (ret >= 0)
		y->succeeded[step->call]++;
	if (w->want && !(met && ret == -KFI_ENOMEM))
		EXPECT(w->t, ret == w->want, "kfi_%s() is %zd, expected %d", call->name, ret, w->want);
	else
		EXPECT(w->t, ret >= 0 || documented(call, ret), "kfi_%s() is %zd, which is not documented",
		       call->name, ret);
	EXPECT(w->t, expected(step, ret), "kfi_%s() is %zd, expected %d", call->name, ret, step->result);
	/* An output pointer is NULL after a failure, and an object otherwise. */
	if (w->out && ret)
		EXPECT(w->t, !*w->out, "kfi_%s() is %zd, and *out is not NULL", call->name, ret);
	if (w->out && ret)
		*w->out = NULL;
}

/* Returns the number of the step that failed, or the number of steps. */
unsigned int sequence_run(struct kfi_test *t, const struct random_sequence *s, struct sequence_tally *y)
{
	unsigned int i, before = t->failures;
	struct random_world *w;

	if (WARN_ON(sequence_calls() > MAX_CALLS))
		return 0;
	w = random_open(t, s->mode);
	if (!w)
		return 0;
	for (i = 0; i < s->count && t->failures == before; i++) {
		run_step(w, &s->step[i], y);
		if (i % 16 == 0)
			random_guards(w);
		cond_resched();
	}
	if (t->failures != before)
		i--;
	random_close(w);
	return i;
}

/* Checks whether a sequence fails. @arg is a struct sequence_failure. Prints nothing. */
bool sequence_fails_with(const struct random_sequence *s, void *arg)
{
	struct sequence_tally *y = kzalloc_obj(*y);
	struct sequence_failure *how = arg;
	struct kfi_test quiet = *how->t;

	if (!y)
		return false;
	y->faults = how->faults;
	quiet.failures = MAX_DIAGNOSES;
	sequence_run(&quiet, s, y);
	kfree(y);
	return quiet.failures > MAX_DIAGNOSES;
}

/* Writes a sequence as lines of a file of the corpus. */
void sequence_print(const struct random_sequence *s)
{
	unsigned int i;

	ktap_note("mode %u", s->mode);
	for (i = 0; i < s->count; i++) {
		const u16 *a = s->step[i].number;

		ktap_note("%s %u %u %u %u %u %u", sequence_call(s->step[i].call)->name, a[0], a[1], a[2], a[3], a[4],
			  a[5]);
	}
}

/* Returns the errno of this name, negative, or 0 if the manual page of the call does not list it. */
static int named(const struct random_call *call, const char *name)
{
	const char *at = call->errnos->names;
	size_t len = strlen(name);
	const int *errnos;

	for (errnos = call->errnos->number; *errnos; errnos++) {
		if (!strncmp(at, name, len) && (at[len] == ',' || !at[len]))
			return -*errnos;
		at += strcspn(at, ",");
		at += strspn(at, ", ");
	}
	return 0;
}

static bool parse_result(char *text, struct random_step *step)
{
	const struct random_call *call = sequence_call(step->call);
	char *word = strsep(&text, " ");

	/* Of two results, the first one is that over "loop". */
	if (text && strcmp(kfi_provider_name, "loop"))
		word = text;
	else if (text && strchr(text, ' '))
		return false;
	step->has_result = true;
	step->result = *word == '-' ? named(call, word + 1) : 0;
	return *word == '-' ? step->result : !kstrtoint(word, 10, &step->result);
}

static bool parse_line(char *line, struct random_sequence *s)
{
	struct random_step *step = &s->step[s->count];
	const struct random_call *call;
	u16 *a = step->number;
	unsigned int i;
	char name[24];
	int end = 0;

	if (*line == '#' || !*line || sscanf(line, "mode %u", &s->mode) == 1)
		return true;
	if (s->count == SEQUENCE_STEPS ||
	    sscanf(line, "%23s %hu %hu %hu %hu %hu %hu%n", name, a, a + 1, a + 2, a + 3, a + 4, a + 5, &end) != 7)
		return false;
	for (i = 0; (call = sequence_call(i)); i++) {
		if (!strcmp(call->name, name)) {
			step->call = i;
			step->has_result = false;
			s->count++;
			return !line[end] || (!strncmp(line + end, " = ", 3) && parse_result(line + end + 3, step));
		}
	}
	return false;
}

/**
 * sequence_parse() - Read a sequence.
 * @t: The case, which fails if there is something else.
 * @text: Lines "mode N", "CALL N N N N N N [= RESULT [RESULT]]", empty, or with # in front. The text is changed.
 * @s: The sequence.
 *
 * Return: Whether it was one.
 */
bool sequence_parse(struct kfi_test *t, char *text, struct random_sequence *s)
{
	char *line;

	*s = (struct random_sequence) {};
	while ((line = strsep(&text, "\n")))
		if (!EXPECT(t, parse_line(strim(line), s), "no step: %s", line))
			return false;
	return true;
}
