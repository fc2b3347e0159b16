// SPDX-License-Identifier: GPL-2.0
/* kfabric's ways to register regions and to close them. */
#include <linux/uio.h>

#include "bench.h"

#define TIMEOUT_MS	60000

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
 * @form: What of it, which says also by which call.
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
		return reg(domain, mem->vmap, len, mr);
	case KVEC:
		return regv(domain, mem->linear, len, mr);
	case BVEC_ONE:
		bvec_set_page(&bv, virt_to_page(mem->linear), len, 0);
		return regbv(domain, &bv, 1, mr);
	case BVEC_SCATTERED:
		return regbv(domain, mem->bv, pages, mr);
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

static int read_event(struct bench *b)
{
	struct kfi_eq_entry entry;
	u32 event;
	ssize_t ret;

	ret = kfi_eq_sread(b->eq, &event, &entry, sizeof(entry), TIMEOUT_MS, 0);
	if (ret < 0)
		return ret;
	return event == KFI_MR_COMPLETE ? 0 : -EIO;
}

/* Many regions at a time, each of which is there when its event is. */
int kfi_batch(struct bench *b, enum bench_form form, unsigned int pages)
{
	struct kfid_mr *mr[BATCH];
	int i, n, closed, ret = 0;

	for (n = 0; n < BATCH; n++) {
		ret = kfi_register(b->async, b->mem, form, pages, &mr[n]);
		if (ret)
			break;
	}
	for (i = 0; i < n && !ret; i++)
		ret = read_event(b);
	for (i = 0; i < n; i++) {
		closed = kfi_close(&mr[i]->fid);
		ret = ret ?: closed;
	}
	return ret;
}
