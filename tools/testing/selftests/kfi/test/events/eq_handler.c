// SPDX-License-Identifier: GPL-2.0
/* Event queues: when handlers are called, in which context, and when no more. */
#include <linux/delay.h>
#include <linux/sched.h>
#include <linux/workqueue.h>

#include "env.h"
#include "eq.h"
#include "job.h"

/**
 * struct handled - what a handler has seen
 * @calls: How often it was called.
 * @bad: Calls with other arguments, in another context, or after the end.
 * @event: Completed by each call, at its end.
 * @eq: Its queue.
 * @over: The queue was closed.
 * @read: Read until there is nothing.
 * @msecs: Sleep for so long.
 * @inside: How many calls are running.
 * @entered: Completed by each call, at its beginning.
 * @held: Wait for @go.
 * @go: Lets one call go on.
 * @close: The result of closing the queue.
 */
struct handled {
	atomic_t calls;
	atomic_t bad;
	struct completion event;
	struct kfid_eq *eq;
	bool over;
	bool read;
	unsigned int msecs;
	atomic_t inside;
	struct completion entered;
	bool held;
	struct completion go;
	int close;
};

static void handled_init(struct handled *h)
{
	memset(h, 0, sizeof(*h));
	init_completion(&h->event);
	init_completion(&h->entered);
	init_completion(&h->go);
}

/* The call has the queue's arguments, and a context that may sleep. */
static void check_call(struct handled *h, struct kfid_eq *eq)
{
	atomic_inc(&h->calls);
	if (READ_ONCE(h->over) || eq != READ_ONCE(h->eq) || eq->fid.context != h)
		atomic_inc(&h->bad);
	if (!in_task() || irqs_disabled() || !(current->flags & PF_WQ_WORKER))
		atomic_inc(&h->bad);
	might_sleep();
}

static void handler(struct kfid_eq *eq, void *context)
{
	struct handled *h = context;

	check_call(h, eq);
	if (atomic_inc_return(&h->inside) > 1)
		atomic_inc(&h->bad);
	complete(&h->entered);
	if (READ_ONCE(h->held))
		wait_for_completion_timeout(&h->go, 240 * HZ);
	if (h->msecs)
		msleep(h->msecs);
	while (h->read && eq_get(eq) >= 0)
		;
	if (READ_ONCE(h->over))
		atomic_inc(&h->bad);
	atomic_dec(&h->inside);
	complete(&h->event);
}

/* Was the handler called once more, and if so, is it over by now? */
static bool called(struct handled *h)
{
	return wait_for_completion_timeout(&h->event, 60 * HZ);
}

static bool open_handled(struct kfi_test *t, struct handled *h, kfi_event_handler call)
{
	struct kfid_eq *eq;

	handled_init(h);
	eq = eq_open(t, 64, KFI_WAIT_UNSPEC, call, h);
	WRITE_ONCE(h->eq, eq);
	return eq;
}

/* Called for the first event, and not again before someone has found the queue empty. */
void eq_handler_case(struct kfi_test *t)
{
	struct kfi_eq_entry entry;
	struct handled h;
	u32 event;

	if (!open_handled(t, &h, handler))
		return;
	msleep(20);
	EXPECT_EQ(t, atomic_read(&h.calls), 0);
	EXPECT_EQ(t, eq_put(h.eq, 1), 0);
	EXPECT(t, called(&h), "not called for the first event");
	EXPECT_EQ(t, eq_put(h.eq, 2), 0);
	EXPECT_EQ(t, eq_get(h.eq), 1);
	EXPECT_EQ(t, eq_put(h.eq, 3), 0);
	EXPECT_EQ(t, kfi_eq_read(h.eq, &event, &entry, 1, 0), -KFI_ETOOSMALL);
	EXPECT_EQ(t, eq_get(h.eq), 2);
	EXPECT_EQ(t, eq_get(h.eq), 3);
	/* Empty now, but nobody was told so. */
	EXPECT_EQ(t, eq_put(h.eq, 4), 0);
	EXPECT_EQ(t, eq_get(h.eq), 4);
	msleep(50);
	EXPECT_EQ(t, atomic_read(&h.calls), 1);

	/* A reader that finds the queue empty arms it. */
	EXPECT_EQ(t, eq_get(h.eq), -KFI_EAGAIN);
	EXPECT_EQ(t, eq_put(h.eq, 5), 0);
	EXPECT(t, called(&h), "not called after a read");
	EXPECT_EQ(t, eq_get(h.eq), 5);
	EXPECT_EQ(t, kfi_eq_read(h.eq, &event, &entry, sizeof(entry), KFI_PEEK), -KFI_EAGAIN);
	EXPECT_EQ(t, eq_put(h.eq, 6), 0);
	EXPECT(t, called(&h), "not called after a peek");
	EXPECT_EQ(t, eq_get(h.eq), 6);
	EXPECT_EQ(t, eq_wait(h.eq, 1), -KFI_EAGAIN);
	EXPECT_EQ(t, eq_put(h.eq, 7), 0);
	EXPECT(t, called(&h), "not called after a wait");

	/* A handler that reads all of it is called for each. */
	while (eq_get(h.eq) >= 0)
		;
	h.read = true;
	EXPECT_EQ(t, eq_put(h.eq, 8), 0);
	EXPECT(t, called(&h), "not called");
	EXPECT_EQ(t, eq_put(h.eq, 9), 0);
	EXPECT(t, called(&h), "not called again");
	EXPECT_EQ(t, eq_get(h.eq), -KFI_EAGAIN);
	EXPECT_EQ(t, atomic_read(&h.calls), 6);
	EXPECT_EQ(t, atomic_read(&h.bad), 0);
	EXPECT_EQ(t, kfi_close(&h.eq->fid), 0);
}

