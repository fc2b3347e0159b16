/* SPDX-License-Identifier: GPL-2.0 */
/*
 * C that the core needs: static inlines and macros of the kernel which Rust can't call, each
 * doing one whole piece of work.
 */
#ifndef KFABRIC_HELPERS_H
#define KFABRIC_HELPERS_H

#include <linux/spinlock_types.h>
#include <linux/types.h>

struct bio_vec;
struct kfi_provider;
struct page;
struct scatterlist;

/* memory.c: what may be registered (decision 7 of the design) */
struct page *kfi_helper_kvec_page(const void *addr, bool writes);
bool kfi_helper_on_stack(const void *addr, size_t len);
struct page *kfi_helper_bvec_page(const struct bio_vec *bv, u64 *phys, bool writes);
struct page *kfi_helper_bvec_next_page(struct page *page, bool writes);
bool kfi_helper_phys_ok(u64 phys, u64 len, bool writes);
struct scatterlist *kfi_helper_sg_next(struct scatterlist *sg, u64 *addr, u32 *len);
unsigned int kfi_helper_noio_save(void);
void kfi_helper_noio_restore(unsigned int flags);

/* lock.c */
unsigned long kfi_helper_lock_irqsave(spinlock_t *lock);
bool kfi_helper_trylock_irqsave(spinlock_t *lock, unsigned long *flags);
void kfi_helper_unlock_irqrestore(spinlock_t *lock, unsigned long flags);
bool kfi_helper_irqs_disabled(void);

/* extent.c */
u64 kfi_helper_page_phys(struct page *page);
void kfi_helper_copy(u64 phys, void *buf, size_t len, bool to_phys);
bool kfi_helper_sg_map_direct(struct scatterlist *sgl, int nents);

/* provider.c */
void kfi_helper_provider_init(struct kfi_provider *provider);
void kfi_helper_provider_get(struct kfi_provider *provider);
void kfi_helper_provider_put(struct kfi_provider *provider);
void kfi_helper_provider_drain(struct kfi_provider *provider);

/* trace.c */
void kfi_helper_trace_refused(int err, const char *why, u64 index, u64 value);

#endif /* KFABRIC_HELPERS_H */
