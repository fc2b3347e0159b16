// SPDX-License-Identifier: GPL-2.0
/* kfabric's ways to register regions and to close them. */
#include <linux/uio.h>

#include <kfi_batch_ext.h>

#include "bench.h"

/* Registers @len bytes at @addr. */
static int reg(struct kfid_domain *domain, void *addr, size_t len, struct kfid_mr **mr)
{
	return kfi_mr_reg(domain, addr, len, KFI_RIGHTS, 0, 0, 0, mr, NULL);
}

static int regv(struct kfid_domain *domain, void *addr, size_t len, struct kfid_mr **mr)
{
	struct kvec one = { .iov_base = addr, .iov_len = len };

	return kfi_mr_regv(domain, &one, 1, KFI_RIGHTS, 0, 0, 0, mr, NULL);
}

static int regbv(struct kfid_domain *domain, const struct bio_vec *bv, size_t count,
		 struct kfid_mr **mr)
{
	return kfi_mr_regbv(domain, bv, count, KFI_RIGHTS, 0, 0, 0, mr, NULL);
}

/**
 * kfi_register() - Register memory.
 * @domain: Where.
 * @mem: The memory.
 * @form: The form of it, which also determines the call.
 * @pages: How much.
 * @mr: Where to put the region.
 *
 * Context: Process context; may sleep.
 * Return: 0 or an errno.
 */
int kfi_register(struct kfid_domain *domain, struct bench_mem *mem, enum bench_form form,
		 unsigned int pages, struct kfid_mr **mr)
{
	size_t len = pages * PAGE_SIZE;
	struct scatterlist *sg;
	struct bio_vec bv;
	int entries;

	switch (form) {
	case LINEAR:
		return reg(domain, mem->linear, len, mr);
	case VMALLOC:
		return reg(domain, mem->vmalloc, len, mr);
	case VMAP:
		return reg(domain, mem->scattered->vmap, len, mr);
	case KVEC:
		return regv(domain, mem->linear, len, mr);
	case BVEC_ONE:
		bvec_set_page(&bv, virt_to_page(mem->linear), len, 0);
		return regbv(domain, &bv, 1, mr);
	case BVEC_SCATTERED:
		return regbv(domain, mem->scattered->bv, pages, mr);
	default:
		sg = mem_list(mem, form, pages, &entries);
		return kfi_mr_regsgl(domain, sg, entries, KFI_RIGHTS, 0, 0, 0, mr, NULL);
	}
}

/* One region that is there when the call returns. */
int kfi_one(struct bench *b, enum bench_form form, unsigned int pages)
{
	struct kfid_mr *mr;
	int ret;

	ret = kfi_register(b->domain, b->mem, form, pages, &mr);
	return ret ?: kfi_close(&mr->fid);
}

/* Many regions of kmalloc()'ed memory in one go. */
int kfi_batch(struct bench *b, enum bench_form form, unsigned int pages)
{
	struct kvec one = { .iov_base = b->mem->linear, .iov_len = pages * PAGE_SIZE };
	/* Too large for the stack, and used by one thread. */
	static struct kfi_mr_attr attr[BATCH];
	struct kfid_mr *mr[BATCH];
	int i, ret;

	for (i = 0; i < BATCH; i++) {
		attr[i].type = KFI_KVEC;
		attr[i].mr_iov = &one;
		attr[i].iov_count = 1;
		attr[i].access = KFI_RIGHTS;
	}
	ret = b->many->regattr_many(&b->domain->fid, attr, BATCH, 0, KFI_BATCH_ALL_OR_NONE, mr,
				    NULL);
	return ret ?: b->many->close_many(mr, BATCH, NULL);
}
