// SPDX-License-Identifier: GPL-2.0
/* A thread that registers asynchronously, many regions at a time, and reads what became of them. */
#include <linux/kthread.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "holder.h"

#define BATCH		64
#define LEN		(4 * PAGE_SIZE)
#define TIMEOUT		30000

static struct {
	struct kfid_domain *domain;
	struct kfid_eq *eq;
	struct task_struct *thread;
	struct kfid_mr *mr[BATCH];
	void *mem[BATCH];
} async;

/* The region that an entry names, which must be one that has not had its event. */
static void seen(struct kfid *fid, void *context)
{
	unsigned long i = (unsigned long)context - 1;

	if (i >= BATCH || !async.mr[i] || fid != &async.mr[i]->fid)
		UNEXPECTED("an event about nothing");
	else if (!fid->context)
		UNEXPECTED("a second event about a region");
	else
		fid->context = NULL;
}

static bool read_event(void)
{
	struct kfi_eq_err_entry err = { };
	struct kfi_eq_entry entry;
	ssize_t ret;
	u32 event;

	ret = kfi_eq_sread(async.eq, &event, &entry, sizeof(entry), TIMEOUT, 0);
	if (ret == sizeof(entry) && event == KFI_MR_COMPLETE) {
		seen(entry.fid, entry.context);
		return true;
	}
	if (ret != -KFI_EAVAIL || kfi_eq_readerr(async.eq, &err, 0) != sizeof(err)) {
		UNEXPECTED("kfi_eq_sread() gives %zd", ret);
		return false;
	}
	if (err.err != KFI_ENODEV)
		UNEXPECTED("a registration fails with %d", err.err);
	holder_failed++;
	seen(err.fid, err.context);
	return true;
}

/* Every region that was begun has one event, whatever happens to the device. */
static bool one_batch(void)
{
	unsigned int i, n;
	int ret = 0;

	for (n = 0; n < BATCH && !ret; n++) {
		ret = kfi_mr_reg(async.domain, async.mem[n], LEN, ACCESS, 0, 0, 0, &async.mr[n],
				 (void *)(unsigned long)(n + 1));
		if (ret)
			break;
	}
	if (ret && ret != -KFI_ENODEV)
		UNEXPECTED("kfi_mr_reg() gives %d", ret);
	for (i = 0; i < n; i++)
		if (!read_event())
			break;
	for (i = 0; i < n; i++) {
		int closed = kfi_close(&async.mr[i]->fid);

		if (closed)
			UNEXPECTED("kfi_close() gives %d", closed);
		async.mr[i] = NULL;
	}
	holder_rounds += n;
	return !ret;
}

static int churn(void *arg)
{
	while (!kthread_should_stop() && one_batch())
		cond_resched();
	while (!kthread_should_stop())
		schedule_timeout_interruptible(HZ / 10);
	return 0;
}

int async_start(struct holder *h)
{
	struct kfi_eq_attr attr = {
		.size = BATCH,
		.wait_obj = KFI_WAIT_UNSPEC,
	};
	int i, ret;

	if (!holder_async)
		return 0;
	for (i = 0; i < BATCH; i++) {
		async.mem[i] = vmalloc(LEN);
		if (!async.mem[i])
			return -ENOMEM;
	}
	ret = kfi_domain(h->fabric, h->info, &async.domain, NULL);
	if (ret)
		return ret;
	ret = kfi_eq_open(h->fabric, &attr, &async.eq, NULL, NULL);
	if (ret)
		return ret;
	ret = kfi_domain_bind(async.domain, &async.eq->fid, KFI_REG_MR);
	if (ret)
		return ret;
	async.thread = kthread_run(churn, NULL, "kfi_holder/async");
	if (IS_ERR(async.thread)) {
		ret = PTR_ERR(async.thread);
		async.thread = NULL;
	}
	return ret;
}

int async_stop(void)
{
	int i, ret = 0;

	if (async.thread)
		kthread_stop(async.thread);
	async.thread = NULL;
	if (async.domain)
		ret = kfi_close(&async.domain->fid);
	async.domain = NULL;
	if (async.eq)
		ret = ret ?: kfi_close(&async.eq->fid);
	async.eq = NULL;
	for (i = 0; i < BATCH; i++) {
		vfree(async.mem[i]);
		async.mem[i] = NULL;
	}
	return ret;
}
