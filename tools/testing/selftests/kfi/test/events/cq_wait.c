// SPDX-License-Identifier: GPL-2.0
/* Waiting for a completion queue in which nothing completes: what else ends it. */
#include <linux/sched/signal.h>

#include "cq.h"
#include "waiter.h"

#define LONG_MS		60000

/**
 * struct cq_waiter - a thread that waits once
 * @w: The thread.
 * @cq: For what.
 * @threshold: For how many.
 * @timeout: How long.
 */
struct cq_waiter {
	struct waiter w;
	struct kfid_cq *cq;
	size_t threshold;
	int timeout;
};

struct kfid_cq *cq_open(struct kfi_test *t, enum kfi_wait_obj wait_obj,
			enum kfi_cq_wait_cond wait_cond)
{
	struct kfi_cq_attr attr = {
		.size = 4,
		.format = KFI_CQ_FORMAT_TAGGED,
		.wait_obj = wait_obj,
		.wait_cond = wait_cond,
	};
	struct kfid_cq *cq;

	if (!EXPECT_EQ(t, kfi_cq_open(t->env->domain, &attr, &cq, NULL, NULL), 0))
		return NULL;
	return cq;
}

void cq_close(struct kfi_test *t, struct kfid_cq *cq)
{
	EXPECT_EQ(t, kfi_close(&cq->fid), 0);
}

static ssize_t wait_call(struct waiter *w)
{
	struct cq_waiter *c = container_of(w, struct cq_waiter, w);
	struct kfi_cq_tagged_entry entry[2];

	return kfi_cq_sread(c->cq, entry, 2, &c->threshold, c->timeout);
}

static void wait_rescue(struct waiter *w)
{
	kfi_cq_signal(container_of(w, struct cq_waiter, w)->cq);
}

static bool wait_start(struct kfi_test *t, struct cq_waiter *c, struct kfid_cq *cq,
		       size_t threshold, int timeout)
{
	c->w.call = wait_call;
	c->w.rescue = wait_rescue;
	c->cq = cq;
	c->threshold = threshold;
	c->timeout = timeout;
	return waiter_start(t, &c->w);
}

void cq_called_back(struct kfi_test *t, struct kfid_cq *cq)
{
	struct cq_waiter w;

	if (wait_start(t, &w, cq, 1, -1))
		waiter_end(t, &w.w, -KFI_EAGAIN);
}

void cq_timeout_case(struct kfi_test *t)
{
	static const enum kfi_cq_wait_cond conds[] = { KFI_CQ_COND_NONE, KFI_CQ_COND_THRESHOLD };
	static const size_t thresholds[] = { 0, 1, 3, SIZE_MAX };
	struct kfi_cq_tagged_entry entry[2];
	kfi_addr_t from[2];
	struct kfid_cq *cq;
	u64 start;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(conds); i++) {
		cq = cq_open(t, i ? KFI_WAIT_QUEUE : KFI_WAIT_UNSPEC, conds[i]);
		if (!cq)
			continue;
		memset(entry, 0x5a, sizeof(entry));
		memset(from, 0x5a, sizeof(from));
		start = get_jiffies_64();
		EXPECT_EQ(t, kfi_cq_sread(cq, entry, 2, NULL, 0), -KFI_EAGAIN);
		EXPECT_EQ(t, kfi_cq_sread(cq, entry, 2, NULL, 100), -KFI_EAGAIN);
		expect_waited(t, start, 100);
		start = get_jiffies_64();
		EXPECT_EQ(t, kfi_cq_sreadfrom(cq, entry, 2, from, NULL, 50), -KFI_EAGAIN);
		expect_waited(t, start, 50);
		for (j = 0; j < ARRAY_SIZE(thresholds); j++) {
			start = get_jiffies_64();
			EXPECT_EQ(t, kfi_cq_sread(cq, entry, 2, &thresholds[j], 20), -KFI_EAGAIN);
			expect_waited(t, start, 20);
		}
		EXPECT_EQ(t, kfi_cq_sread(cq, NULL, 2, NULL, -1), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_cq_sread(cq, entry, 0, NULL, -1), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_cq_sreadfrom(cq, NULL, 2, from, NULL, -1), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_cq_sreadfrom(cq, entry, 0, from, NULL, -1), -KFI_EINVAL);
		EXPECT(t, !memchr_inv(entry, 0x5a, sizeof(entry)), "an entry was written");
		EXPECT(t, !memchr_inv(from, 0x5a, sizeof(from)), "an address was written");
		cq_close(t, cq);
	}

	/* Without thresholds nobody looks at what would be one. */
	cq = cq_open(t, KFI_WAIT_UNSPEC, KFI_CQ_COND_NONE);
	if (!cq)
		return;
	EXPECT_EQ(t, kfi_cq_sread(cq, entry, 2, (void *)0x5a5a, 1), -KFI_EAGAIN);
	cq_close(t, cq);
}

