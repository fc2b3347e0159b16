// SPDX-License-Identifier: GPL-2.0
/* The registration calls as one: see request.h. */
#include "request.h"

const char *reg_call_name(unsigned int call)
{
	static const char *const names[REG_CALLS] = {
		[REG] = "reg",
		[REGV] = "regv",
		[REGBV] = "regbv",
		[REGSGL] = "regsgl",
		[ATTR_KVEC] = "regattr_kvec",
		[ATTR_BVEC] = "regattr_bvec",
		[ATTR_SGL] = "regattr_sgl",
	};

	return names[call];
}

static struct page *page_of(const void *addr)
{
	return is_vmalloc_addr(addr) ? vmalloc_to_page(addr) : virt_to_page(addr);
}

/* Length of the segment that begins at @addr, with @left bytes to go. */
static size_t segment(const void *addr, size_t left, size_t split, bool by_page)
{
	size_t n = left;

	if (split != SPLIT_NONE)
		n = min(n, split - ((uintptr_t)addr & ~PAGE_MASK) % split);
	if (by_page)
		n = min(n, PAGE_SIZE - offset_in_page(addr));
	return n;
}

static void add_segment(struct reg_req *req, void *addr, size_t len)
{
	size_t i = req->count++;

	if (reg_call_in(req->call, KVEC_CALLS)) {
		req->kv[i].iov_base = addr;
		req->kv[i].iov_len = len;
	} else if (reg_call_in(req->call, BVEC_CALLS)) {
		bvec_set_page(&req->bv[i], page_of(addr), len, offset_in_page(addr));
	} else {
		sg_set_page(&req->sg[i], page_of(addr), len, offset_in_page(addr));
	}
}

/* The calls for pages see memory of vmalloc() page by page; kvecs take it as it is. */
static bool by_page(enum reg_call call, const void *mem)
{
	return is_vmalloc_addr(mem) && !reg_call_in(call, KVEC_CALLS);
}

/* How many segments reg_prepare() makes with the same arguments. */
size_t reg_segments(enum reg_call call, const void *mem, size_t len, size_t split)
{
	size_t n, count = 0;

	if (call == REG)
		return 1;
	for (; len; mem += n, len -= n, count++)
		n = segment(mem, len, split, by_page(call, mem));
	return count;
}

static void make_list(struct reg_req *req, void *mem, size_t len, size_t split)
{
	size_t n, total = reg_segments(req->call, mem, len, split);

	if (reg_call_in(req->call, SGL_CALLS))
		sg_init_table(req->sg, total);
	for (; len; mem += n, len -= n) {
		n = segment(mem, len, split, by_page(req->call, mem));
		add_segment(req, mem, n);
	}
}

static int map(struct kfi_env *env, struct reg_req *req)
{
	int n;

	n = env->dma->map_sg(&env->domain->fid, req->sg, req->count, DMA_BIDIRECTIONAL);
	if (n < 0)
		return n;
	memcpy(env->sg_copy, env->sg, req->count * sizeof(*env->sg));
	req->sg = env->sg_copy;
	req->mapped = req->count;
	req->count = n;
	return 0;
}

static const int types[REG_CALLS] = {
	[ATTR_KVEC] = KFI_KVEC,
	[ATTR_BVEC] = KFI_BVEC,
	[ATTR_SGL] = KFI_SGL,
};

/*
 * Make a request that the provider can't refuse, for @len bytes at @mem, with remote read and write
 * access. Ends with reg_finish(). One request at a time: its list is the environment's.
 *
 * Returns 0 or an errno; -ENOBUFS is the test's own mistake.
 */
int reg_prepare(struct kfi_env *env, struct reg_req *req, enum reg_call call, void *mem, size_t len,
		size_t split)
{
	*req = (struct reg_req) {
		.call = call,
		.domain = env->domain,
		.type = types[call],
		.buf = mem,
		.len = len,
		.kv = env->kv,
		.bv = env->bv,
		.sg = env->sg,
		.access = KFI_REMOTE,
	};

	if (call == REG)
		return 0;
	if (reg_segments(call, mem, len, split) > env->room)
		return -ENOBUFS;
	make_list(req, mem, len, split);
	return reg_call_in(call, SGL_CALLS) ? map(env, req) : 0;
}

/* Undo the mapping of a request's list, before the list is changed or forgotten. */
void reg_finish(struct kfi_env *env, struct reg_req *req)
{
	if (req->mapped)
		env->dma->unmap_sg(&env->domain->fid, env->sg, req->mapped, DMA_BIDIRECTIONAL);
	req->mapped = 0;
}

static int submit_attr(const struct reg_req *req, struct kfid_mr **mr)
{
	struct kfi_mr_attr attr = {
		.type = req->type,
		.iov_count = req->count,
		.access = req->access,
		.offset = req->offset,
		.requested_key = req->key,
		.context = req->context,
		.auth_key = req->auth_key,
		.auth_key_size = req->auth_key_size,
	};

	if (req->call == ATTR_KVEC)
		attr.mr_iov = req->kv;
	else if (req->call == ATTR_BVEC)
		attr.mr_biov = req->bv;
	else
		attr.mr_sgl = req->sg;
	return kfi_mr_regattr(req->domain, req->no_attr ? NULL : req->attr_error ? ERR_PTR(-ENOMEM) : &attr,
			      req->flags, mr);
}

int reg_submit(const struct reg_req *req, struct kfid_mr **mr)
{
	if (req->no_mr)
		mr = NULL;
	switch (req->call) {
	case REG:
		return kfi_mr_reg(req->domain, req->buf, req->len, req->access, req->offset,
				  req->key, req->flags, mr, req->context);
	case REGV:
		return kfi_mr_regv(req->domain, req->kv, req->count, req->access, req->offset,
				   req->key, req->flags, mr, req->context);
	case REGBV:
		return kfi_mr_regbv(req->domain, req->bv, req->count, req->access, req->offset,
				    req->key, req->flags, mr, req->context);
	case REGSGL:
		return kfi_mr_regsgl(req->domain, req->sg, req->count, req->access, req->offset,
				     req->key, req->flags, mr, req->context);
	default:
		return submit_attr(req, mr);
	}
}

/* For tests that are about something else than the registration. */
int reg_simple(struct kfi_env *env, void *buf, size_t len, u64 access, struct kfid_mr **mr)
{
	return kfi_mr_reg(env->domain, buf, len, access, 0, 0, 0, mr, NULL);
}
