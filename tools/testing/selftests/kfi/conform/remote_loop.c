// SPDX-License-Identifier: GPL-2.0
/* The loopback provider: its extension is the remote side. */
#include <kfi_loop_ext.h>

#include "conform.h"

static int loop_attach(struct place *p)
{
	return kfi_open_ops(&p->env.domain->fid, KFI_LOOP_OPS_1, 0, &p->remote, NULL);
}

static void loop_detach(struct place *p)
{
}

static unsigned int loop_connects(struct place *p)
{
	return 1;
}

static struct ib_device *loop_device(struct kfid_domain *domain)
{
	return NULL;
}

static int loop_read(struct place *p, u64 addr, u64 key, void *buf, size_t len)
{
	const struct kfi_loop_ops *ops = p->remote;

	return ops->read(p->target, p->initiator, addr, key, buf, len);
}

static int loop_write(struct place *p, u64 addr, u64 key, const void *buf, size_t len)
{
	const struct kfi_loop_ops *ops = p->remote;

	return ops->write(p->target, p->initiator, addr, key, buf, len);
}

const struct provider provider_loop = {
	.name = "loop",
	.device = loop_device,
	.mapped_keys = true,
	.attach = loop_attach,
	.detach = loop_detach,
	.connects = loop_connects,
	.read = loop_read,
	.write = loop_write,
};