/* A signal brings all back who wait, whatever for. */
void cq_signal_case(struct kfi_test *t)
{
	static const struct {
		size_t threshold;
		int timeout;
	} calls[] = { { 1, -1 }, { 4, -1 }, { 2, LONG_MS } };
	struct kfid_cq *cq = cq_open(t, KFI_WAIT_UNSPEC, KFI_CQ_COND_THRESHOLD);
	struct cq_waiter w[ARRAY_SIZE(calls)];
	int i, round, started;

	for (round = 0; cq && round < 3; round++) {
		for (started = 0; started < ARRAY_SIZE(calls); started++)
			if (!wait_start(t, &w[started], cq, calls[started].threshold,
					calls[started].timeout))
				break;
		for (i = 0; i < started; i++)
			EXPECT(t, waiter_sleeps_on(&w[i].w), "%d: nothing has come", i);
		EXPECT_EQ(t, kfi_cq_signal(cq), 0);
		for (i = 0; i < started; i++)
			waiter_end(t, &w[i].w, -KFI_EAGAIN);
	}
	if (cq)
		cq_close(t, cq);
}

/* A signal that finds nobody is there for the next who would wait, and only for that one. */
void cq_kept_signal_case(struct kfi_test *t)
{
	struct kfid_cq *cq = cq_open(t, KFI_WAIT_UNSPEC, KFI_CQ_COND_NONE);
	struct kfi_cq_tagged_entry entry;
	struct cq_waiter w;
	u64 start;

	if (!cq)
		return;
	EXPECT_EQ(t, kfi_cq_signal(cq), 0);
	EXPECT_EQ(t, kfi_cq_signal(cq), 0);
	/* These don't wait. */
	EXPECT_EQ(t, kfi_cq_read(cq, &entry, 1), -KFI_EAGAIN);
	EXPECT_EQ(t, kfi_cq_sread(cq, &entry, 1, NULL, 0), -KFI_EAGAIN);
	cq_called_back(t, cq);
	start = get_jiffies_64();
	EXPECT_EQ(t, kfi_cq_sread(cq, &entry, 1, NULL, 50), -KFI_EAGAIN);
	expect_waited(t, start, 50);
	/* One that was there for somebody isn't kept. */
	if (wait_start(t, &w, cq, 1, -1)) {
		EXPECT(t, waiter_sleeps_on(&w.w), "there was no signal");
		EXPECT_EQ(t, kfi_cq_signal(cq), 0);
		waiter_end(t, &w.w, -KFI_EAGAIN);
	}
	start = get_jiffies_64();
	EXPECT_EQ(t, kfi_cq_sread(cq, &entry, 1, NULL, 50), -KFI_EAGAIN);
	expect_waited(t, start, 50);
	cq_close(t, cq);
}

void cq_interrupt_case(struct kfi_test *t)
{
	static const int timeouts[] = { -1, LONG_MS };
	struct kfid_cq *cq = cq_open(t, KFI_WAIT_UNSPEC, KFI_CQ_COND_THRESHOLD);
	struct cq_waiter w;
	int i;

	for (i = 0; cq && i < ARRAY_SIZE(timeouts); i++) {
		if (!wait_start(t, &w, cq, 2, timeouts[i]))
			continue;
		/* Woken without a reason, it waits on. */
		wake_up_process(w.w.task);
		EXPECT(t, waiter_sleeps_on(&w.w), "any wake-up ends it");
		send_sig(SIGUSR1, w.w.task, 1);
		waiter_end(t, &w.w, -KFI_EINTR);
	}
	if (cq)
		cq_close(t, cq);
}

/* A queue that somebody waits for can't be closed. */
void cq_busy_case(struct kfi_test *t)
{
	struct kfid_cq *cq = cq_open(t, KFI_WAIT_UNSPEC, KFI_CQ_COND_NONE);
	struct cq_waiter w[2];
	bool second;

	if (!cq)
		return;
	if (wait_start(t, &w[0], cq, 1, -1)) {
		if (!EXPECT_EQ(t, kfi_close(&cq->fid), -KFI_EBUSY))
			return;
		second = wait_start(t, &w[1], cq, 1, LONG_MS);
		send_sig(SIGUSR1, w[0].w.task, 1);
		waiter_end(t, &w[0].w, -KFI_EINTR);
		if (second) {
			if (!EXPECT_EQ(t, kfi_close(&cq->fid), -KFI_EBUSY))
				return;
			EXPECT(t, waiter_sleeps_on(&w[1].w), "refusing to close ends a wait");
			EXPECT_EQ(t, kfi_cq_signal(cq), 0);
			waiter_end(t, &w[1].w, -KFI_EAGAIN);
		}
	}
	cq_close(t, cq);
}
