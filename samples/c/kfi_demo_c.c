// SPDX-License-Identifier: GPL-2.0
/*
 * kfabric in C: make kernel memory reachable for a remote peer, in all five ways.
 *
 * What happens, in the order in which a consumer does it:
 *
 *   kfi_getinfo()   which provider and device can do what is needed
 *   kfi_fabric()    open the fabric,
 *   kfi_domain()    and in it the device
 *   kfi_mr_reg*()   memory in; a key and an address for the peer out
 *   kfi_close()     after it, the key is refused and the memory is the consumer's alone
 *
 * The peer is not part of kfabric: here it is the test peer, which reads and writes over RDMA by
 * nothing but an address and a key, as a remote machine would.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>

#include <kfabric.h>
#include <kfi_dma_ext.h>
#include <kfi_domain.h>
#include <kfi_peer.h>

#define ACCESS	(KFI_REMOTE_READ | KFI_REMOTE_WRITE)

/* An odd length from an odd address on, over a page boundary: nothing needs to be aligned. */
#define OFFSET	100
#define LEN	(PAGE_SIZE + 1000)

struct demo {
	struct kfi_info *info;
	struct kfid_fabric *fabric;
	struct kfid_domain *domain;
	struct kfi_dma_ops *dma;
	struct kfi_peer *peer;
};

/* Find a provider that does remote memory access, and open its domain. */
static int demo_open(struct demo *demo)
{
	struct kfi_info *hints;
	void *ops;
	int ret;

	hints = kfi_allocinfo();
	if (!hints)
		return -ENOMEM;
	hints->caps = KFI_RMA | KFI_REMOTE_READ | KFI_REMOTE_WRITE;
	/* We can live with addresses and keys that the provider chooses. */
	hints->domain_attr->mr_mode = KFI_MR_VIRT_ADDR | KFI_MR_PROV_KEY;
	/* Belongs to the hints from here on, and is freed with them. */
	hints->fabric_attr->prov_name = kstrdup("verbs", GFP_KERNEL);
	if (!hints->fabric_attr->prov_name) {
		kfi_freeinfo(hints);
		return -ENOMEM;
	}

	ret = kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, hints, &demo->info);
	kfi_freeinfo(hints);
	if (ret)
		return ret;
	ret = kfi_fabric(demo->info->fabric_attr, &demo->fabric, NULL);
	if (ret)
		goto err_info;
	ret = kfi_domain(demo->fabric, demo->info, &demo->domain, NULL);
	if (ret)
		goto err_fabric;
	ret = kfi_open_ops(&demo->domain->fid, KFI_DMA_OPS_1, 0, &ops, NULL);
	if (ret)
		goto err_domain;
	demo->dma = ops;
	demo->peer = kfi_peer_open(demo->domain);
	if (IS_ERR(demo->peer)) {
		ret = PTR_ERR(demo->peer);
		goto err_domain;
	}
	pr_info("domain %s opened\n", demo->info->domain_attr->name);
	return 0;
err_domain:
	kfi_close(&demo->domain->fid);
err_fabric:
	kfi_close(&demo->fabric->fid);
err_info:
	kfi_freeinfo(demo->info);
	return ret;
}

static int demo_close(struct demo *demo)
{
	int ret;

	kfi_peer_close(demo->peer);
	ret = kfi_close(&demo->domain->fid);
	if (!ret)
		ret = kfi_close(&demo->fabric->fid);
	kfi_freeinfo(demo->info);
	return ret;
}

/* The peer writes what we then find in memory, and reads what we have put there. */
static int reach(struct demo *demo, struct kfid_mr *mr, u8 *mem, u8 *remote)
{
	int ret;

	memset(remote, 0x5a, LEN);
	ret = kfi_peer_write(demo->peer, mr->iova, kfi_mr_key(mr), remote, LEN);
	if (ret)
		return ret;
	if (memcmp(mem, remote, LEN))
		return -EIO;

	memset(mem, 0xc3, LEN);
	ret = kfi_peer_read(demo->peer, mr->iova, kfi_mr_key(mr), remote, LEN);
	if (ret)
		return ret;
	return memcmp(mem, remote, LEN) ? -EIO : 0;
}

/* Show a registration, have the peer use it, close it, and see that the peer is locked out. */
static int verify(struct demo *demo, const char *call, int reg_ret, struct kfid_mr *mr, u8 *mem)
{
	u64 key, iova;
	u8 *remote;
	int ret;

	if (reg_ret) {
		pr_err("%s: %s (%d)\n", call, kfi_strerror(reg_ret), reg_ret);
		return reg_ret;
	}
	key = kfi_mr_key(mr);
	iova = mr->iova;
	pr_info("%-14s key %#llx base %#llx length %lu\n", call, key, iova, LEN);

	remote = kmalloc(LEN, GFP_KERNEL);
	ret = remote ? reach(demo, mr, mem, remote) : -ENOMEM;
	if (ret)
		pr_err("%s: peer can't reach the memory (%d)\n", call, ret);

	reg_ret = kfi_close(&mr->fid);
	if (reg_ret) {
		pr_err("%s: the region doesn't close: %s\n", call, kfi_strerror(reg_ret));
		ret = reg_ret;
	}
	if (!ret && kfi_peer_read(demo->peer, iova, key, remote, LEN) != -EACCES) {
		pr_err("%s: the key is not refused after kfi_close()\n", call);
		ret = -EIO;
	}
	kfree(remote);
	return ret;
}

