// SPDX-License-Identifier: GPL-2.0
/* Refusals of memory that can't be registered. */
#include <linux/init_task.h>
#include <linux/sched/mm.h>

#include "errors.h"
#include "suites.h"

/* One page of it is aligned to a page. */
static char module_data[2 * PAGE_SIZE];

/* All of the memory is at @addr. */
static const char *place(struct reg_req *req, const void *addr, size_t len)
{
	req->buf = addr;
	req->len = len;
	if (req->call != REG) {
		req->kv[0].iov_base = (void *)addr;
		req->kv[0].iov_len = len;
		req->count = 1;
	}
	return NULL;
}

/* The last segment is at @addr, at the beginning of a page, so that there is no gap. */
static const char *place_last(struct reg_req *req, const void *addr)
{
	req->kv[req->count - 1].iov_base = (void *)addr;
	return NULL;
}

static const char *user_low(struct kfi_env *env, struct reg_req *req)
{
	return place(req, (void *)PAGE_SIZE, PAGE_SIZE);
}

static const char *user_mapped(struct kfi_env *env, struct reg_req *req)
{
	if (!current->mm)
		return "no user memory";
	return place(req, (void *)PAGE_ALIGN_DOWN(current->mm->start_stack), 64);
}

static const char *error_pointer(struct kfi_env *env, struct reg_req *req)
{
	return place(req, ERR_PTR(-ENOMEM), 8);
}

/* Between user and kernel addresses, where there is nothing on any machine. */
static const char *no_address(struct kfi_env *env, struct reg_req *req)
{
	return place(req, (void *)(1UL << 62), 64);
}

static const char *stack(struct kfi_env *env, struct reg_req *req)
{
	return place(req, task_stack_page(current) + THREAD_SIZE - PAGE_SIZE, PAGE_SIZE);
}

static const char *kernel_text(struct kfi_env *env, struct reg_req *req)
{
	return place(req, PTR_ALIGN_DOWN((void *)kfree, PAGE_SIZE), PAGE_SIZE);
}

static const char *kernel_data(struct kfi_env *env, struct reg_req *req)
{
	return place(req, &init_task, 64);
}

static const char *own_text(struct kfi_env *env, struct reg_req *req)
{
	return place(req, PTR_ALIGN_DOWN((void *)own_text, PAGE_SIZE), 64);
}

static const char *own_data(struct kfi_env *env, struct reg_req *req)
{
	module_data[0] = 1;
	return place(req, PTR_ALIGN(&module_data[0], PAGE_SIZE), 64);
}

static const char *user_last(struct kfi_env *env, struct reg_req *req)
{
	return place_last(req, (void *)PAGE_SIZE);
}

static const char *stack_last(struct kfi_env *env, struct reg_req *req)
{
	return place_last(req, task_stack_page(current) + THREAD_SIZE - PAGE_SIZE);
}

static const char *text_last(struct kfi_env *env, struct reg_req *req)
{
	return place_last(req, PTR_ALIGN_DOWN((void *)kfree, PAGE_SIZE));
}

/* Freed, and with luck nothing else has its addresses yet: then it must be noticed. */
static const char *freed_vmalloc(struct kfi_env *env, struct reg_req *req)
{
	void *area = vmalloc(4 * PAGE_SIZE);

	if (!area)
		return "no memory";
	vfree(area);
	return place(req, area, 2 * PAGE_SIZE);
}

/* The page behind an area is left free by vmalloc() as a guard. */
static const char *behind_vmalloc(struct kfi_env *env, struct reg_req *req)
{
	return place(req, env->arena[MEM_VMALLOC] + env->arena_size, PAGE_SIZE);
}

static const char *across_vmalloc_end(struct kfi_env *env, struct reg_req *req)
{
	return place(req, env->arena[MEM_VMALLOC] + env->arena_size - PAGE_SIZE, PAGE_SIZE + 1);
}

static const char *null_base(struct kfi_env *env, struct reg_req *req)
{
	if (reg_call_in(req->call, KVEC_CALLS))
		req->kv[1].iov_base = NULL;
	else
		req->bv[1].bv_page = NULL;
	return NULL;
}

static const char *null_base_last(struct kfi_env *env, struct reg_req *req)
{
	if (reg_call_in(req->call, KVEC_CALLS))
		req->kv[req->count - 1].iov_base = NULL;
	else
		req->bv[req->count - 1].bv_page = NULL;
	return NULL;
}

