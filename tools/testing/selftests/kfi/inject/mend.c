// SPDX-License-Identifier: GPL-2.0
/*
 * The objects that callers have given up because their destruction was made to fail, and giving
 * them back.
 *
 * A driver that frees nothing is in trouble when its device goes; ours only plays one.
 */
#include <linux/export.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "inject.h"

/* By their addresses: what could not be destroyed, and is there still. */
static DEFINE_XARRAY_FLAGS(regions, XA_FLAGS_LOCK_IRQ);
static DEFINE_XARRAY_FLAGS(queue_pairs, XA_FLAGS_LOCK_IRQ);

static void note(struct xarray *xa, void *object, int ret)
{
	unsigned long index = (unsigned long)object, flags;
	void *old;

	xa_lock_irqsave(xa, flags);
	old = ret ? __xa_store(xa, index, object, GFP_ATOMIC) : __xa_erase(xa, index);
	xa_unlock_irqrestore(xa, flags);
	if (xa_is_err(old))
		pr_err("kfi_inject: no memory to mend what fails\n");
}

/**
 * mend_forget() - What was noted before is nobody's business any more.
 */
void mend_forget(void)
{
	xa_destroy(&regions);
	xa_destroy(&queue_pairs);
}

/**
 * mend_note_mr() - Deregistering has been tried, or is not going to be, since the device may have the region.
 * @mr: The region.
 * @ret: The result of the destruction.
 *
 * Context: Any.
 */
void mend_note_mr(struct ib_mr *mr, int ret)
{
	note(&regions, mr, ret);
}

/**
 * mend_note_qp() - Destroying has been tried.
 * @qp: The queue pair.
 * @ret: The result of the destruction.
 */
void mend_note_qp(struct ib_qp *qp, int ret)
{
	note(&queue_pairs, qp, ret);
}

static void note_pd(struct xarray *pds, struct ib_pd *pd)
{
	note(pds, pd, -EBUSY);
}

void kfi_inject_mend(void)
{
	struct xarray pds;
	unsigned long i;
	struct ib_mr *mr;
	struct ib_qp *qp;
	struct ib_pd *pd;

	xa_init_flags(&pds, XA_FLAGS_LOCK_IRQ);
	xa_for_each(&regions, i, mr) {
		note_pd(&pds, mr->pd);
		xa_erase_irq(&regions, i);
		ib_dereg_mr(mr);
	}
	xa_for_each(&queue_pairs, i, qp) {
		struct ib_cq *cq = qp->send_cq;

		note_pd(&pds, qp->pd);
		xa_erase_irq(&queue_pairs, i);
		ib_destroy_qp(qp);
		/*
		 * The caller that leaked it has ended its polling, so that no late completion calls
		 * code that is gone. Ending it once more would wait for ever.
		 */
		irq_poll_enable(&cq->iop);
		ib_free_cq(cq);
	}
	xa_for_each(&pds, i, pd)
		if (!atomic_read(&pd->usecnt))
			ib_dealloc_pd(pd);
	xa_destroy(&pds);
}
EXPORT_SYMBOL_GPL(kfi_inject_mend);
