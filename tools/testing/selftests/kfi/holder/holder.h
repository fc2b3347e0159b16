/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfi_holder.ko: a consumer that keeps things open and busy while a script takes modules and
 * devices away from it.
 */
#ifndef KFI_HOLDER_H
#define KFI_HOLDER_H

#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>

#include <kfabric.h>
#include <kfi_dma_ext.h>
#include <kfi_domain.h>
#include <kfi_peer.h>
#include <kfi_verbs_ext.h>

#define ACCESS		(KFI_REMOTE_READ | KFI_REMOTE_WRITE)
#define REGION_LEN	(3 * PAGE_SIZE)

/**
 * struct holder - what is open
 * @info: The info that it was opened with; NULL when nothing is open.
 * @fabric: The fabric.
 * @domain: The domain, or NULL.
 * @dma: The domain's DMA extension.
 * @verbs: The domain's verbs extension.
 * @software: Whether its device is a software device.
 * @peer: The threads' common peer, on the domain's protection domain, or NULL.
 * @mapped: A list that is mapped for the device, in one entry, or NULL.
 * @mapped_mr: The region on it, or NULL.
 * @raw_info: The info that the second domain was opened with, one with raw keys.
 * @raw: The second domain, or NULL.
 * @raw_mr: A region of several pieces in it, or NULL.
 * @raw_mem: Its memory.
 */
struct holder {
	struct kfi_info *info;
	struct kfid_fabric *fabric;
	struct kfid_domain *domain;
	struct kfi_dma_ops *dma;
	struct kfi_verbs_dom_ops *verbs;
	bool software;
	struct kfi_peer *peer;
	struct scatterlist *mapped;
	struct kfid_mr *mapped_mr;
	struct kfi_info *raw_info;
	struct kfid_domain *raw;
	struct kfid_mr *raw_mr;
	u8 *raw_mem;
};

/* Module parameters: what is asked for, and what has happened. */
extern unsigned int holder_regions;
extern unsigned int holder_threads;
extern bool holder_async;
extern unsigned int holder_rounds;
extern unsigned int holder_enodev;
extern unsigned int holder_failed;
extern unsigned int holder_unexpected;
extern unsigned int holder_peer_errors;
extern int holder_removed;

/* Something came out that must not. Printed once each time, counted always. */
#define UNEXPECTED(fmt, ...)							\
do {										\
	if (holder_unexpected++ < 20)						\
		pr_err("kfi_holder: unexpected: " fmt "\n", ##__VA_ARGS__);	\
} while (0)

/* regions.c: regions that stay open. */
int regions_open(struct holder *h);
void regions_device_gone(struct holder *h);
int regions_close(struct holder *h);

int raw_open(struct holder *h);
int raw_close(struct holder *h);

/* churn.c: threads that register and close. */
int churn_start(struct holder *h);
void churn_stop(void);

/* async.c: a thread that registers asynchronously. */
int async_start(struct holder *h);
int async_stop(void);

#endif /* KFI_HOLDER_H */