static const char *error_page(struct kfi_env *env, struct reg_req *req)
{
	req->bv[1].bv_page = ERR_PTR(-ENOMEM);
	return NULL;
}

/* It points into the description of a page. */
static const char *misaligned_page(struct kfi_env *env, struct reg_req *req)
{
	req->bv[1].bv_page = (void *)req->bv[1].bv_page + sizeof(long);
	return NULL;
}

/* Scatterlists: addresses that no mapping for a virtual-DMA device gives. */
static const char *foreign(struct kfi_env *env, struct reg_req *req, u64 addr)
{
	if (!dma_tells_page(env))
		return "any DMA address may be one of this device";
	sg_dma_address(&req->sg[1]) = addr;
	return NULL;
}

static const char *foreign_physical(struct kfi_env *env, struct reg_req *req)
{
	if (env->loop)
		return "the DMA addresses of loop are physical ones";
	return foreign(env, req, page_to_phys(virt_to_page(env->arena[MEM_PAGES])));
}

static const char *foreign_zero(struct kfi_env *env, struct reg_req *req)
{
	if (env->loop)
		return "the DMA addresses of loop are physical ones";
	return foreign(env, req, 0);
}

static const char *foreign_vmalloc(struct kfi_env *env, struct reg_req *req)
{
	return foreign(env, req, (uintptr_t)env->arena[MEM_VMALLOC]);
}

static const char *foreign_image(struct kfi_env *env, struct reg_req *req)
{
	return foreign(env, req, PAGE_ALIGN_DOWN((uintptr_t)module_data));
}

static const char *foreign_error(struct kfi_env *env, struct reg_req *req)
{
	return foreign(env, req, PAGE_ALIGN_DOWN((uintptr_t)ERR_PTR(-ENOMEM)));
}

/* The list ends before count says so. */
static const char *list_too_short(struct kfi_env *env, struct reg_req *req)
{
	req->count++;
	return NULL;
}

#define VIRT	(BUF_CALLS | KVEC_CALLS)

static const struct kfi_case cases[] = {
	ROW("user_low", VIRT, -KFI_EFAULT, user_low),
	ROW("user_mapped", VIRT, -KFI_EFAULT, user_mapped),
	ROW("error_pointer", VIRT, -KFI_EFAULT, error_pointer),
	ROW("no_address", VIRT, -KFI_EFAULT, no_address),
	ROW("stack", VIRT, -KFI_EFAULT, stack),
	ROW("kernel_text", VIRT, -KFI_EFAULT, kernel_text),
	ROW("kernel_data", VIRT, -KFI_EFAULT, kernel_data),
	ROW("own_text", VIRT, -KFI_EFAULT, own_text),
	ROW("own_data", VIRT, -KFI_EFAULT, own_data),
	ROW("user_last", KVEC_CALLS, -KFI_EFAULT, user_last),
	ROW("stack_last", KVEC_CALLS, -KFI_EFAULT, stack_last),
	ROW("text_last", KVEC_CALLS, -KFI_EFAULT, text_last),
	ROW("freed_vmalloc", VIRT, -KFI_EFAULT, freed_vmalloc),
	ROW("behind_vmalloc", VIRT, -KFI_EFAULT, behind_vmalloc),
	ROW("across_vmalloc_end", VIRT, -KFI_EFAULT, across_vmalloc_end),
	ROW("null_base", KVEC_CALLS | BVEC_CALLS, -KFI_EFAULT, null_base, .alone = true),
	ROW("null_base_last", KVEC_CALLS | BVEC_CALLS, -KFI_EFAULT, null_base_last),
	ROW("error_page", BVEC_CALLS, -KFI_EFAULT, error_page, .alone = true),
	ROW("misaligned_page", BVEC_CALLS, -KFI_EFAULT, misaligned_page, .alone = true),
	ROW("foreign_physical", SGL_CALLS, -KFI_EINVAL, foreign_physical, .alone = true),
	ROW("foreign_zero", SGL_CALLS, -KFI_EINVAL, foreign_zero, .alone = true),
	ROW("foreign_vmalloc", SGL_CALLS, -KFI_EINVAL, foreign_vmalloc, .alone = true),
	ROW("foreign_image", SGL_CALLS, -KFI_EINVAL, foreign_image, .alone = true),
	ROW("foreign_error", SGL_CALLS, -KFI_EINVAL, foreign_error, .alone = true),
	ROW("list_too_short", SGL_CALLS, -KFI_EINVAL, list_too_short),
};

const struct kfi_suite suite_badmem = {
	.name = "badmem",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
	.end = end_refusals,
};
