// SPDX-License-Identifier: GPL-2.0
/* Event queues: opening one, putting in and taking out, and waiting. */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>

#include "env.h"
#include "eq.h"

struct kfid_eq *eq_open(struct kfi_test *t, size_t size, enum kfi_wait_obj wait_obj,
			kfi_event_handler handler, void *context)
{
	struct kfi_eq_attr attr = { .size = size, .flags = KFI_WRITE, .wait_obj = wait_obj };
	struct kfid_eq *eq;
	int rc = kfi_eq_open(t->env->fabric, &attr, &eq, handler, context);

	return EXPECT_EQ(t, rc, 0) ? eq : NULL;
}

void eq_refused(struct kfi_test *t, struct kfid_fabric *fabric, struct kfi_eq_attr *attr,
		int want)
{
	struct kfid_eq *eq = (void *)0x5a5a;

	if (EXPECT_EQ(t, kfi_eq_open(fabric, attr, &eq, NULL, NULL), want))
		EXPECT(t, !eq, "*eq is not NULL");
	else if (!IS_ERR_OR_NULL(eq) && eq != (void *)0x5a5a)
		kfi_close(&eq->fid);
}

void eq_no_handler(struct kfid_eq *eq, void *context)
{
}

int eq_put(struct kfid_eq *eq, u64 data)
{
	struct kfi_eq_entry entry = { .data = data };
	ssize_t rc = kfi_eq_write(eq, KFI_NOTIFY, &entry, sizeof(entry), 0);

	return rc == sizeof(entry) ? 0 : rc;
}

static ssize_t entry_data(ssize_t rc, u32 event, const struct kfi_eq_entry *entry)
{
	if (rc < 0)
		return rc;
	return rc == sizeof(*entry) && event == KFI_NOTIFY ? entry->data : -KFI_EOTHER;
}

ssize_t eq_get(struct kfid_eq *eq)
{
	struct kfi_eq_entry entry;
	u32 event;
	ssize_t rc = kfi_eq_read(eq, &event, &entry, sizeof(entry), 0);

	return entry_data(rc, event, &entry);
}

ssize_t eq_wait(struct kfid_eq *eq, int timeout)
{
	struct kfi_eq_entry entry;
	u32 event;
	ssize_t rc = kfi_eq_sread(eq, &event, &entry, sizeof(entry), timeout, 0);

	return entry_data(rc, event, &entry);
}

void eq_timeout_case(struct kfi_test *t)
{
	struct kfid_eq *eq = eq_open(t, 2, KFI_WAIT_UNSPEC, NULL, NULL);
	struct kfid_eq *none = eq_open(t, 2, KFI_WAIT_NONE, NULL, NULL);
	struct kfi_eq_entry entry = {};
	u64 start = get_jiffies_64();
	u32 event;

	if (eq) {
		EXPECT_EQ(t, eq_wait(eq, 0), -KFI_EAGAIN);
		expect_waited(t, start, 0);
		start = get_jiffies_64();
		EXPECT_EQ(t, eq_wait(eq, 100), -KFI_EAGAIN);
		expect_waited(t, start, 100);

		/* Nobody waits where there is something. */
		EXPECT_EQ(t, eq_put(eq, 5), 0);
		EXPECT_EQ(t, kfi_eq_sread(eq, &event, &entry, sizeof(entry), -1, KFI_PEEK),
			  sizeof(entry));
		EXPECT_EQ(t, kfi_eq_sread(eq, &event, &entry, 8, -1, 0), -KFI_ETOOSMALL);
		EXPECT_EQ(t, eq_wait(eq, -1), 5);

		EXPECT_EQ(t, kfi_eq_sread(NULL, &event, &entry, sizeof(entry), -1, 0),
			  -KFI_EINVAL);
		EXPECT_EQ(t, kfi_eq_sread(eq, NULL, &entry, sizeof(entry), -1, 0), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_eq_sread(eq, &event, NULL, sizeof(entry), -1, 0), -KFI_EINVAL);
		EXPECT_EQ(t, kfi_eq_sread(eq, &event, &entry, sizeof(entry), -1, KFI_MORE),
			  -KFI_EBADFLAGS);
		EXPECT_EQ(t, kfi_close(&eq->fid), 0);
	}
	if (none) {
		EXPECT_EQ(t, eq_put(none, 5), 0);
		EXPECT_EQ(t, eq_wait(none, 0), -KFI_ENOSYS);
		EXPECT_EQ(t, eq_wait(none, -1), -KFI_ENOSYS);
		EXPECT_EQ(t, eq_get(none), 5);
		EXPECT_EQ(t, kfi_close(&none->fid), 0);
	}
}

