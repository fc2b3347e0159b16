// SPDX-License-Identifier: GPL-2.0
/*
 * Random calls with hostile arguments, random accesses by peers, and many registrations. All choices are made
 * from the seed. kfi_scale gives the length.
 */
#include <linux/fs.h>
#include <linux/moduleparam.h>

#include "ep/driver.h"
#include "sequence.h"
#include "suites.h"

#define SEQUENCES	20
/* After more calls than these, the suite notes each call that never succeeded. */
#define MANY		20000
/* The largest file of a corpus. */
#define CORPUS_SIZE	SZ_256K

static char *corpus = "";
module_param(corpus, charp, 0444);
MODULE_PARM_DESC(corpus, "file of sequences of calls, with a line \"---\" between two of them");

static bool faults;
module_param(faults, bool, 0444);
MODULE_PARM_DESC(faults, "whether fault injection is switched on (default: no)");

static const char *faults_name(unsigned int variant)
{
	static const char *const names[] = { "plain", "allocations_fail", "driver_fails" };

	return names[variant];
}

/* Shortens and prints a sequence that failed. */
static void report(struct kfi_test *t, struct random_sequence *s, unsigned int step, unsigned long seed,
		   enum random_faults faults)
{
	struct sequence_failure how = { t, faults };

	ktap_note("seed %lu failed in call %u; these calls fail, too:", seed, step);
	sequence_shorten(s, sequence_fails_with, &how);
	sequence_print(s);
}

static void note_tally(struct kfi_test *t, const struct sequence_tally *y)
{
	unsigned int i, j, points = 0, never = 0;

	for (i = 0; i < sequence_calls(); i++) {
		for (j = 0; j < MAX_OPS; j++)
			points += y->points[i][j];
		never += !y->succeeded[i];
		if (!y->succeeded[i] && y->count > MANY)
			ktap_note("kfi_%s() never succeeded", sequence_call(i)->name);
	}
	if (y->faults == NO_FAULTS)
		ktap_note("%u calls, of %u kinds", y->count, sequence_calls() - never);
	else
		ktap_note("%u calls, %u failures injected, at %u points", y->count, y->failures, points);
	EXPECT(t, y->faults == NO_FAULTS || points, "nothing was made to fail");
}

static void run_all(struct kfi_test *t, struct random_sequence *s, struct sequence_tally *y)
{
	unsigned int i, step;

	for (i = 0; i < scaled(SEQUENCES) && !t->failures; i++) {
		/* If the kernel crashes, the last of these lines has the seed. */
		pr_info("kfi_selftest: calls with %s, seed %lu\n", faults_name(y->faults), kfi_seed + i);
		sequence_make(s, kfi_seed + i);
		step = sequence_run(t, s, y);
		if (t->failures)
			report(t, s, step, kfi_seed + i, y->faults);
	}
}

static void calls_case(struct kfi_test *t)
{
	struct random_sequence *s = kmalloc_obj(*s);
	struct sequence_tally *y = kzalloc_obj(*y);
	struct ep_pair *p = NULL;
	struct ib_device *dev = NULL;

	if (!EXPECT(t, s && y, "no memory"))
		goto out;
	y->faults = t->variant;
	if (y->faults == ALLOCATIONS_FAIL && !faults) {
		ktap_skip(t, "the kernel has no failslab or fail_page_alloc in debugfs");
		goto out;
	}
	if (y->faults == DRIVER_FAILS && !has_feature(F_DEVICE)) {
		ktap_skip(t, "there is no driver");
		goto out;
	}
	if (y->faults == DRIVER_FAILS) {
		p = ep_listening(t, NULL);
		dev = p ? driver_wrap(t, &p->side[0]) : NULL;
		if (!dev)
			goto out;
	}
	run_all(t, s, y);
	note_tally(t, y);
out:
	if (dev)
		kfi_inject_stop(dev);
	if (p)
		ep_pair_close(t, p);
	kfree(y);
	kfree(s);
}

static char *read_corpus(struct kfi_test *t)
{
	char *text = kvzalloc(CORPUS_SIZE, GFP_KERNEL);
	struct file *f = filp_open(corpus, O_RDONLY, 0);
	loff_t pos = 0;
	ssize_t len;

	len = IS_ERR(f) ? PTR_ERR(f) : text ? kernel_read(f, text, CORPUS_SIZE - 1, &pos) : -ENOMEM;
	if (!IS_ERR(f))
		filp_close(f, NULL);
	if (EXPECT(t, len > 0 && len < CORPUS_SIZE - 1, "reading %s is %zd", corpus, len))
		return text;
	kvfree(text);
	return NULL;
}

/* Runs the sequences of the corpus. */
static void corpus_case(struct kfi_test *t)
{
	struct sequence_tally *y = kzalloc_obj(*y);
	struct random_sequence *s = kmalloc_obj(*s);
	unsigned int n = 0, step, before;
	char *text, *rest, *one;

	if (!*corpus) {
		ktap_skip(t, "no corpus");
		goto out;
	}
	text = read_corpus(t);
	for (rest = text; y && s && rest && *rest; n++) {
		one = rest;
		rest = strstr(one, "---\n");
		if (rest) {
			*rest = '\0';
			rest += 4;
		}
		before = t->failures;
		step = sequence_parse(t, one, s) ? sequence_run(t, s, y) : s->count;
		/* The first line is a comment. */
		if (t->failures != before)
			ktap_note("call %u of %s", step, one);
	}
	kvfree(text);
	if (y)
		ktap_note("%u calls in %u sequences", y->count, n);
out:
	kfree(s);
	kfree(y);
}

static const struct kfi_case cases[] = {
	{ "corpus", corpus_case },
	{ "calls", calls_case, GENMASK(RANDOM_FAULTS - 1, 0) },
	{ "accesses", random_accesses_case },
	{ "rounds", random_rounds_case },
};

const struct kfi_suite suite_random = {
	.name = "random",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = faults_name,
	.bare = true,
	.connects = true,
};
