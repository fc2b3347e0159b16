// SPDX-License-Identifier: GPL-2.0
/*
 * kfabric in C: registers kernel memory for a remote peer, by all five calls.
 *
 * The steps of a consumer, in their order:
 *
 *   kfi_getinfo()   find a provider and a device with the required features
 *   kfi_fabric()    open the fabric,
 *   kfi_domain()    and in it the device
 *   kfi_mr_reg*()   get a key and an address of the memory for the peer
 *   kfi_close()     make the device refuse the key, so that the memory is private again
 *
 * The peer is not part of kfabric. Here it is the test peer, which reads and writes over RDMA.
 * It knows only an address and a key, like a remote machine.
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

/* An odd offset, so that the memory is unaligned and crosses a page boundary. */
#define OFFSET	100
#define LEN	(PAGE_SIZE + 1000)

struct demo {
	struct kfi_info *info;
	struct kfid_fabric *fabric;
	struct kfid_domain *domain;
	struct kfi_dma_ops *dma;
	struct kfi_peer *peer;
};

/* Finds a provider with remote memory access, and opens its domain. */
static int demo_open(struct demo *demo)
{
	struct kfi_info *hints;
	void *ops;
	int ret;

	hints = kfi_allocinfo();
	if (!hints)
		return -ENOMEM;
	hints->caps = KFI_RMA | KFI_REMOTE_READ | KFI_REMOTE_WRITE;
	/* The provider may choose addresses and keys. */
	hints->domain_attr->mr_mode = KFI_MR_VIRT_ADDR | KFI_MR_PROV_KEY;
	/* The hints own the name, and free it. */
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

/* Lets the peer write and read, and checks the bytes on both sides. */
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

/* Prints a region, lets the peer use it, closes it, and checks that the device refuses its key. */
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

/* Registers one buffer. */
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

/* Registers a list of buffers, whose inner ends are page boundaries. */
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

/* Registers pages, for example those of the block layer. One bio_vec can have several. */
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

/* Registers a scatterlist. The caller maps it first, and unmaps it after the close. */
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

/* Registers memory that a structure describes: any of the four kinds. */
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
