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
#include <linux/tracepoint-defs.h>
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
/* No address: no memory is so far up. */
#define KFI_NO_START	(~0ULL)
void kfi_helper_bvec_starts(const struct bio_vec *bvecs, u32 count, u64 *starts);
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
	/* Optional parts of regions, which may be larger than KFI_CACHE_RARE_SIZE. */
	KFI_CACHE_RARE,
	/* Lists of regions that are registered or closed in a batch. */
	KFI_CACHE_LIST,
	KFI_CACHES
};

#define KFI_CACHE_RARE_SIZE	120
#define KFI_CACHE_LIST_SIZE	4096

int kfi_helper_caches_init(u32 object_size);
void kfi_helper_caches_exit(void);
void *kfi_helper_cache_alloc(enum kfi_helper_cache which, size_t size, bool wait);
void kfi_helper_cache_free(enum kfi_helper_cache which, void *memory, size_t size);

/* memory_walk.c: from a list to memory that may be registered */
enum kfi_helper_refused {
	KFI_REFUSED_NONE,
	/* An address is NULL. */
	KFI_REFUSED_NULL,
	/* An address is on the stack of the calling task. */
	KFI_REFUSED_STACK,
	/* An address is neither in the linear map nor mapped in a vmalloc area. */
	KFI_REFUSED_ADDRESS,
	/* bv_page is no struct page. */
	KFI_REFUSED_PAGE_POINTER,
	/* A DMA address is none of a device that takes kernel addresses. */
	KFI_REFUSED_DEVICE_ADDRESS,
	/* The page frame has no struct page. */
	KFI_REFUSED_NO_PAGE,
	/* Memory that is offline. */
	KFI_REFUSED_OFFLINE,
	/* ZONE_DEVICE: private to a device, or moved by it. */
	KFI_REFUSED_DEVICE_PRIVATE,
	/* ZONE_DEVICE: in the BAR of a PCI device. */
	KFI_REFUSED_PEER_TO_PEER,
	/* Reserved, as the kernel image, and neither slab memory nor the zero page. */
	KFI_REFUSED_RESERVED,
	/* The zero page, to be written to. */
	KFI_REFUSED_ZERO,
	/* The hardware has failed there. */
	KFI_REFUSED_POISONED,
	/* Free, a page table, or given away to a hypervisor. */
	KFI_REFUSED_FREE,
	/*
	 * A segment is not one whole page, although the list was taken for a list of pages. The core counts
	 * the list and walks again.
	 */
	KFI_REFUSED_NOT_A_PAGE,
};

/* Memory that is physically contiguous: physical address and length in bytes. */
struct kfi_helper_run {
	u64 phys;
	u64 len;
};

struct kfi_helper_walk {
	/* The list, of one of these kinds; of a scatterlist, the current entry. */
	const struct kvec *kvecs;
	const struct bio_vec *bvecs;
	struct scatterlist *sgl;
	u64 count;
	/* The current segment, and how many of its bytes are done. */
	u64 index;
	u64 done;
	/* How many more bytes to report. */
	u64 limit;
	/* Whether the pages are to be written to, and whether those of other PCI devices will do. */
	bool writes;
	bool peer_to_peer;
	/* Whether the addresses of a scatterlist are physical, and not those of the linear map. */
	bool physical;
	/* Whether each segment must be a page. */
	bool pages;
	/* Why the walk is over: enum kfi_helper_refused; and the address or page in question. */
	u32 refused;
	u64 value;
};

u32 kfi_helper_walk(struct kfi_helper_walk *walk, struct kfi_helper_run *runs, u32 max);
u32 kfi_helper_walk_entries(struct kfi_helper_walk *walk, struct scatterlist *sgl, u32 max, u32 max_len,
			    bool virt);
bool kfi_helper_check_list(struct scatterlist *sg, u64 left);
u32 kfi_helper_check_page(u64 pfn, bool writes, bool peer_to_peer);

/* address.c */
int kfi_helper_parse_address(const char *node, const char *service, struct sockaddr_storage *addr);

/* lock.c */
unsigned long kfi_helper_lock_irqsave(spinlock_t *lock);
bool kfi_helper_trylock_irqsave(spinlock_t *lock, unsigned long *flags);
void kfi_helper_unlock_irqrestore(spinlock_t *lock, unsigned long flags);
bool kfi_helper_irqs_disabled(void);

/* extent.c */
void *kfi_helper_linear_address(u64 phys);
void kfi_helper_bio_vec(struct bio_vec *to, void *start, u32 len);
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
void kfi_helper_wait_left(unsigned long *users);
void kfi_helper_wake_left(unsigned long *users);

/* netlink.c: what user space can see */

/* The states of Documentation/netlink/kfi.yaml. */
enum kfi_helper_state {
	KFI_STATE_OPEN,
	KFI_STATE_DISABLED,
	KFI_STATE_CLOSING,
};

