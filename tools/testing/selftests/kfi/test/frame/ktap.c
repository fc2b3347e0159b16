// SPDX-License-Identifier: GPL-2.0
/* KTAP from a kernel module: see ktap.h. */
#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "env.h"
#include "ktap.h"
#include "model.h"

static void line(const char *fmt, ...) __printf(1, 2);

static void line(const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	va_start(args, fmt);
	vaf.va = &args;
	pr_info("kfi-ktap: %pV\n", &vaf);
	va_end(args);
}

void ktap_note(const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	va_start(args, fmt);
	vaf.va = &args;
	line("# %pV", &vaf);
	va_end(args);
}

void ktap_fail(struct kfi_test *t, const char *file, int lineno, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	if (t->failures++ >= MAX_DIAGNOSES)
		return;
	va_start(args, fmt);
	vaf.va = &args;
	line("# %s: %s:%d: %pV", t->c->name, kbasename(file), lineno, &vaf);
	va_end(args);
}

void expect_waited(struct kfi_test *t, u64 since, unsigned int ms)
{
	u64 waited = get_jiffies_64() - since, least = msecs_to_jiffies(ms);

	EXPECT(t, waited >= least && waited < least + 60 * HZ, "%u ms took %llu jiffies of %u ms",
	       ms, waited, jiffies_to_msecs(1));
}

static u32 variants(const struct kfi_case *c)
{
	return c->variants ?: BIT(0);
}

static int plan(const struct kfi_suite *suite)
{
	int i, n = 0;

	for (i = 0; i < suite->count; i++)
		n += hweight32(variants(&suite->cases[i]));
	return n;
}

static void report(const struct kfi_test *t, int number)
{
	const char *dot = t->c->variants ? "." : "";
	const char *variant = t->c->variants ? t->suite->variant_name(t->variant) : "";

	if (t->failures > MAX_DIAGNOSES)
		ktap_note("%s: and %u more", t->c->name, t->failures - MAX_DIAGNOSES);
	if (t->failures)
		line("not ok %d %s.%s%s%s", number, t->suite->name, t->c->name, dot, variant);
	else if (t->skip)
		line("ok %d %s.%s%s%s # SKIP %s", number, t->suite->name, t->c->name, dot, variant,
		     t->skip);
	else
		line("ok %d %s.%s%s%s", number, t->suite->name, t->c->name, dot, variant);
}

/* Over the model, what it counts must be as before the case. */
static void run_case(struct kfi_test *t, int env_error, const struct model_counts *before)
{
	if (env_error)
		EXPECT_EQ(t, env_error, 0);
	else
		t->c->run(t);
	if (!env_error)
		model_expect(t, before);
}

/* Also tells whether anything that was opened in the domain is still open. */
static void close_case(struct kfi_test *t)
{
	EXPECT_EQ(t, env_close(t->env), 0);
	t->env = NULL;
}

static void note_limits(const struct kfi_env *env)
{
	ktap_note("device %s: %zu pages%s, %zu segments%s", env->info->domain_attr->name,
		  env->max_pages, env->at_limit ? "" : " of more",
		  env->max_segs, env->segs_at_limit ? "" : " of more");
}

void ktap_run(const struct kfi_suite *suite)
{
	static const struct kfi_case close = { .name = "close", .run = close_case };
	struct model_counts closed, before;
	struct kfi_test t = { .suite = suite };
	int i, env_error, number = 0;
	bool left_open = false;

	line("KTAP version 1");
	line("1..%d", plan(suite) + !suite->bare);
	model_before(&t, &closed);
	if (!suite->bare)
		t.env = env_open();
	env_error = PTR_ERR_OR_ZERO(t.env);
	if (!suite->bare && !env_error)
		note_limits(t.env);

	for (i = 0; i < suite->count; i++) {
		unsigned long todo = variants(&suite->cases[i]);

		t.c = &suite->cases[i];
		for_each_set_bit(t.variant, &todo, 32) {
			t.failures = 0;
			t.skip = NULL;
			t.leaves_open = false;
			model_before(&t, &before);
			run_case(&t, env_error, &before);
			report(&t, ++number);
			left_open |= t.leaves_open;
			cond_resched();
		}
	}
	if (!suite->bare) {
		t.c = &close;
		t.failures = 0;
		t.skip = NULL;
		t.leaves_open = left_open;
		if (suite->end && !env_error)
			suite->end(&t);
		run_case(&t, env_error, &closed);
		report(&t, ++number);
	}
}
