// SPDX-License-Identifier: GPL-2.0
/* Opening, closing, and what the scripts can ask: see holder.h. */
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "holder.h"

static char *domain;
module_param(domain, charp, 0444);
MODULE_PARM_DESC(domain, "name of the domain (default: the first one)");

static char *depth = "regions";
module_param(depth, charp, 0444);
MODULE_PARM_DESC(depth, "how much to open: nothing, fabric, domain or regions");

static bool peer = true;
module_param(peer, bool, 0444);
MODULE_PARM_DESC(peer, "whether a peer uses the regions (default: yes)");

static int holder_raw_removed;
module_param_named(raw_removed, holder_raw_removed, int, 0444);
MODULE_PARM_DESC(raw_removed, "how often that of the second domain has run");

static struct holder holder;

/* Held while things of the device are opened or let go. */
static DEFINE_MUTEX(removal_lock);

static void on_removal(void *arg)
{
	struct holder *h = arg;

	mutex_lock(&removal_lock);
	regions_device_gone(h);
	holder_removed++;
	mutex_unlock(&removal_lock);
}

/* The second domain's: the peer on the first one waits for it, and keeps nobody else waiting. */
static void on_raw_removal(void *arg)
{
	struct holder *h = arg;

	mutex_lock(&removal_lock);
	if (h->peer)
		kfi_peer_let_go(h->peer);
	holder_raw_removed++;
	mutex_unlock(&removal_lock);
}

static int find(struct kfi_info **info, int mr_mode)
{
	struct kfi_info *hints = kfi_allocinfo();
	int ret;

	if (!hints)
		return -ENOMEM;
	hints->caps = KFI_RMA;
	hints->domain_attr->mr_mode = KFI_MR_VIRT_ADDR | KFI_MR_PROV_KEY | mr_mode;
	/* Only with raw keys there are as long ones. */
	hints->domain_attr->mr_key_size = mr_mode & KFI_MR_RAW ? 100 : 0;
	hints->domain_attr->name = domain ? kstrdup(domain, GFP_KERNEL) : NULL;
	hints->fabric_attr->prov_name = kstrdup("verbs", GFP_KERNEL);
	ret = kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, hints, info);
	kfi_freeinfo(hints);
	return ret;
}

static int open_peer(struct holder *h)
{
	struct ib_pd *pd;
	int ret = 0;

	mutex_lock(&removal_lock);
	pd = h->verbs->get_pd(&h->domain->fid);
	h->peer = pd ? kfi_peer_open_pd(pd) : ERR_PTR(-ENODEV);
	if (IS_ERR(h->peer)) {
		ret = PTR_ERR(h->peer);
		h->peer = NULL;
	}
	mutex_unlock(&removal_lock);
	return ret;
}

static int open_domain(struct holder *h)
{
	void *ops;
	int ret;

	ret = kfi_domain(h->fabric, h->info, &h->domain, NULL);
	if (ret)
		return ret;
	ret = kfi_open_ops(&h->domain->fid, KFI_DMA_OPS_1, 0, &ops, NULL);
	if (ret)
		return ret;
	h->dma = ops;
	ret = kfi_open_ops(&h->domain->fid, KFI_VERBS_DOM_OPS_1, 0, &ops, NULL);
	if (ret)
		return ret;
	h->verbs = ops;
	h->software = ib_uses_virt_dma(h->verbs->get_ib_device(&h->domain->fid));
	ret = h->verbs->on_removal(&h->domain->fid, on_removal, h);
	if (ret)
		return ret;
	/* After the first one, so that its callback comes after. */
	ret = kfi_domain(h->fabric, h->raw_info, &h->raw, NULL);
	if (ret)
		return ret;
	ret = h->verbs->on_removal(&h->raw->fid, on_raw_removal, h);
	if (ret)
		return ret;
	return peer ? open_peer(h) : 0;
}

/* Returns the first error; everything is closed all the same, as far as it can be. */
static int close_all(struct holder *h)
{
	int ret, first;

	churn_stop();
	first = async_stop();
	if (h->verbs) {
		h->verbs->on_removal(&h->domain->fid, NULL, h);
		if (h->raw)
			h->verbs->on_removal(&h->raw->fid, NULL, h);
	}
	kfi_peer_close(h->peer);
	ret = regions_close(h);
	first = first ?: ret;
	ret = raw_close(h);
	first = first ?: ret;
	if (h->raw) {
		ret = kfi_close(&h->raw->fid);
		first = first ?: ret;
	}
	if (h->domain) {
		ret = kfi_close(&h->domain->fid);
		first = first ?: ret;
	}
	if (h->fabric) {
		ret = kfi_close(&h->fabric->fid);
		first = first ?: ret;
	}
	kfi_freeinfo(h->info);
	kfi_freeinfo(h->raw_info);
	*h = (struct holder) {};
	return first;
}