/* The counters of an object, by its class. They count since the object was opened. */
enum kfi_helper_domain_counter {
	/* Regions that were opened, and that are open. */
	KFI_COUNTER_OPENED,
	KFI_COUNTER_OPEN,
	/* Registrations for which the provider's pool had a device region ready, and had none. */
	KFI_COUNTER_POOL_HITS,
	KFI_COUNTER_POOL_MISSES,
	/* Calls on the domain and its objects, except reads of queues, that returned -KFI_EAGAIN. */
	KFI_COUNTER_CALL_RETRIES,
	KFI_DOMAIN_COUNTERS
};

/* Of an endpoint or a shared receive context: transfers that were posted. */
enum kfi_helper_ep_counter {
	KFI_COUNTER_SENDS,
	KFI_COUNTER_SEND_BYTES,
	KFI_COUNTER_RECEIVES,
	KFI_COUNTER_READS,
	KFI_COUNTER_READ_BYTES,
	KFI_COUNTER_WRITES,
	KFI_COUNTER_WRITE_BYTES,
	KFI_COUNTER_ATOMICS,
	/* Posts that returned -KFI_EAGAIN. */
	KFI_COUNTER_POST_RETRIES,
	KFI_EP_COUNTERS
};

enum kfi_helper_cq_counter {
	/* Entries of successful and of failed transfers. */
	KFI_COUNTER_COMPLETIONS,
	KFI_COUNTER_FAILURES,
	KFI_COUNTER_RECEIVED_BYTES,
	KFI_CQ_COUNTERS
};

#define KFI_COUNTERS	KFI_EP_COUNTERS

/* The number of calls on a domain and its objects that were refused with @err, which is positive. */
struct kfi_helper_refusals {
	u32 err;
	u64 count;
};

/* An open object. Strings can be NULL; numbers that its class doesn't have are 0. */
struct kfi_helper_object {
	const char *provider;
	const char *fabric;
	const char *domain;
	const char *owner;
	/* The number among the objects of the parent, and that of the parent. */
	u64 id;
	u64 parent;
	u64 length;
	u64 access;
	/* Of a region; KFI_KEY_NOTAVAIL without one. */
	u64 key;
	u32 class;
	enum kfi_helper_state state;
	/* Seconds since it was opened. */
	u32 age;
	u64 counters[KFI_COUNTERS];
	/* Of a domain. */
	const struct kfi_helper_refusals *refusals;
	size_t refusal_count;
};

/* trace.c: events. Callers check the static key of an event first. */
enum kfi_helper_op {
	KFI_HELPER_OP_SEND,
	KFI_HELPER_OP_RECEIVE,
	KFI_HELPER_OP_READ,
	KFI_HELPER_OP_WRITE,
	KFI_HELPER_OP_ATOMIC,
};

DECLARE_TRACEPOINT(kfi_refused);
DECLARE_TRACEPOINT(kfi_mr_register);
DECLARE_TRACEPOINT(kfi_mr_registered);
DECLARE_TRACEPOINT(kfi_mr_close);
DECLARE_TRACEPOINT(kfi_mr_closed);
DECLARE_TRACEPOINT(kfi_connect);
DECLARE_TRACEPOINT(kfi_connected);
DECLARE_TRACEPOINT(kfi_disconnected);
DECLARE_TRACEPOINT(kfi_post);
DECLARE_TRACEPOINT(kfi_complete);
DECLARE_TRACEPOINT(kfi_pool);
void kfi_helper_trace_refused(const struct kfi_helper_object *of, const char *call, int err, const char *why,
			      u64 index, u64 value);
void kfi_helper_trace_mr_register(const struct kfi_helper_object *of);
void kfi_helper_trace_mr_registered(const struct kfi_helper_object *of, int err);
void kfi_helper_trace_mr_close(const struct kfi_helper_object *of);
void kfi_helper_trace_mr_closed(const struct kfi_helper_object *of, int err);
void kfi_helper_trace_connect(const struct kfi_helper_object *of, int err);
void kfi_helper_trace_connected(const struct kfi_helper_object *of);
void kfi_helper_trace_disconnected(const struct kfi_helper_object *of, int err);
void kfi_helper_trace_post(const struct kfi_helper_object *of, enum kfi_helper_op op, u64 bytes, u64 context,
			   int err);
void kfi_helper_trace_complete(const struct kfi_helper_object *of, u64 context, u64 flags, u64 len, int err);
void kfi_helper_trace_pool(const struct kfi_helper_object *of, u32 pages, bool hit);

int kfi_helper_netlink_register(void);
void kfi_helper_netlink_unregister(void);
void kfi_helper_calling_module(char *name, size_t size);

/* slow_wait.c */
struct kfi_helper_slow_wait;
struct kfi_helper_slow_wait *kfi_helper_slow_wait_begin(const char *what);
void kfi_helper_slow_wait_end(struct kfi_helper_slow_wait *wait);
struct kfi_helper_close;
struct kfi_helper_close *kfi_helper_close_begin(void);
void kfi_helper_close_end(struct kfi_helper_close *close);
void kfi_helper_closes_init(void);
void kfi_helper_closes_exit(void);

/* in listing.rs */
void *kfi_core_listing(u32 class);
bool kfi_core_listing_get(void *listing, struct kfi_helper_object *object);
void kfi_core_listing_next(void *listing);
void kfi_core_listing_free(void *listing);

#endif /* KFABRIC_HELPERS_H */
