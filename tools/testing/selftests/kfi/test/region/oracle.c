// SPDX-License-Identifier: GPL-2.0
/*
 * The peer itself, without kfabric: it reaches what can be reached, and says so of what can't.
 *
 * It reaches a key for all memory here, which raw verbs still have and kfabric never gives out: so
 * no code that the other suites judge takes part.
 */
#include "env.h"
#include "suites.h"

#define LEN	(3 * KFI_PEER_CHUNK + 77)

struct oracle {
	struct ib_device *dev;
	struct ib_pd *open_pd;		/* has a key for all memory */
	struct ib_pd *closed_pd;	/* has none */
	struct kfi_peer *open_peer;
	struct kfi_peer *closed_peer;
	u8 *mem;
	u8 *remote;
	u64 dma;
};

/* The first device that fits; held until drop_device(). */
static struct ib_device *found;

static int look_at(struct ib_device *dev)
{
	if (found || (kfi_domain_name && strcmp(dev_name(&dev->dev), kfi_domain_name)))
		return -ENODEV;
	if (rdma_protocol_iwarp(dev, rdma_start_port(dev)) || !ib_device_try_get(dev))
		return -ENODEV;
	found = dev;
	return 0;
}

static void look_away(struct ib_device *dev, void *data)
{
}

static struct ib_device *find_device(void)
{
	static struct ib_client client = {
		.name = "kfi_selftest",
		.add = look_at,
		.remove = look_away,
	};

	found = NULL;
	if (!ib_register_client(&client))
		ib_unregister_client(&client);
	return found;
}

static void oracle_close(struct oracle *o)
{
	kfi_peer_close(o->open_peer);
	kfi_peer_close(o->closed_peer);
	if (o->dma)
		ib_dma_unmap_single(o->dev, o->dma, LEN + 2 * GUARD, DMA_BIDIRECTIONAL);
	if (!IS_ERR_OR_NULL(o->open_pd))
		ib_dealloc_pd(o->open_pd);
	if (!IS_ERR_OR_NULL(o->closed_pd))
		ib_dealloc_pd(o->closed_pd);
	if (o->dev)
		ib_device_put(o->dev);
	kfree(o->mem);
	kfree(o->remote);
}

static bool oracle_open(struct kfi_test *t, struct oracle *o)
{
	*o = (struct oracle) { .dev = find_device() };
	if (!EXPECT(t, o->dev, "no device"))
		return false;
	o->mem = kmalloc(LEN + 2 * GUARD, GFP_KERNEL);
	o->remote = kmalloc(LEN, GFP_KERNEL);
	o->open_pd = ib_alloc_pd(o->dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	o->closed_pd = ib_alloc_pd(o->dev, 0);
	if (!EXPECT(t, o->mem && o->remote && !IS_ERR(o->open_pd) && !IS_ERR(o->closed_pd),
		    "no memory or no protection domain"))
		goto err;
	o->dma = ib_dma_map_single(o->dev, o->mem, LEN + 2 * GUARD, DMA_BIDIRECTIONAL);
	if (!EXPECT(t, !ib_dma_mapping_error(o->dev, o->dma), "can't map")) {
		o->dma = 0;
		goto err;
	}
	o->open_peer = kfi_peer_open_pd(o->open_pd);
	o->closed_peer = kfi_peer_open_pd(o->closed_pd);
	if (EXPECT_EQ(t, PTR_ERR_OR_ZERO(o->open_peer), 0) &&
	    EXPECT_EQ(t, PTR_ERR_OR_ZERO(o->closed_peer), 0))
		return true;
err:
	oracle_close(o);
	return false;
}

/* Everything between the guards can be written and read, in any length and from any address. */
static void reaches(struct kfi_test *t, struct oracle *o, size_t from, size_t len)
{
	u32 key = o->open_pd->unsafe_global_rkey;
	u64 addr = o->dma + GUARD + from;

	pattern(o->mem, LEN + 2 * GUARD, 5);
	memset(o->remote, 0, len);
	EXPECT_EQ(t, kfi_peer_read(o->open_peer, addr, key, o->remote, len), 0);
	EXPECT(t, pattern_is(o->remote, len, 5 + GUARD + from), "read other bytes");
	pattern(o->remote, len, 1000);
	EXPECT_EQ(t, kfi_peer_write(o->open_peer, addr, key, o->remote, len), 0);
	EXPECT(t, pattern_is(o->mem + GUARD + from, len, 1000), "wrote other bytes");
	EXPECT(t, pattern_is(o->mem, GUARD + from, 5), "wrote before");
	EXPECT(t, pattern_is(o->mem + GUARD + from + len, LEN - from - len + GUARD,
			     5 + GUARD + from + len), "wrote behind");
}

static void reaches_case(struct kfi_test *t)
{
	static const size_t lengths[] = {
		1, 7, PAGE_SIZE, PAGE_SIZE + 1, KFI_PEER_CHUNK, KFI_PEER_CHUNK + 1, LEN - 3,
	};
	struct oracle o;
	int i;

	if (!oracle_open(t, &o))
		return;
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		reaches(t, &o, 0, lengths[i]);
		reaches(t, &o, 3, lengths[i]);
	}
	oracle_close(&o);
}

/* Neither a read nor a write went through, for the target's own reasons. */
static void refuses(struct kfi_test *t, struct oracle *o, struct kfi_peer *peer, u64 key)
{
	pattern(o->mem, LEN + 2 * GUARD, 5);
	EXPECT_EQ(t, kfi_peer_read(peer, o->dma, key, o->remote, 100), -EACCES);
	memset(o->remote, 0xee, 100);
	EXPECT_EQ(t, kfi_peer_write(peer, o->dma, key, o->remote, 100), -EACCES);
	EXPECT(t, pattern_is(o->mem, LEN + 2 * GUARD, 5), "a refused write changed bytes");
}

static void refuses_case(struct kfi_test *t)
{
	struct oracle o;
	u32 key;
	int i;

	if (!oracle_open(t, &o))
		return;
	key = o.open_pd->unsafe_global_rkey;
	for (i = 0; i < 32; i++) {
		refuses(t, &o, o.open_peer, key ^ BIT(i));
		if (i % 8 == 0)
			reaches(t, &o, i, 100);
	}
	/* The right key, but not of this protection domain. */
	refuses(t, &o, o.closed_peer, key);
	reaches(t, &o, 0, 100);
	oracle_close(&o);
}

/* An access that the peer can't even try is no refusal. */
static void own_errors_case(struct kfi_test *t)
{
	struct oracle o;
	u64 key;

	if (!oracle_open(t, &o))
		return;
	key = o.open_pd->unsafe_global_rkey;
	EXPECT_EQ(t, kfi_peer_read(o.open_peer, o.dma, key | BIT_ULL(32), o.remote, 1), -EINVAL);
	kfi_peer_let_go(o.closed_peer);
	EXPECT_EQ(t, kfi_peer_read(o.closed_peer, o.dma, key, o.remote, 1), -ENODEV);
	EXPECT_EQ(t, kfi_peer_write(o.closed_peer, o.dma, key, o.remote, 1), -ENODEV);
	EXPECT_EQ(t, kfi_peer_send_inv(o.closed_peer, key), -ENODEV);
	oracle_close(&o);
}

static const struct kfi_case cases[] = {
	{ "reaches", reaches_case },
	{ "refuses", refuses_case },
	{ "own_errors", own_errors_case },
};

const struct kfi_suite suite_oracle = {
	.name = "oracle",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.bare = true,
};
