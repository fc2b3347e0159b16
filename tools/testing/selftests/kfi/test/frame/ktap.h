/* SPDX-License-Identifier: GPL-2.0 */
/*
 * KTAP from a kernel module: cases, expectations and how they are reported.
 *
 * Every line goes to the kernel's log behind the prefix "kfi-ktap: ", from where lib.sh takes it.
 * A suite is a table of cases; a case can be repeated over variants (the registration calls, for
 * instance), and each repetition is one result. So the plan is known before the first result.
 */
#ifndef KFI_TEST_KTAP_H
#define KFI_TEST_KTAP_H

#include <linux/types.h>

/* A case that fails at each of a thousand sizes need not say so a thousand times. */
#define MAX_DIAGNOSES	8

struct kfi_env;
struct kfi_test;

/**
 * struct kfi_case - a test case
 * @name: Its name, of letters, digits and underscores.
 * @run: Runs one variant.
 * @variants: Bit n set: there is a variant n. 0: the case runs once, as variant 0.
 * @data: The case's own.
 */
struct kfi_case {
	const char *name;
	void (*run)(struct kfi_test *t);
	u32 variants;
	const void *data;
};

/**
 * struct kfi_suite - a table of cases
 * @name: The value of the module's parameter "suite" for it.
 * @cases: The cases.
 * @count: How many there are.
 * @variant_name: Name of a variant.
 * @bare: The suite's cases open what they need themselves. Otherwise they share one environment,
 *	and closing it is one more result, named "close".
 * @connects: Its cases use the connection manager.
 * @served: Another module serves its cases over the same device. Objects of that module come and go during a case.
 * @end: Called after the last case, before the environment is closed; or NULL. Failures there are of "close".
 */
struct kfi_suite {
	const char *name;
	const struct kfi_case *cases;
	unsigned int count;
	const char *(*variant_name)(unsigned int variant);
	bool bare;
	bool connects;
	bool served;
	void (*end)(struct kfi_test *t);
};

/**
 * struct kfi_test - a case that is running
 * @env: The resources that the suite's cases share; NULL in a bare suite, and once it is closed.
 * @suite: The suite.
 * @c: The case.
 * @variant: The variant.
 * @failures: How many expectations were not met.
 * @skip: Why the case was skipped, or NULL.
 * @leaves_open: Set by a case that leaves objects open, or memory mapped, on purpose.
 */
struct kfi_test {
	struct kfi_env *env;
	const struct kfi_suite *suite;
	const struct kfi_case *c;
	unsigned int variant;
	unsigned int failures;
	const char *skip;
	bool leaves_open;
};

/* Run a suite and report it: version, plan, results, end. */
void ktap_run(const struct kfi_suite *suite);

/* A line of diagnosis: begins with "# ". */
__printf(1, 2) void ktap_note(const char *fmt, ...);

__printf(4, 5) void ktap_fail(struct kfi_test *t, const char *file, int line, const char *fmt, ...);

/* Give up the case, without a verdict on what is under test. */
static inline void ktap_skip(struct kfi_test *t, const char *why)
{
	t->skip = why;
}

/*
 * A wait that began at @since, in jiffies, has lasted @ms milliseconds, and not for ever. Told by
 * the clock that waits are measured with: any other one is ahead of it while a busy machine's ticks
 * are late.
 */
void expect_waited(struct kfi_test *t, u64 since, unsigned int ms);

#define EXPECT_EQ(t, got, want)							\
({										\
	long long __got = (long long)(got), __want = (long long)(want);	\
										\
	if (__got != __want)							\
		ktap_fail(t, __FILE__, __LINE__, "%s is %lld, expected %lld", #got,	\
			  __got, __want);						\
	__got == __want;							\
})

/* Further arguments: a format and its values, to say what the expectation was about. */
#define EXPECT(t, cond, ...)							\
({										\
	bool __ok = !!(cond);							\
										\
	if (!__ok)								\
		ktap_fail(t, __FILE__, __LINE__, __VA_ARGS__);			\
	__ok;									\
})

#endif /* KFI_TEST_KTAP_H */
