// SPDX-License-Identifier: GPL-2.0
/*
 * Operations that aren't supported: each returns -KFI_ENOSYS, those that open something leave NULL
 * behind.
 */
#include <kfabric.h>
#include <kfi_domain.h>

#include "enosys.h"

/* For operations with an output pointer. */
#define refuse(out)		\
({				\
	if (out)		\
		*(out) = NULL;	\
	-KFI_ENOSYS;		\
})

static int no_close(struct kfid *fid)
{
	return -KFI_ENOSYS;
}

static int no_bind(struct kfid *fid, struct kfid *bfid, u64 flags)
{
	return -KFI_ENOSYS;
}

static int no_control(struct kfid *fid, int command, void *arg)
{
	return -KFI_ENOSYS;
}

static int no_ops_open(struct kfid *fid, const char *name, u64 flags, void **ops, void *context)
{
	return refuse(ops);
}

const struct kfi_ops kfi_enosys_ops = {
	.size = sizeof(struct kfi_ops),
	.close = no_close,
	.bind = no_bind,
	.control = no_control,
	.ops_open = no_ops_open,
};

static int no_domain(struct kfid_fabric *fabric, struct kfi_info *info, struct kfid_domain **dom,
		     void *context)
{
	return refuse(dom);
}

static int no_passive_ep(struct kfid_fabric *fabric, struct kfi_info *info, struct kfid_pep **pep,
			 void *context)
{
	return refuse(pep);
}

static int no_eq_open(struct kfid_fabric *fabric, struct kfi_eq_attr *attr, struct kfid_eq **eq,
		      kfi_event_handler event_handler, void *context)
{
	return refuse(eq);
}

static int no_wait_open(struct kfid_fabric *fabric, struct kfi_wait_attr *attr,
			struct kfid_wait **waitset)
{
	return refuse(waitset);
}

const struct kfi_ops_fabric kfi_enosys_ops_fabric = {
	.size = sizeof(struct kfi_ops_fabric),
	.domain = no_domain,
	.passive_ep = no_passive_ep,
	.eq_open = no_eq_open,
	.wait_open = no_wait_open,
};

static int no_av_open(struct kfid_domain *domain, struct kfi_av_attr *attr, struct kfid_av **av,
		      void *context)
{
	return refuse(av);
}

static int no_cq_open(struct kfid_domain *domain, struct kfi_cq_attr *attr, struct kfid_cq **cq,
		      kfi_comp_handler comp_handler, void *context)
{
	return refuse(cq);
}

/* Both kinds of endpoint. */
static int no_endpoint(struct kfid_domain *domain, struct kfi_info *info, struct kfid_ep **ep,
		       void *context)
{
	return refuse(ep);
}

static int no_cntr_open(struct kfid_domain *domain, struct kfi_cntr_attr *attr,
			struct kfid_cntr **cntr, void *context)
{
	return refuse(cntr);
}

static int no_poll_open(struct kfid_domain *domain, struct kfi_poll_attr *attr,
			struct kfid_poll **pollset)
{
	return refuse(pollset);
}

static int no_stx_ctx(struct kfid_domain *domain, struct kfi_tx_attr *attr, struct kfid_stx **stx,
		      void *context)
{
	return refuse(stx);
}

static int no_srx_ctx(struct kfid_domain *domain, struct kfi_rx_attr *attr, struct kfid_ep **rx_ep,
		      void *context)
{
	return refuse(rx_ep);
}

static int no_query_atomic(struct kfid_domain *domain, enum kfi_datatype datatype, enum kfi_op op,
			   struct kfi_atomic_attr *attr, u64 flags)
{
	return -KFI_ENOSYS;
}

const struct kfi_ops_domain kfi_enosys_ops_domain = {
	.size = sizeof(struct kfi_ops_domain),
	.av_open = no_av_open,
	.cq_open = no_cq_open,
	.endpoint = no_endpoint,
	.scalable_ep = no_endpoint,
	.cntr_open = no_cntr_open,
	.poll_open = no_poll_open,
	.stx_ctx = no_stx_ctx,
	.srx_ctx = no_srx_ctx,
	.query_atomic = no_query_atomic,
};

static int no_reg(struct kfid *fid, const void *buf, size_t len, u64 access, u64 offset,
		  u64 requested_key, u64 flags, struct kfid_mr **mr, void *context)
{
	return refuse(mr);
}

static int no_regv(struct kfid *fid, const struct kvec *iov, size_t count, u64 access, u64 offset,
		   u64 requested_key, u64 flags, struct kfid_mr **mr, void *context)
{
	return refuse(mr);
}

static int no_regbv(struct kfid *fid, const struct bio_vec *biov, size_t count, u64 access,
		    u64 offset, u64 requested_key, u64 flags, struct kfid_mr **mr, void *context)
{
	return refuse(mr);
}

static int no_regattr(struct kfid *fid, const struct kfi_mr_attr *attr, u64 flags,
		      struct kfid_mr **mr)
{
	return refuse(mr);
}

static int no_regsgl(struct kfid *fid, const struct scatterlist *sgl, size_t count, u64 access,
		     u64 offset, u64 requested_key, u64 flags, struct kfid_mr **mr, void *context)
{
	return refuse(mr);
}

const struct kfi_ops_mr kfi_enosys_ops_mr = {
	.size = sizeof(struct kfi_ops_mr),
	.reg = no_reg,
	.regv = no_regv,
	.regbv = no_regbv,
	.regattr = no_regattr,
	.regsgl = no_regsgl,
};
