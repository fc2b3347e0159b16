// SPDX-License-Identifier: GPL-2.0
/*
 * A consumer as they are written for the existing kfabric 1.7: one that has the other side put data
 * straight into its pages, or take it from there. It uses documented names of API 1.7 only, nothing
 * of this project's own but the test peer, and tolerates what providers differ in:
 *
 *   - regions that must be bound to an endpoint and enabled, or need neither,
 *   - keys that it chooses, or that the provider chooses,
 *   - addresses that begin at 0, or elsewhere.
 *
 * It must compile and work unchanged over each provider. Only its other side differs: the test peer,
 * or the loopback provider's extension.
 */
#include <linux/bvec.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>

#include <kfabric.h>
#include <kfi_domain.h>
#include <kfi_endpoint.h>
#include <kfi_eq.h>
#include <kfi_errno.h>
#include <kfi_loop_ext.h>
#include <kfi_rma.h>
#include <kfi_tagged.h>

#include "kfi_peer.h"

#define PAGES	4

static char *provider = "verbs";
module_param(provider, charp, 0444);
MODULE_PARM_DESC(provider, "name of the provider (default: verbs)");

/* Regions that had to be bound: told, so that a script can ask for it. */
static unsigned int bound;
module_param(bound, uint, 0444);
MODULE_PARM_DESC(bound, "how many regions had to be bound to an endpoint");

struct consumer {
	/* The offers, and the one that is used. */
	struct kfi_info *offers;
	struct kfi_info *info;
	struct kfid_fabric *fabric;
	struct kfid_domain *domain;
	/* Where regions must be bound to one. */
	struct kfid_ep *ep;
	/* The other side: one of them. */
	struct kfi_peer *peer;
	struct kfi_loop_ops *loop;
	u32 next_key;
};

/* A bulk transfer: the pages, and the region that the other side reaches them by. */
struct transaction {
	struct page *pages[PAGES];
	struct bio_vec biov[PAGES];
	struct kvec iov[PAGES];
	struct kfid_mr *mr;
	u64 mr_key;
};

/* Regions of an endpoint's own are preferred, where they are offered. */
static struct kfi_info *choose(struct kfi_info *offers)
{
	struct kfi_info *info;

	for (info = offers; info; info = info->next)
		if (info->domain_attr->mr_mode & KFI_MR_ENDPOINT)
			return info;
	return offers;
}

static int open_other_side(struct consumer *dev)
{
	void *ops;
	int rc;

	if (strcmp(provider, "loop")) {
		dev->peer = kfi_peer_open(dev->domain);
		return PTR_ERR_OR_ZERO(dev->peer);
	}
	rc = kfi_open_ops(&dev->domain->fid, KFI_LOOP_OPS_1, 0, &ops, NULL);
	dev->loop = rc ? NULL : ops;
	return rc;
}

/* Through the endpoint, if there is one. */
static struct kfid *target(struct consumer *dev)
{
	return dev->ep ? &dev->ep->fid : &dev->domain->fid;
}

static int other_side_reads(struct consumer *dev, u64 addr, u64 key, void *buf, size_t len)
{
	if (dev->loop)
		return dev->loop->read(target(dev), target(dev), addr, key, buf, len);
	return kfi_peer_read(dev->peer, addr, key, buf, len);
}

static int other_side_writes(struct consumer *dev, u64 addr, u64 key, const void *buf, size_t len)
{
	if (dev->loop)
		return dev->loop->write(target(dev), target(dev), addr, key, buf, len);
	return kfi_peer_write(dev->peer, addr, key, buf, len);
}

static int consumer_open(struct consumer *dev)
{
	struct kfi_info *hints;
	int rc;

	hints = kfi_allocinfo();
	if (!hints)
		return -ENOMEM;
	hints->caps = KFI_RMA | KFI_REMOTE_READ | KFI_REMOTE_WRITE;
	hints->domain_attr->mr_mode = KFI_MR_ENDPOINT | KFI_MR_VIRT_ADDR | KFI_MR_PROV_KEY;
	hints->domain_attr->mr_iov_limit = PAGES;
	hints->domain_attr->mr_key_size = sizeof(int);
	hints->fabric_attr->prov_version = KFI_VERSION(1, 0);
	hints->fabric_attr->prov_name = kstrdup(provider, GFP_KERNEL);
	if (!hints->fabric_attr->prov_name) {
		rc = -ENOMEM;
		goto free_hints;
	}

	rc = kfi_getinfo(KFI_VERSION(KFI_MAJOR_VERSION, KFI_MINOR_VERSION), NULL, NULL, 0, hints,
			 &dev->offers);
	if (rc)
		goto free_hints;
	dev->info = choose(dev->offers);
	rc = kfi_fabric(dev->info->fabric_attr, &dev->fabric, dev);
	if (rc)
		goto free_info;
	rc = kfi_domain(dev->fabric, dev->info, &dev->domain, dev);
	if (rc)
		goto close_fabric;
	if (dev->info->domain_attr->mr_mode & KFI_MR_ENDPOINT) {
		rc = kfi_endpoint(dev->domain, dev->info, &dev->ep, dev);
		if (rc)
			goto close_domain;
		rc = kfi_enable(dev->ep);
		if (rc)
			goto close_ep;
	}
	rc = open_other_side(dev);
	if (rc)
		goto close_ep;
	kfi_freeinfo(hints);
	return 0;

close_ep:
	if (dev->ep)
		kfi_close(&dev->ep->fid);
close_domain:
	kfi_close(&dev->domain->fid);
close_fabric:
	kfi_close(&dev->fabric->fid);
free_info:
	kfi_freeinfo(dev->offers);
free_hints:
	kfi_freeinfo(hints);
	return rc;
}

