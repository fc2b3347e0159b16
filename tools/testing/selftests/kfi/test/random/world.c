// SPDX-License-Identifier: GPL-2.0
/* The objects and the memory of a sequence, and how numbers become arguments. */
#include "random.h"

#define CANARY	0xc5
#define POISON	((void *)0x5a5a)
#define SMALL	64

static bool area_open(struct random_world *w)
{
	size_t size = AREA_SIZE + 2 * PAGE_SIZE;
	int i;

	w->area[0] = alloc_pages_exact(size, GFP_KERNEL);
	w->area[1] = vmalloc(size);
	if (!EXPECT(w->t, w->area[0] && w->area[1], "no memory"))
		return false;
	for (i = 0; i < 2; i++)
		memset(w->area[i], CANARY, size);
	return true;
}

/* Nothing may have touched the pages around the areas. */
void random_guards(struct random_world *w)
{
	int i;

	for (i = 0; i < 2; i++) {
		EXPECT(w->t, !memchr_inv(w->area[i], CANARY, PAGE_SIZE), "bytes before area %d changed", i);
		EXPECT(w->t, !memchr_inv(w->area[i] + PAGE_SIZE + AREA_SIZE, CANARY, PAGE_SIZE),
		       "bytes behind area %d changed", i);
	}
}

static bool map_list(struct random_world *w)
{
	struct kfid *fid = &w->p->side[0].domain->fid;
	void *ops;
	int i;

	if (!EXPECT_EQ(w->t, kfi_open_ops(fid, KFI_DMA_OPS_1, 0, &ops, NULL), 0))
		return false;
	w->dma = ops;
	sg_init_table(w->sg, AREA_PAGES);
	/* Neighbours are not merged: the list is in reverse order. */
	for (i = 0; i < AREA_PAGES; i++)
		sg_set_buf(&w->sg[i], w->area[0] + (AREA_PAGES - i) * PAGE_SIZE, PAGE_SIZE);
	w->mapped = w->dma->map_sg(fid, w->sg, AREA_PAGES, DMA_BIDIRECTIONAL);
	return EXPECT(w->t, w->mapped > 0, "map_sg() gives %d", w->mapped);
}

static void take_pair(struct random_world *w)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct ep_side *s = &w->p->side[i];

		w->object[FABRIC][w->fixed[FABRIC]++] = s->fabric;
		w->object[DOMAIN][w->fixed[DOMAIN]++] = s->domain;
		w->object[EQ][w->fixed[EQ]++] = s->eq;
		w->object[CQ][w->fixed[CQ]++] = s->tx;
		w->object[CQ][w->fixed[CQ]++] = s->rx;
		w->object[EP][w->fixed[EP]++] = s->ep;
	}
	w->object[PEP][w->fixed[PEP]++] = w->p->pep;
}

/* Registers a whole area at a side, so that most accesses succeed. */
static bool region_open(struct random_world *w, unsigned int n)
{
	struct ep_side *s = &w->p->side[n];
	struct kfid_mr *mr;

	if (!EXPECT_EQ(w->t, kfi_mr_reg(s->domain, w->area[n] + PAGE_SIZE, AREA_SIZE, RANDOM_RIGHTS, 0, n + 1, 0,
						&mr, NULL), 0))
		return false;
	w->object[MR][n] = mr;
	w->fixed[MR]++;
	return !(w->p->info->domain_attr->mr_mode & KFI_MR_ENDPOINT) ||
	       (EXPECT_EQ(w->t, kfi_mr_bind(mr, &s->ep->fid, 0), 0) && EXPECT_EQ(w->t, kfi_mr_enable(mr), 0));
}

struct random_world *random_open(struct kfi_test *t, unsigned int mode)
{
	static const int modes[] = { EP_MODE, EP_MODE | KFI_MR_ENDPOINT, EP_MODE | KFI_MR_LOCAL };
	struct ep_wants wants = {
		.tx_size = 16,
		.rx_size = 16,
		.mr_mode = modes[mode % ARRAY_SIZE(modes)],
		.caps = KFI_MSG | KFI_RMA | KFI_ATOMIC,
	};
	struct random_world *w = kzalloc_obj(*w);

