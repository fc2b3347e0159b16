/* SPDX-License-Identifier: GPL-2.0 */
/* One call in a thread of its own, so that the test can see whether it has returned. */
#ifndef KFI_TEST_JOB_H
#define KFI_TEST_JOB_H

#include <linux/completion.h>

#include "ktap.h"

/**
 * struct job - a call that is under way
 * @run: The function that is called.
 * @data: Its argument.
 * @ret: Its return value.
 * @done: Completed when it has.
 * @started: Whether there is a thread.
 */
struct job {
	int (*run)(void *data);
	void *data;
	int ret;
	struct completion done;
	bool started;
};

bool job_start(struct kfi_test *t, struct job *j, int (*run)(void *data), void *data);
int job_end(struct kfi_test *t, struct job *j);
bool job_either_done(struct job *a, struct job *b);

static inline bool job_is_done(struct job *j)
{
	return completion_done(&j->done);
}

#endif /* KFI_TEST_JOB_H */