/* One buffer. */
static int demo_reg(struct demo *demo)
{
	u8 *buf = kmalloc(OFFSET + LEN, GFP_KERNEL);
	struct kfid_mr *mr;
	int ret;

	if (!buf)
		return -ENOMEM;
	ret = kfi_mr_reg(demo->domain, buf + OFFSET, LEN, ACCESS, 0, 0, 0, &mr, NULL);
	ret = verify(demo, "kfi_mr_reg", ret, mr, buf + OFFSET);
	kfree(buf);
	return ret;
}

/* A list of buffers: each but the first begins, and each but the last ends, at a page boundary. */
static int demo_regv(struct demo *demo)
{
	u8 *buf = vmalloc(OFFSET + LEN);
	struct kvec iov[2] = {
		{ .iov_base = buf + OFFSET, .iov_len = PAGE_SIZE - OFFSET },
		{ .iov_base = buf + PAGE_SIZE, .iov_len = LEN - (PAGE_SIZE - OFFSET) },
	};
	struct kfid_mr *mr;
	int ret;

	if (!buf)
		return -ENOMEM;
	ret = kfi_mr_regv(demo->domain, iov, 2, ACCESS, 0, 0, 0, &mr, NULL);
	ret = verify(demo, "kfi_mr_regv", ret, mr, buf + OFFSET);
	vfree(buf);
	return ret;
}

/* Pages, as the block layer has them; one bio_vec can span several. */
static int demo_regbv(struct demo *demo)
{
	struct page *pages = alloc_pages(GFP_KERNEL, 1);
	struct bio_vec bv;
	struct kfid_mr *mr;
	int ret;

	if (!pages)
		return -ENOMEM;
	bvec_set_page(&bv, pages, LEN, OFFSET);
	ret = kfi_mr_regbv(demo->domain, &bv, 1, ACCESS, 0, 0, 0, &mr, NULL);
	ret = verify(demo, "kfi_mr_regbv", ret, mr, page_address(pages) + OFFSET);
	__free_pages(pages, 1);
	return ret;
}

/* A scatterlist, which the caller maps for the domain's device and unmaps after the close. */
static int demo_regsgl(struct demo *demo)
{
	u8 *buf = kmalloc(LEN, GFP_KERNEL);
	struct scatterlist sg;
	struct kfid_mr *mr;
	int ret, n;

	if (!buf)
		return -ENOMEM;
	sg_init_one(&sg, buf, LEN);
	n = demo->dma->map_sg(&demo->domain->fid, &sg, 1, DMA_BIDIRECTIONAL);
	if (n < 0) {
		kfree(buf);
		return n;
	}
	ret = kfi_mr_regsgl(demo->domain, &sg, n, ACCESS, 0, 0, 0, &mr, NULL);
	ret = verify(demo, "kfi_mr_regsgl", ret, mr, buf);
	demo->dma->unmap_sg(&demo->domain->fid, &sg, 1, DMA_BIDIRECTIONAL);
	kfree(buf);
	return ret;
}

/* All that the other four can, described by a structure. */
static int demo_regattr(struct demo *demo)
{
	u8 *buf = kmalloc(LEN, GFP_KERNEL);
	struct kvec iov = { .iov_base = buf, .iov_len = LEN };
	struct kfi_mr_attr attr = {
		.type = KFI_KVEC,
		.mr_iov = &iov,
		.iov_count = 1,
		.access = ACCESS,
	};
	struct kfid_mr *mr;
	int ret;

	if (!buf)
		return -ENOMEM;
	ret = kfi_mr_regattr(demo->domain, &attr, 0, &mr);
	ret = verify(demo, "kfi_mr_regattr", ret, mr, buf);
	kfree(buf);
	return ret;
}

static int __init demo_init(void)
{
	static int (*const calls[])(struct demo *demo) = {
		demo_reg, demo_regv, demo_regbv, demo_regsgl, demo_regattr,
	};
	struct demo demo = {};
	int i, ret, verified = 0;

	ret = demo_open(&demo);
	if (ret) {
		pr_err("no domain: %s (%d)\n", kfi_strerror(ret), ret);
		return ret;
	}
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		ret = calls[i](&demo);
		if (!ret)
			verified++;
	}
	ret = demo_close(&demo);
	if (ret) {
		pr_err("the domain doesn't close: %s (%d)\n", kfi_strerror(ret), ret);
		return ret;
	}

	pr_info("demo: %d of %zu registration calls verified by remote write and read\n",
		verified, ARRAY_SIZE(calls));
	return verified == ARRAY_SIZE(calls) ? 0 : -EIO;
}

static void __exit demo_exit(void)
{
}

module_init(demo_init);
module_exit(demo_exit);
MODULE_DESCRIPTION("kfabric in C: registers memory in all five ways");
MODULE_LICENSE("GPL");