	if (!EXPECT(t, w, "no memory"))
		return NULL;
	w->t = t;
	if (!area_open(w))
		goto err;
	w->p = ep_connected(t, &wants);
	if (!w->p)
		goto err;
	take_pair(w);
	if (map_list(w) && region_open(w, 0) && region_open(w, 1))
		return w;
err:
	random_close(w);
	return NULL;
}

static void close_objects(struct random_world *w, enum random_kind kind)
{
	int i;

	for (i = kind == MR ? 0 : w->fixed[kind]; i < RANDOM_OBJECTS; i++)
		if (w->object[kind][i])
			EXPECT_EQ(w->t, kfi_close(w->object[kind][i]), 0);
}

/* Closes all objects. Each close must succeed. */
void random_close(struct random_world *w)
{
	static const enum random_kind order[] = { EP, PEP, SRX, MR, CNTR, CQ, EQ };
	int i;

	/* Transfers under way use regions and memory. */
	for (i = 0; w->p && i < 2; i++) {
		if (w->p->side[i].ep)
			EXPECT_EQ(w->t, kfi_close(&w->p->side[i].ep->fid), 0);
		w->p->side[i].ep = NULL;
	}
	for (i = 0; i < ARRAY_SIZE(order); i++)
		close_objects(w, order[i]);
	for (i = 0; i < ARRAY_SIZE(w->raw); i++)
		if (w->raw[i])
			EXPECT_EQ(w->t, kfi_mr_unmap_key(w->p->side[i % 2].domain, w->raw[i]), 0);
	close_objects(w, DOMAIN);
	close_objects(w, FABRIC);
	kfi_freeinfo(w->request);
	if (w->mapped > 0)
		w->dma->unmap_sg(&w->p->side[0].domain->fid, w->sg, AREA_PAGES, DMA_BIDIRECTIONAL);
	if (w->p)
		ep_pair_close(w->t, w->p);
	if (w->area[0] && w->area[1])
		random_guards(w);
	if (w->area[0])
		free_pages_exact(w->area[0], AREA_SIZE + 2 * PAGE_SIZE);
	vfree(w->area[1]);
	kfree(w);
}

/*
 * Selects an object of a kind, open or not, or an error pointer. The output pointer of the same call may have been
 * selected before, as the order of arguments is the compiler's choice: there is no object yet.
 */
void *random_any(struct random_world *w, enum random_kind kind, u16 a)
{
	void *object = w->object[kind][a % RANDOM_OBJECTS];

	if (a % 64 == 63)
		return ERR_PTR(-ENODEV);
	return object == POISON ? NULL : object;
}

/* The same for the object of the call, which must be one. */
void *random_object(struct random_world *w, enum random_kind kind, u16 a)
{
	void *object = random_any(w, kind, a);

	/* Mostly one of those that are always there. */
	if (!object && a % 3)
		object = w->object[kind][a % max(w->fixed[kind], 1U)];
	if (IS_ERR_OR_NULL(object))
		w->want = -KFI_EINVAL;
	return object;
}

/* Selects an object of any kind. Every object begins with its fid. */
struct kfid *random_fid(struct random_world *w, u16 a)
{
	return random_any(w, (a >> 6) % RANDOM_KINDS, a);
}

/* Selects an output pointer. Returns NULL, which calls refuse, if there is an object already. */
void *random_place(struct random_world *w, enum random_kind kind, u16 a)
{
	unsigned int n = w->fixed[kind] + a % (RANDOM_OBJECTS - w->fixed[kind]);

	if (w->object[kind][n]) {
		w->want = -KFI_EINVAL;
		return NULL;
	}
	w->out = &w->object[kind][n];
	*w->out = POISON;
	return w->out;
}