static int open_all(struct holder *h)
{
	int ret;

	if (h->info)
		return -EBUSY;
	if (!strcmp(depth, "nothing"))
		return 0;
	ret = find(&h->info, 0);
	if (ret)
		return ret;
	ret = find(&h->raw_info, KFI_MR_RAW);
	if (ret)
		goto out;
	ret = kfi_fabric(h->info->fabric_attr, &h->fabric, NULL);
	if (ret || !strcmp(depth, "fabric"))
		goto out;
	ret = open_domain(h);
	if (ret || !strcmp(depth, "domain"))
		goto out;
	mutex_lock(&removal_lock);
	ret = regions_open(h);
	if (!ret && holder_regions)
		ret = raw_open(h);
	mutex_unlock(&removal_lock);
	if (!ret)
		ret = churn_start(h);
	if (!ret)
		ret = async_start(h);
out:
	if (ret)
		close_all(h);
	return ret;
}

/* A call on a domain whose device is gone; what it opens all the same is closed again. */
static void probe(const char *what, int ret, struct kfid *opened, int want)
{
	if (ret != want)
		UNEXPECTED("%s gives %d", what, ret);
	else if (opened)
		UNEXPECTED("%s gives %d and an object", what, ret);
	if (!ret && opened)
		kfi_close(opened);
}

static void probe_extensions(struct holder *h, void *mem)
{
	struct scatterlist sg;
	int ret;

	sg_init_one(&sg, mem, PAGE_SIZE);
	ret = h->dma->map_sg(&h->domain->fid, &sg, 1, DMA_BIDIRECTIONAL);
	probe("map_sg()", ret, NULL, -KFI_ENODEV);
	if (ret > 0)
		h->dma->unmap_sg(&h->domain->fid, &sg, 1, DMA_BIDIRECTIONAL);
	if (h->verbs->get_ib_device(&h->domain->fid) || h->verbs->get_pd(&h->domain->fid))
		UNEXPECTED("a device or a protection domain is there");
	ret = h->verbs->on_removal(&h->domain->fid, on_removal, mem);
	probe("on_removal()", ret, NULL, -KFI_ENODEV);
	if (!ret)
		h->verbs->on_removal(&h->domain->fid, NULL, mem);
}

static int probe_gone(struct holder *h)
{
	unsigned int before = holder_unexpected;
	struct kfid_domain *other;
	struct kfid_mr *mr;
	size_t size = 0;
	void *mem;
	u64 base;
	int ret;

	if (!h->domain)
		return -ENOENT;
	mem = kmalloc(PAGE_SIZE, GFP_KERNEL);
	if (!mem)
		return -ENOMEM;
	ret = kfi_mr_reg(h->domain, mem, PAGE_SIZE, ACCESS, 0, 0, 0, &mr, NULL);
	probe("kfi_mr_reg()", ret, &mr->fid, -KFI_ENODEV);
	/* Bad input is still told from that. */
	ret = kfi_mr_reg(h->domain, mem, 0, ACCESS, 0, 0, 0, &mr, NULL);
	probe("kfi_mr_reg() of nothing", ret, &mr->fid, -KFI_EINVAL);
	/* A software device couldn't when it was there. */
	if (h->raw_mr) {
		probe("kfi_mr_refresh()", kfi_mr_refresh(h->raw_mr, NULL, 0, 0), NULL,
		      h->software ? -KFI_EOPNOTSUPP : -KFI_ENODEV);
		/* Its keys lead nowhere any more. */
		ret = kfi_mr_raw_attr(h->raw_mr, &base, NULL, &size, 0);
		probe("kfi_mr_raw_attr()", ret, NULL, -KFI_ENODEV);
	}
	ret = kfi_domain(h->fabric, h->info, &other, NULL);
	probe("kfi_domain()", ret, &other->fid, -KFI_ENODEV);
	probe_extensions(h, mem);
	kfree(mem);
	return before == holder_unexpected ? 0 : -EIO;
}

/* One command at a time: open, close, probe. The write fails as the command does. */
static DEFINE_MUTEX(command_lock);

static int command(const char *what, const struct kernel_param *kp)
{
	int ret = -EINVAL;

	/* Parameters are also set while the module is being loaded. */
	if (THIS_MODULE->state != MODULE_STATE_LIVE)
		return -EINVAL;
	mutex_lock(&command_lock);
	if (sysfs_streq(what, "open"))
		ret = open_all(&holder);
	else if (sysfs_streq(what, "close"))
		ret = close_all(&holder);
	else if (sysfs_streq(what, "probe"))
		ret = probe_gone(&holder);
	mutex_unlock(&command_lock);
	if (ret)
		pr_info("kfi_holder: %.10s: %d\n", what, ret);
	return ret;
}

static const struct kernel_param_ops command_ops = { .set = command };
module_param_cb(command, &command_ops, NULL, 0200);
MODULE_PARM_DESC(command, "open, close or probe");

static int __init holder_init(void)
{
	int ret = open_all(&holder);

	if (ret)
		pr_info("kfi_holder: open: %d\n", ret);
	return ret;
}

static void __exit holder_exit(void)
{
	int ret = close_all(&holder);

	if (ret)
		pr_err("kfi_holder: closing gives %d\n", ret);
}

module_init(holder_init);
module_exit(holder_exit);
MODULE_DESCRIPTION("Keeps a kfabric domain open and busy, for the selftests");
MODULE_LICENSE("GPL");
