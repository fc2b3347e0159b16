// SPDX-License-Identifier: GPL-2.0
/* Threads that register memory, have the peer use it, close and free it. */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "holder.h"

#define MAX_THREADS	8
#define MAX_LEN		(20 * PAGE_SIZE)

static struct task_struct *threads[MAX_THREADS];

/* The peer may fail while the device goes; what it reports as done must have been done. */
static void use(struct holder *h, struct kfid_mr *mr, u8 *mem)
{
	u8 there[64], here = get_random_u8();
	int ret;

	memset(there, here, sizeof(there));
	ret = kfi_peer_write(h->peer, mr->iova, mr->key, there, sizeof(there));
	if (!ret && memchr_inv(mem, here, sizeof(there)))
		UNEXPECTED("the peer's bytes are not there");
	if (ret == -EACCES)
		UNEXPECTED("an open region refuses the peer");
	else if (ret)
		holder_peer_errors++;
}

static void one_round(struct holder *h, unsigned int *enodev)
{
	size_t len = 64 + get_random_u32_below(MAX_LEN - 64);
	u8 *mem = get_random_u32_below(2) ? vmalloc(len) : kmalloc(len, GFP_KERNEL);
	struct kfid_mr *mr;
	int ret;

	if (!mem)
		return;
	ret = kfi_mr_reg(h->domain, mem, len, ACCESS, 0, 0, 0, &mr, NULL);
	if (!ret) {
		if (h->peer && get_random_u32_below(4) == 0)
			use(h, mr, mem);
		ret = kfi_close(&mr->fid);
		if (ret)
			UNEXPECTED("kfi_close() gives %d", ret);
		holder_rounds++;
	} else if (ret == -KFI_ENODEV) {
		if (mr)
			UNEXPECTED("*mr is not NULL");
		*enodev += 1;
		holder_enodev++;
		msleep(20);
	} else {
		UNEXPECTED("kfi_mr_reg() gives %d", ret);
		msleep(20);
	}
	/* At once: nobody may have it any more. */
	kvfree(mem);
}

static int churn(void *arg)
{
	unsigned int enodev = 0, rounds;

	while (!kthread_should_stop()) {
		rounds = holder_rounds;
		one_round(arg, &enodev);
		/* A device that is gone doesn't come back to an open domain. */
		if (enodev && holder_threads == 1 && rounds != holder_rounds)
			UNEXPECTED("a registration after -ENODEV");
		cond_resched();
	}
	return 0;
}

int churn_start(struct holder *h)
{
	unsigned int i;
	int ret;

	for (i = 0; i < min(holder_threads, MAX_THREADS); i++) {
		threads[i] = kthread_run(churn, h, "kfi_holder/%u", i);
		if (IS_ERR(threads[i])) {
			ret = PTR_ERR(threads[i]);
			threads[i] = NULL;
			return ret;
		}
	}
	return 0;
}

void churn_stop(void)
{
	int i;

	for (i = 0; i < MAX_THREADS; i++) {
		if (threads[i])
			kthread_stop(threads[i]);
		threads[i] = NULL;
	}
}
