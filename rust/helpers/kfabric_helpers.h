/* SPDX-License-Identifier: GPL-2.0 */
/*
 * C that the core needs: static inlines and macros of the kernel which Rust can't call, each
 * doing one whole piece of work.
 */
#ifndef KFABRIC_HELPERS_H
#define KFABRIC_HELPERS_H

#include <linux/completion.h>
#include <linux/percpu-refcount.h>
#include <linux/spinlock_types.h>
#include <linux/types.h>

struct bio_vec;
struct kfi_provider;
struct kvec;
struct module;
struct page;
struct scatterlist;
struct sockaddr_storage;

/* Where the device finds the data of an entry of a scatterlist. */
struct kfi_helper_sg_span {
	u64 addr;
	u32 len;
};

/* Entries of a scatterlist that follow each other, each of whole pages of the device. */
struct kfi_helper_sg_whole {
	struct kfi_helper_sg_span first;
	struct kfi_helper_sg_span last;
	/* How many there are, both included, and how many bytes they have together. */
	u32 count;
	u64 bytes;
};

/* memory.c: the pages behind addresses and lists (decision 7 of the design) */
bool kfi_helper_virt_pfn(const void *addr, u64 *pfn);
bool kfi_helper_on_stack(const void *addr, size_t len);
bool kfi_helper_bvec_pfn(const struct bio_vec *bv, u64 *pfn);
void *kfi_helper_bvec_address(const struct bio_vec *bv);
struct kfi_helper_sg_span kfi_helper_sg_first(struct scatterlist *sg);
u32 kfi_helper_sg_spans(struct scatterlist **next, u64 left, struct kfi_helper_sg_span *spans,
			u32 max);
void kfi_helper_sg_whole(struct scatterlist **next, u64 left, struct kfi_helper_sg_whole *whole);
void kfi_helper_not_leak(const void *object);
unsigned int kfi_helper_noio_save(void);
void kfi_helper_noio_restore(unsigned int flags);
bool kfi_helper_in_noio(void);
bool kfi_helper_frees_memory(void);

/* cache.c: memory for what there is of each region */
enum kfi_helper_cache {
	/* The core's object, with the provider's part. */
	KFI_CACHE_OBJECT,
	/* What only some regions have, which may be larger than KFI_CACHE_RARE_SIZE. */
	KFI_CACHE_RARE,
	/* What is listed of regions that are registered or closed together. */
	KFI_CACHE_LIST,
	KFI_CACHES
};

#define KFI_CACHE_RARE_SIZE	120
#define KFI_CACHE_LIST_SIZE	4096

int kfi_helper_caches_init(u32 object_size);
void kfi_helper_caches_exit(void);
void *kfi_helper_cache_alloc(enum kfi_helper_cache which, size_t size, bool wait);
void kfi_helper_cache_free(enum kfi_helper_cache which, void *memory, size_t size);

/* pages.c: what is remarkable about a page */
enum kfi_helper_fact {
	/* There is none of this number. */
	KFI_FACT_NO_PAGE	= 1 << 0,
	/* There is, but its memory isn't in use: offline, or not there. */
	KFI_FACT_OFFLINE	= 1 << 1,
	/* Reserved, as the kernel image is. */
	KFI_FACT_RESERVED	= 1 << 2,
	/* A zero page, small or huge; a huge one is looked for only where it is to be written to. */
	KFI_FACT_ZERO		= 1 << 3,
	/* ZONE_DEVICE: of a device that keeps it for itself, or moves it as it likes. */
	KFI_FACT_DEVICE_PRIVATE	= 1 << 4,
	/* ZONE_DEVICE: in the BAR of a PCI device. */
	KFI_FACT_PEER_TO_PEER	= 1 << 5,
	/* The hardware has failed there. */
	KFI_FACT_POISONED	= 1 << 6,
	/* Free, a page table, or given away to a hypervisor. */
	KFI_FACT_NOBODYS	= 1 << 7,
	/* The kernel has taken it out of its linear map. */
	KFI_FACT_UNMAPPED	= 1 << 8,
	/* The kernel has made it read-only in its linear map. */
	KFI_FACT_READ_ONLY	= 1 << 9,
};

/* The memory map comes and goes by so many pages. */
#ifdef CONFIG_SPARSEMEM
#define KFI_MAP_PAGES	PAGES_PER_SUBSECTION
#else
#define KFI_MAP_PAGES	1UL
#endif

/* Page frames [first, end) are in a place about which nothing is remarkable. */
struct kfi_helper_seen {
	u64 first;
	u64 end;
};

u64 kfi_helper_plain_pages(u64 pfn, u64 count, bool writes, struct kfi_helper_seen *seen,
			   u32 *facts);

/* runs.c: from a list to runs of memory */
enum kfi_helper_stop {
	/* At the end of the list, or there is no room for more. */
	KFI_STOP_NONE,
	/* An address is NULL, */
	KFI_STOP_NULL,
	/* on the stack of the calling task, */
	KFI_STOP_STACK,
	/* or none of the linear map or a vmalloc area. */
	KFI_STOP_NO_MEMORY,
	/* bv_page is no page. */
	KFI_STOP_NO_PAGE,
	/* An address that a device is to use is not in the linear map. */
	KFI_STOP_NOT_LINEAR,
	/* There are facts about a page. */
	KFI_STOP_FACTS,
};