/* Returns flags of @valid, and now and then one bit of any kind, or all. */
u64 random_flags(u16 a, u64 valid)
{
	if (a == U16_MAX)
		return U64_MAX;
	return a % 8 ? valid & (a | (u64)a << 16 | (u64)a << 48) : valid ^ BIT_ULL(a >> 3 & 63);
}

/* Returns a buffer and its length: mostly memory of an area, else memory that nobody may use. */
void *random_buffer(struct random_world *w, u16 a, u16 b, size_t *len)
{
	size_t at = (a >> 4) * 29 % (AREA_SIZE - 2 * PAGE_SIZE);
	u8 *area = w->area[a % 2] + PAGE_SIZE;

	switch (b % 16) {
	case 0:
		*len = 0;
		break;
	case 1:
		*len = SIZE_MAX - (b >> 4);
		break;
	case 2:
		*len = BIT_ULL(40 + (b >> 4) % 24);
		break;
	case 3:
		/* A message of this length is longer than most receives. */
		*len = 1 + (b >> 4) * (b >> 6 & 3) % (AREA_SIZE - at);
		break;
	default:
		*len = 1 + (b >> 4) % SMALL;
	}
	switch (a % 32) {
	case 0:
		return NULL;
	case 1:
		return (void *)PAGE_SIZE;
	case 2:
		return PTR_ALIGN_DOWN((void *)kfree, PAGE_SIZE);
	case 3:
		return (void *)BIT(62);
	case 4:
		return ERR_PTR(-64);
	case 5:
		/* As far as the guard page that vmalloc() leaves. */
		*len = min(*len, PAGE_SIZE);
		return w->area[1] + AREA_SIZE + 2 * PAGE_SIZE;
	default:
		return area + at;
	}
}

/* Returns a number for each entry of a list. */
static u16 mixed(u16 a, unsigned int i)
{
	return i ? a * 40503u + i * 12289u : a;
}

/* Makes a buffer longer than most messages, if it is a good one. */
size_t random_longer(size_t len)
{
	return len - 1 < SMALL ? len + RANDOM_LIST * SMALL : len;
}

static size_t list_length(u16 a)
{
	return a % 16 ? a % 4 + 1 : a / 16 % RANDOM_LIST;
}

/* Makes a list of buffers, most of them good. Returns its length. */
size_t random_kvecs(struct random_world *w, u16 a, u16 b)
{
	size_t count = list_length(b), i;

	for (i = 0; i < count; i++)
		w->kv[i].iov_base = random_buffer(w, mixed(a, i), mixed(b, i), &w->kv[i].iov_len);
	return count;
}

/* Makes a list of parts of pages, most of them good. Returns its length. */
size_t random_bvecs(struct random_world *w, u16 a, u16 b)
{
	size_t count = list_length(b), i, at, len;

	for (i = 0; i < count; i++) {
		u16 n = mixed(a, i);
		struct page *page = virt_to_page(w->area[0] + PAGE_SIZE);

		at = n % AREA_SIZE;
		len = 1 + mixed(b, i) % (AREA_SIZE - at);
		if (n % 64 == 0)
			page = NULL;
		if (n % 64 == 1)
			page = ERR_PTR(-ENOMEM);
		if (n % 64 == 2)
			len = 0;
		if (n % 64 == 3)
			len = U32_MAX;
		bvec_set_page(&w->bv[i], page, len, at);
	}
	return count;
}

/* Returns the descriptor of a region, NULL, or an invalid descriptor. */
void *random_desc(struct random_world *w, u16 a)
{
	return a % 32 == 31 ? POISON : a % 4 == 0 ? kfi_mr_desc(random_any(w, MR, a >> 2)) : NULL;
}

/* Returns where a region begins. */
struct random_target random_target(struct kfid_mr *mr)
{
	return (struct random_target) { .addr = mr->iova, .key = kfi_mr_key(mr) };
}
