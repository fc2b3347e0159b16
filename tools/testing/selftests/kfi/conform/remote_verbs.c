// SPDX-License-Identifier: GPL-2.0
/* The verbs provider: its remote side is the test peer. */
#include "conform.h"

static int verbs_attach(struct place *p)
{
	struct kfi_peer *peer = kfi_peer_open(p->env.domain);

	p->remote = IS_ERR(peer) ? NULL : peer;
	return PTR_ERR_OR_ZERO(peer);
}

static void verbs_detach(struct place *p)
{
	kfi_peer_close(p->remote);
}

static unsigned int verbs_connects(struct place *p)
{
	return kfi_peer_connects(p->remote);
}

/* A key that doesn't fit into what verbs have for it reaches nothing. */
static bool is_verbs_key(u64 key)
{
	return key == (u32)key;
}

static int verbs_read(struct place *p, u64 addr, u64 key, void *buf, size_t len)
{
	return is_verbs_key(key) ? kfi_peer_read(p->remote, addr, key, buf, len) : -EACCES;
}

static int verbs_write(struct place *p, u64 addr, u64 key, const void *buf, size_t len)
{
	return is_verbs_key(key) ? kfi_peer_write(p->remote, addr, key, buf, len) : -EACCES;
}

static struct ib_device *verbs_device(struct kfid_domain *domain)
{
	void *ops;

	if (kfi_open_ops(&domain->fid, KFI_VERBS_DOM_OPS_1, 0, &ops, NULL))
		return NULL;
	return ((struct kfi_verbs_dom_ops *)ops)->get_ib_device(&domain->fid);
}

const struct provider provider_verbs = {
	.name = "verbs",
	.device = verbs_device,
	.attach = verbs_attach,
	.detach = verbs_detach,
	.connects = verbs_connects,
	.read = verbs_read,
	.write = verbs_write,
};