/* Memory that is contiguous: physical address and length. */
struct kfi_helper_run {
	u64 phys;
	u64 len;
};

/*
 * What was found of the surroundings of memory, and holds for other memory there that is used likewise;
 * zeroed at first.
 */
struct kfi_helper_around {
	struct kfi_helper_seen seen;
	/* Addresses of the linear map that are valid, and the page frame of the first one. */
	u64 linear;
	u64 linear_len;
	u64 linear_pfn;
};

struct kfi_helper_walk {
	/* The list, of one of these kinds; or the current entry, mapped to linear addresses. */
	const struct kvec *kvecs;
	const struct bio_vec *bvecs;
	struct scatterlist *sgl;
	u64 count;
	/* The current segment, and how many bytes of it are done. */
	u64 index;
	u64 done;
	/* No more bytes than these. */
	u64 limit;
	/* Whether the pages are to be written to. */
	bool writes;
	/* Why it stopped: enum kfi_helper_stop; what to name; and the page if there are facts. */
	u32 stop;
	u32 facts;
	u64 value;
	struct kfi_helper_run page;
	struct kfi_helper_around around;
};

u32 kfi_helper_walk(struct kfi_helper_walk *walk, struct kfi_helper_run *runs, u32 max);

/* plain.c: the same of one segment, where it is simple */
u64 kfi_helper_plain_kvec(const struct kvec *kvec, bool writes, struct kfi_helper_around *around);
u64 kfi_helper_plain_bvec(const struct bio_vec *bvec, bool writes, struct kfi_helper_around *around);
u64 kfi_helper_plain_entry(struct scatterlist *sg, bool writes, struct kfi_helper_around *around,
			   u64 *len);

/* fill.c: the same, where it is simple, to entries of a scatterlist */
u32 kfi_helper_fill(struct kfi_helper_walk *walk, struct scatterlist *sg, u32 max);

/* entries.c: whether a scatterlist can be handed on as it is */
bool kfi_helper_plain_list(struct scatterlist *sg, u64 left, bool writes,
			   struct kfi_helper_around *around);

/* No address: no memory is so far up. */
#define KFI_NO_START	(~0ULL)

void kfi_helper_bvec_starts(const struct bio_vec *bvecs, u32 count, u64 *starts);

/* address.c */
int kfi_helper_parse_address(const char *node, const char *service, struct sockaddr_storage *addr);

/* lock.c */
unsigned long kfi_helper_lock_irqsave(spinlock_t *lock);
bool kfi_helper_trylock_irqsave(spinlock_t *lock, unsigned long *flags);
void kfi_helper_unlock_irqrestore(spinlock_t *lock, unsigned long flags);
bool kfi_helper_irqs_disabled(void);

/* extent.c */
void *kfi_helper_linear_address(u64 phys);
void kfi_helper_copy(u64 phys, void *buf, size_t len, bool to_phys);
void kfi_helper_move(void *to, const void *from, size_t len);

enum kfi_helper_atomic_op {
	KFI_HELPER_ATOMIC_WRITE,
	KFI_HELPER_ATOMIC_ADD,
	KFI_HELPER_ATOMIC_COMPARE_SWAP,
};

u64 kfi_helper_atomic(u64 phys, enum kfi_helper_atomic_op op, u64 operand, u64 expected);
bool kfi_helper_sg_map_direct(struct scatterlist *sgl, int nents);

/* module.c */
bool kfi_helper_module_is_live(struct module *mod);
void kfi_helper_module_leaves(struct module *mod);
bool kfi_helper_of_leaving_module(unsigned long code);
int kfi_helper_watch_modules(void);
void kfi_helper_unwatch_modules(void);
void kfi_core_module_gone(struct module *mod);	/* in unload.rs */

/* provider.c */
void kfi_helper_provider_init(struct kfi_provider *provider);
void kfi_helper_provider_get(struct kfi_provider *provider);
void kfi_helper_provider_put(struct kfi_provider *provider);
void kfi_helper_provider_drain(struct kfi_provider *provider);

/* users.c: who is inside a gate */
struct kfi_helper_users {
	struct percpu_ref ref;
	/* Nobody is left since it was shut. */
	struct completion none;
};

int kfi_helper_users_init(struct kfi_helper_users *users, bool open);
bool kfi_helper_users_enter(struct kfi_helper_users *users);
void kfi_helper_users_leave(struct kfi_helper_users *users);
void kfi_helper_users_shut(struct kfi_helper_users *users);
void kfi_helper_users_drain(struct kfi_helper_users *users);
void kfi_helper_users_open(struct kfi_helper_users *users);
void kfi_helper_users_exit(struct kfi_helper_users *users);

/* trace.c */
void kfi_helper_trace_refused(int err, const char *why, u64 index, u64 value);

#endif /* KFABRIC_HELPERS_H */