/* Has a call begun that wasn't known of yet? */
static bool entered(struct handled *h)
{
	return wait_for_completion_timeout(&h->entered, 60 * HZ);
}

/*
 * While a handler sleeps, another event comes for which it is to be called again: not before it has
 * returned, and then for certain. Another queue's handler doesn't wait for it.
 */
void eq_handler_sleeps_case(struct kfi_test *t)
{
	struct handled h, other;

	if (!open_handled(t, &h, handler))
		return;
	WRITE_ONCE(h.held, true);
	EXPECT_EQ(t, eq_put(h.eq, 1), 0);
	EXPECT(t, entered(&h), "not called");
	EXPECT_EQ(t, eq_get(h.eq), 1);
	EXPECT_EQ(t, eq_get(h.eq), -KFI_EAGAIN);
	EXPECT_EQ(t, eq_put(h.eq, 2), 0);
	if (open_handled(t, &other, handler)) {
		EXPECT_EQ(t, eq_put(other.eq, 1), 0);
		EXPECT(t, entered(&other), "waited for another queue's handler");
		EXPECT_EQ(t, kfi_close(&other.eq->fid), 0);
		EXPECT_EQ(t, atomic_read(&other.bad), 0);
	}
	/* Time enough for a second call that doesn't wait for the first. */
	EXPECT(t, !wait_for_completion_timeout(&h.entered, HZ), "two calls at a time");
	EXPECT_EQ(t, atomic_read(&h.calls), 1);
	complete(&h.go);
	EXPECT(t, entered(&h), "not called for what came meanwhile");
	EXPECT_EQ(t, atomic_read(&h.calls), 2);
	EXPECT_EQ(t, eq_get(h.eq), 2);
	complete(&h.go);
	EXPECT_EQ(t, kfi_close(&h.eq->fid), 0);
	EXPECT_EQ(t, atomic_read(&h.inside), 0);
	EXPECT_EQ(t, atomic_read(&h.bad), 0);
}

static void closing_handler(struct kfid_eq *eq, void *context)
{
	struct handled *h = context;

	check_call(h, eq);
	h->close = kfi_close(&eq->fid);
	complete(&h->event);
}

/* A handler can't close its queue, which goes on working. */
void eq_handler_closes_case(struct kfi_test *t)
{
	struct handled h;

	if (!open_handled(t, &h, closing_handler))
		return;
	EXPECT_EQ(t, eq_put(h.eq, 1), 0);
	if (EXPECT(t, called(&h), "not called"))
		EXPECT_EQ(t, h.close, -KFI_EOPBADSTATE);
	EXPECT_EQ(t, eq_get(h.eq), 1);
	EXPECT_EQ(t, eq_get(h.eq), -KFI_EAGAIN);
	EXPECT_EQ(t, eq_put(h.eq, 2), 0);
	EXPECT(t, called(&h), "not called");
	EXPECT_EQ(t, atomic_read(&h.bad), 0);
	EXPECT_EQ(t, kfi_close(&h.eq->fid), 0);
}

/* When kfi_close() has returned, the handler doesn't run, and never will. */
void eq_close_case(struct kfi_test *t)
{
	unsigned int i, n = scaled(2000), calls = 0;
	struct handled h;

	for (i = 0; i < n; i++) {
		if (!open_handled(t, &h, handler))
			return;
		if (i % 50 == 0)
			h.msecs = 10;
		EXPECT_EQ(t, eq_put(h.eq, i), 0);
		/* Into the middle of a call, now and then for certain. */
		if (i % 50 == 0)
			EXPECT(t, entered(&h), "not called");
		else if (i % 3)
			udelay(i % 64);
		if (i % 7 == 0)
			usleep_range(100, 200);
		EXPECT_EQ(t, kfi_close(&h.eq->fid), 0);
		WRITE_ONCE(h.over, true);
		calls += atomic_read(&h.calls);
		EXPECT_EQ(t, atomic_read(&h.calls), try_wait_for_completion(&h.event));
		if (!EXPECT_EQ(t, atomic_read(&h.bad), 0))
			break;
	}
	ktap_note("%u of %u handlers were called", calls, n);
	EXPECT(t, calls, "none was called, so nothing was tested");
}

static int close_eq(void *data)
{
	struct handled *h = data;

	return kfi_close(&h->eq->fid);
}

/* While a queue is being closed, which waits for its handler, nobody else closes it. */
void eq_close_twice_case(struct kfi_test *t)
{
	struct job first, again;
	struct handled h;
	int ret;

	if (!open_handled(t, &h, handler))
		return;
	WRITE_ONCE(h.held, true);
	EXPECT_EQ(t, eq_put(h.eq, 1), 0);
	EXPECT(t, entered(&h), "not called");
	job_start(t, &first, close_eq, &h);
	job_start(t, &again, close_eq, &h);
	EXPECT(t, job_either_done(&first, &again), "each waits for the handler");
	complete(&h.go);
	/* One has closed it, the other was refused. */
	ret = job_end(t, &first);
	EXPECT_EQ(t, job_end(t, &again), ret ? 0 : -KFI_EINVAL);
	if (ret)
		EXPECT_EQ(t, ret, -KFI_EINVAL);
	EXPECT_EQ(t, atomic_read(&h.bad), 0);
}
