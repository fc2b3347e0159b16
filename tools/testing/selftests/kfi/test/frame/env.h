/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The resources that the cases of a suite share: an open domain, its extensions, a peer, and memory
 * of each kind to register.
 */
#ifndef KFI_TEST_ENV_H
#define KFI_TEST_ENV_H

#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>
#include <rdma/ib_verbs.h>

#include <kfabric.h>
#include <kfi_dma_ext.h>
#include <kfi_domain.h>
#include <kfi_loop_ext.h>
#include <kfi_peer.h>
#include <kfi_verbs_ext.h>

#include "feature.h"
#include "ktap.h"

#define KFI_REMOTE	(KFI_REMOTE_READ | KFI_REMOTE_WRITE)

/* The memory of a region. */
enum mem_kind {
	MEM_KMALLOC,
	MEM_PAGES,
	MEM_VMALLOC,
	MEM_KINDS
};

/**
 * struct kfi_env - what the cases of a suite share
 * @info: The info that the domain was opened with.
 * @fabric: The fabric.
 * @domain: The domain.
 * @dma: The DMA extension.
 * @verbs: The verbs extension.
 * @dev: The RDMA device beneath. NULL over loop, and @verbs, too.
 * @peer: A peer; NULL over loop.
 * @loop: The loopback extension, which is the peer there; else NULL.
 * @transfers: The connection whose transfers take the place of registrations, or NULL.
 * @max_pages: Pages that one region of the device can hold, or what of it is tested.
 * @at_limit: Whether that is the device's limit.
 * @max_segs: The domain's mr_iov_limit, or what of it is tested.
 * @segs_at_limit: Whether that is the domain's limit.
 * @arena: Memory of each kind: max_pages, one page more for regions that are too long, and one
 *	before and one behind that no region touches.
 * @arena_size: Its size in bytes, the same for all.
 * @scratch: The peer's side: as much again.
 * @room: How many segments there is room for in each of the lists.
 * @kv: Room for a list.
 * @bv: The same.
 * @sg: The same, as it was mapped.
 * @sg_copy: The entries of @sg that a request gives to the provider, and a test may change.
 * @refused: How many calls were refused with which errno, for the check of their events.
 */
struct kfi_env {
	struct kfi_info *info;
	struct kfid_fabric *fabric;
	struct kfid_domain *domain;
	struct kfi_dma_ops *dma;
	struct kfi_verbs_dom_ops *verbs;
	struct ib_device *dev;
	struct kfi_peer *peer;
	struct kfi_loop_ops *loop;
	struct transfers *transfers;
	size_t max_pages;
	bool at_limit;
	size_t max_segs;
	bool segs_at_limit;
	u8 *arena[MEM_KINDS];
	size_t arena_size;
	u8 *scratch;
	size_t room;
	struct kvec *kv;
	struct bio_vec *bv;
	struct scatterlist *sg;
	struct scatterlist *sg_copy;
	unsigned int refused[KFI_ERRNO_MAX];
};

/* Module parameters. */
extern unsigned long kfi_seed;
extern unsigned int kfi_scale;
extern char *kfi_domain_name;
extern bool kfi_weak;
extern bool kfi_hardware;
extern bool kfi_srq;
extern char *kfi_provider_name;
extern bool kfi_transfers;
extern char *kfi_address;

/*
 * Whether it is an iWARP device: all domains are asked for with KFI_MR_ENDPOINT, and a write that the peer
 * refuses ends well, and then the connection.
 */
extern bool kfi_iwarp;

/* Set, while a suite runs, when what it waits for was done from outside. */
extern bool kfi_go;

/* Says that objects are ready, and waits for kfi_go. In ep/observed.c. */
void wait_for_observer(struct kfi_test *t);

/* The number of allocations and driver calls that suites made to fail, each in turn (failing.h, ep/driver.h). */
extern atomic_t kfi_failures;

struct kfi_info *env_hints(void);
int env_getinfo(struct kfi_info **info);
int lists_alloc(struct kfi_env *env);
void lists_free(struct kfi_env *env);
struct kfi_env *env_open(void);
int env_close(struct kfi_env *env);
struct kfi_env *env_share(struct kfi_env *env, size_t max_pages);
void env_unshare(struct kfi_env *env);

/* Opens the fabric and the domain of @info. Returns 0, or an errno with neither open. */
static inline int env_open_domain(struct kfi_info *info, struct kfid_fabric **fabric,
				  struct kfid_domain **domain)
{
	int ret;

	ret = kfi_fabric(info->fabric_attr, fabric, NULL);
	if (ret)
		return ret;
	ret = kfi_domain(*fabric, info, domain, NULL);
	if (ret)
		kfi_close(&(*fabric)->fid);
	return ret;
}

/* @n as scaled by the module parameter, but at least 1. */
static inline unsigned int scaled(unsigned int n)
{
	return max(n * kfi_scale / 100, 1u);
}

/* Whether a DMA address tells the page: it is a kernel address, or a physical one over loop. */
static inline bool dma_tells_page(const struct kfi_env *env)
{
	return env->loop || ib_uses_virt_dma(env->dev);
}

/* The DMA address of a page, if it tells the page. */
static inline dma_addr_t dma_address_of(const struct kfi_env *env, struct page *page)
{
	return env->loop ? page_to_phys(page) : (uintptr_t)page_address(page);
}

/*
 * Are regions made of larger pages than the machine's? Hardware has hardly ever been asked for
 * these.
 */
static inline bool has_larger_pages(struct ib_device *dev)
{
	return ib_uses_virt_dma(dev) && dev->attrs.page_size_cap > PAGE_SIZE;
}

/* memory.c */
#define GUARD	64

int arenas_alloc(struct kfi_env *env);
void arenas_free(struct kfi_env *env);
void pattern_init(void);
void pattern(void *buf, size_t len, unsigned int shift);
bool pattern_is(const void *buf, size_t len, unsigned int shift);
int peer_read(struct kfi_env *env, u64 addr, u64 key, void *buf, size_t len);
int peer_write(struct kfi_env *env, u64 addr, u64 key, const void *buf, size_t len);
bool check_region(struct kfi_test *t, struct kfid_mr *mr, u8 *mem, size_t len);
bool check_refused(struct kfi_test *t, u64 iova, u64 key, u8 *mem, size_t len);

/* The place in an arena that regions begin at, @align bytes into a page. */
static inline u8 *arena_at(struct kfi_env *env, enum mem_kind kind, size_t align)
{
	return env->arena[kind] + PAGE_SIZE + align;
}

#endif /* KFI_TEST_ENV_H */