static int consumer_close(struct consumer *dev)
{
	int rc = 0;

	if (dev->peer)
		kfi_peer_close(dev->peer);
	if (dev->ep)
		rc = kfi_close(&dev->ep->fid);
	if (!rc)
		rc = kfi_close(&dev->domain->fid);
	if (!rc)
		rc = kfi_close(&dev->fabric->fid);
	kfi_freeinfo(dev->offers);
	return rc;
}

static void transaction_free(struct transaction *tn)
{
	int i;

	for (i = 0; i < PAGES; i++)
		if (tn->pages[i])
			__free_page(tn->pages[i]);
	kfree(tn);
}

static struct transaction *transaction_alloc(void)
{
	struct transaction *tn = kzalloc_obj(*tn);
	int i;

	if (!tn)
		return NULL;
	for (i = 0; i < PAGES; i++) {
		tn->pages[i] = alloc_page(GFP_KERNEL);
		if (!tn->pages[i]) {
			transaction_free(tn);
			return NULL;
		}
		tn->biov[i].bv_page = tn->pages[i];
		tn->biov[i].bv_len = PAGE_SIZE;
		tn->biov[i].bv_offset = 0;
		tn->iov[i].iov_base = page_address(tn->pages[i]);
		tn->iov[i].iov_len = PAGE_SIZE;
	}
	return tn;
}

/* Register, then bind and enable where the provider wants that. */
static int transaction_register(struct consumer *dev, struct transaction *tn, u64 access, bool biov)
{
	int rc;

	tn->mr_key = dev->next_key++;
	if (biov)
		rc = kfi_mr_regbv(dev->domain, tn->biov, PAGES, access, 0, tn->mr_key, 0, &tn->mr,
				  tn);
	else
		rc = kfi_mr_regv(dev->domain, tn->iov, PAGES, access, 0, tn->mr_key, 0, &tn->mr,
				 tn);
	if (rc) {
		pr_err("consumer17: registration failed: %s\n", kfi_strerror(-rc));
		return rc;
	}

	if (dev->ep) {
		rc = kfi_mr_bind(tn->mr, &dev->ep->fid, 0);
		if (!rc)
			rc = kfi_mr_enable(tn->mr);
		if (rc) {
			kfi_close(&tn->mr->fid);
			return rc;
		}
		bound++;
	}
	if (dev->info->domain_attr->mr_mode & KFI_MR_PROV_KEY)
		tn->mr_key = kfi_mr_key(tn->mr);
	return 0;
}

/* The other side does what it was told the key for, and can't do the opposite. */
static int transaction_transfer(struct consumer *dev, struct transaction *tn, u64 access)
{
	bool sink = access == KFI_REMOTE_WRITE;
	u8 *remote = vmalloc(PAGES * PAGE_SIZE);
	int i, rc;

	if (!remote)
		return -ENOMEM;
	for (i = 0; i < PAGES; i++)
		memset(page_address(tn->pages[i]), 'a' + i, PAGE_SIZE);
	memset(remote, 'z', PAGES * PAGE_SIZE);

	if (sink)
		rc = other_side_reads(dev, tn->mr->iova, tn->mr_key, remote, 1);
	else
		rc = other_side_writes(dev, tn->mr->iova, tn->mr_key, remote, 1);
	if (rc != -EACCES) {
		rc = rc ?: -EPERM;
		goto out;
	}

	if (sink)
		rc = other_side_writes(dev, tn->mr->iova, tn->mr_key, remote, PAGES * PAGE_SIZE);
	else
		rc = other_side_reads(dev, tn->mr->iova, tn->mr_key, remote, PAGES * PAGE_SIZE);
	for (i = 0; !rc && i < PAGES; i++)
		if (memchr_inv(page_address(tn->pages[i]), sink ? 'z' : 'a' + i, PAGE_SIZE) ||
		    memcmp(page_address(tn->pages[i]), remote + i * PAGE_SIZE, PAGE_SIZE))
			rc = -EIO;
out:
	vfree(remote);
	return rc;
}

static int transaction_run(struct consumer *dev, u64 access, bool biov)
{
	struct transaction *tn = transaction_alloc();
	int rc, rc2;

	if (!tn)
		return -ENOMEM;
	rc = transaction_register(dev, tn, access, biov);
	if (!rc) {
		rc = transaction_transfer(dev, tn, access);
		rc2 = kfi_close(&tn->mr->fid);
		rc = rc ?: rc2;
	}
	transaction_free(tn);
	if (rc)
		pr_err("consumer17: %s of %s failed: %d\n",
		       access == KFI_REMOTE_WRITE ? "put" : "get", biov ? "pages" : "buffers", rc);
	return rc;
}

static int __init consumer_init(void)
{
	struct consumer dev = {};
	int i, rc, rc2;

	rc = consumer_open(&dev);
	if (rc) {
		pr_err("consumer17: no domain: %s\n", kfi_strerror(-rc));
		return rc;
	}
	for (i = 0; !rc && i < 16; i++)
		rc = transaction_run(&dev, i & 1 ? KFI_REMOTE_WRITE : KFI_REMOTE_READ, i & 2);
	rc2 = consumer_close(&dev);
	rc = rc ?: rc2;
	if (!rc)
		pr_info("consumer17: %d transfers\n", i);
	return rc;
}

static void __exit consumer_exit(void)
{
}

module_init(consumer_init);
module_exit(consumer_exit);
MODULE_DESCRIPTION("kfabric 1.7 consumer, for the selftests");
MODULE_LICENSE("GPL");