/* A thread that reads until it gets an errno or an event with data 0. */
struct reader {
	struct kfid_eq *eq;
	struct task_struct *task;
	struct completion started;
	struct completion done;
	int timeout;
	unsigned int events;
	u64 sum;
	bool backwards;
	ssize_t last;
};

static int reader_thread(void *data)
{
	struct reader *r = data;
	ssize_t before = 0;

	allow_signal(SIGINT);
	complete(&r->started);
	while ((r->last = eq_wait(r->eq, r->timeout)) > 0) {
		r->backwards |= r->last < before;
		before = r->last;
		r->sum += r->last;
		r->events++;
	}
	complete(&r->done);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

static bool reader_start(struct kfi_test *t, struct reader *r, struct kfid_eq *eq, int timeout)
{
	memset(r, 0, sizeof(*r));
	r->eq = eq;
	r->timeout = timeout;
	init_completion(&r->started);
	init_completion(&r->done);
	r->task = kthread_run(reader_thread, r, "kfi_eq_reader");
	if (!EXPECT(t, !IS_ERR(r->task), "no thread"))
		return false;
	wait_for_completion(&r->started);
	return true;
}

static void reader_join(struct reader *r)
{
	wait_for_completion(&r->done);
	kthread_stop(r->task);
}

void eq_wakeup_case(struct kfi_test *t)
{
	struct kfid_eq *eq = eq_open(t, 4, KFI_WAIT_QUEUE, NULL, NULL);
	static const int timeouts[] = { -1, INT_MAX };
	struct reader r;
	int i, n;

	if (!eq)
		return;
	for (i = 0; i < ARRAY_SIZE(timeouts); i++) {
		if (!reader_start(t, &r, eq, timeouts[i]))
			break;
		for (n = 1; n <= 10; n++) {
			/* It sleeps, and is woken by this. */
			while (!(READ_ONCE(r.task->__state) & TASK_INTERRUPTIBLE))
				msleep(1);
			EXPECT_EQ(t, eq_put(eq, n), 0);
		}
		while (eq_put(eq, 0))
			msleep(1);
		reader_join(&r);
		EXPECT_EQ(t, r.events, 10);
		EXPECT_EQ(t, r.sum, 55);
		EXPECT(t, !r.backwards, "events were read out of order");
		EXPECT_EQ(t, r.last, 0);
	}
	EXPECT_EQ(t, kfi_close(&eq->fid), 0);
}

void eq_signal_case(struct kfi_test *t)
{
	struct kfid_eq *eq = eq_open(t, 4, KFI_WAIT_UNSPEC, NULL, NULL);
	static const int timeouts[] = { -1, INT_MAX };
	struct reader r;
	int i;

	if (!eq)
		return;
	for (i = 0; i < ARRAY_SIZE(timeouts); i++) {
		if (!reader_start(t, &r, eq, timeouts[i]))
			break;
		while (!(READ_ONCE(r.task->__state) & TASK_INTERRUPTIBLE))
			msleep(1);
		/* It waits, so the queue can't be closed. */
		EXPECT_EQ(t, kfi_close(&eq->fid), -KFI_EBUSY);
		send_sig(SIGINT, r.task, 1);
		reader_join(&r);
		EXPECT_EQ(t, r.last, -KFI_EINTR);
	}
	EXPECT_EQ(t, kfi_close(&eq->fid), 0);
}

#define READERS	4

/* Each event wakes someone, and is read once, in order. */
void eq_readers_case(struct kfi_test *t)
{
	struct kfid_eq *eq = eq_open(t, 8, KFI_WAIT_UNSPEC, NULL, NULL);
	struct reader *readers = kcalloc(READERS, sizeof(*readers), GFP_KERNEL);
	unsigned int n = scaled(5000), events = 0;
	u64 i, sum = 0;
	int started;

	if (!eq || !EXPECT(t, readers, "no memory"))
		goto out;
	for (started = 0; started < READERS; started++)
		if (!reader_start(t, &readers[started], eq, -1))
			break;
	for (i = 1; started && i <= n; i++)
		while (eq_put(eq, i))
			usleep_range(50, 100);
	for (i = 0; i < started; i++)
		while (eq_put(eq, 0))
			usleep_range(50, 100);
	for (i = 0; i < started; i++) {
		reader_join(&readers[i]);
		EXPECT(t, !readers[i].backwards, "reader %llu read out of order", i);
		EXPECT_EQ(t, readers[i].last, 0);
		events += readers[i].events;
		sum += readers[i].sum;
	}
	EXPECT_EQ(t, events, n);
	EXPECT_EQ(t, sum, (u64)n * (n + 1) / 2);
	EXPECT_EQ(t, eq_get(eq), -KFI_EAGAIN);
out:
	kfree(readers);
	if (eq)
		EXPECT_EQ(t, kfi_close(&eq->fid), 0);
}
