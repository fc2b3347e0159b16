/* SPDX-License-Identifier: GPL-2.0 */
/* Sequences of random calls. */
#ifndef KFI_TEST_SEQUENCE_H
#define KFI_TEST_SEQUENCE_H

#include "random.h"

/* At least the number of calls, and of driver calls that fail. */
#define MAX_CALLS	96
#define MAX_OPS		16

/**
 * struct sequence_tally - what sequences have done
 * @faults: The kind of failures that the sequences run with.
 * @count: The number of calls.
 * @failures: The number of allocations or driver calls that failed.
 * @succeeded: The number of calls that succeeded, by call.
 * @next: The number of allocations or driver calls that are spared the next time, by call and driver call.
 * @points: The largest value of each @next: as many allocations or driver calls have failed, each by itself.
 */
struct sequence_tally {
	enum random_faults faults;
	unsigned int count;
	unsigned int failures;
	unsigned int succeeded[MAX_CALLS];
	unsigned int next[MAX_CALLS][MAX_OPS];
	unsigned int points[MAX_CALLS][MAX_OPS];
};

/**
 * struct sequence_failure - the test case and the kind of failures with which a sequence is repeated
 * @t: The case.
 * @faults: The kind of failures.
 */
struct sequence_failure {
	struct kfi_test *t;
	enum random_faults faults;
};

const struct random_call *sequence_call(unsigned int index);
unsigned int sequence_calls(void);
void sequence_make(struct random_sequence *s, unsigned long seed);
unsigned int sequence_run(struct kfi_test *t, const struct random_sequence *s, struct sequence_tally *y);
bool sequence_fails_with(const struct random_sequence *s, void *arg);
void sequence_print(const struct random_sequence *s);
bool sequence_parse(struct kfi_test *t, char *text, struct random_sequence *s);

/* shorten.c */
typedef bool sequence_fails(const struct random_sequence *s, void *arg);
void sequence_shorten(struct random_sequence *s, sequence_fails *fails, void *arg);

#endif /* KFI_TEST_SEQUENCE_H */
