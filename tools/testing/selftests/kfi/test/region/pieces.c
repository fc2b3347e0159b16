// SPDX-License-Identifier: GPL-2.0
/*
 * Regions that are several to the device (KFI_MR_RAW): which pieces come of which list, and that
 * they come and go together. The suite conform checks the obligations of any provider for these.
 */
#include <linux/mm.h>
#include <kfi_batch_ext.h>
#include <kfi_raw_ext.h>

#include "failing.h"
#include "kfi_inject.h"
#include "request.h"
#include "suites.h"

/* A domain with raw keys, a peer for it, and the raw key that was taken last. */
struct raw_domain {
	struct kfi_info *info;
	struct kfid_fabric *fabric;
	struct kfid_domain *domain;
	struct kfi_peer *peer;
	struct kfi_raw_key *key;
};

static void raw_close(struct kfi_test *t, struct raw_domain *d)
{
	if (!IS_ERR_OR_NULL(d->peer))
		kfi_peer_close(d->peer);
	if (d->domain)
		EXPECT_EQ(t, kfi_close(&d->domain->fid), 0);
	if (d->fabric)
		EXPECT_EQ(t, kfi_close(&d->fabric->fid), 0);
	kfi_freeinfo(d->info);
	kvfree(d->key);
}

static bool raw_open(struct kfi_test *t, struct raw_domain *d)
{
	struct kfi_info *hints = env_hints();
	int ret = -ENOMEM;

	*d = (struct raw_domain) {};
	d->key = kvzalloc(KFI_RAW_KEY_SIZE(KFI_RAW_KEY_MOST), GFP_KERNEL);
	if (hints && d->key) {
		hints->domain_attr->mr_mode |= KFI_MR_RAW;
		/* More than an offer without raw keys has. */
		hints->domain_attr->mr_key_size = KFI_RAW_KEY_SIZE(1);
		ret = kfi_getinfo(KFI_VERSION(1, 7), NULL, NULL, 0, hints, &d->info);
	}
	kfi_freeinfo(hints);
	if (!ret)
		ret = env_open_domain(d->info, &d->fabric, &d->domain);
	if (!ret) {
		d->peer = kfi_peer_open(d->domain);
		ret = PTR_ERR_OR_ZERO(d->peer);
	}
	if (EXPECT_EQ(t, ret, 0))
		return true;
	raw_close(t, d);
	return false;
}

/* Take the raw key of a region that must have @pieces pieces with @total bytes. */
static bool take(struct kfi_test *t, struct raw_domain *d, struct kfid_mr *mr, size_t pieces,
		 u64 total)
{
	size_t size = KFI_RAW_KEY_SIZE(KFI_RAW_KEY_MOST);
	u64 base;

	EXPECT(t, kfi_mr_key(mr) == KFI_KEY_NOTAVAIL, "a plain key");
	if (!EXPECT_EQ(t, kfi_mr_raw_attr(mr, &base, (u8 *)d->key, &size, 0), 0))
		return false;
	EXPECT_EQ(t, le64_to_cpu(d->key->total), total);
	return EXPECT_EQ(t, le32_to_cpu(d->key->count), pieces) &&
	       EXPECT_EQ(t, size, KFI_RAW_KEY_SIZE(pieces));
}

static u64 key_of(struct raw_domain *d, size_t i)
{
	return le64_to_cpu(d->key->piece[i].rkey);
}

static u64 base_of(struct raw_domain *d, size_t i)
{
	return le64_to_cpu(d->key->piece[i].base);
}

static size_t length_of(struct raw_domain *d, size_t i)
{
	return le64_to_cpu(d->key->piece[i].length);
}

/* The peer reaches piece @i at @mem, a few bytes from its start and at its end, and none beyond. */
static void check_piece(struct kfi_test *t, struct raw_domain *d, size_t i, u8 *mem)
{
	size_t len = length_of(d, i), n = min(len, 40);
	u64 base = base_of(d, i), key = key_of(d, i);
	u8 *there = t->env->scratch;

	pattern(mem, n, i);
	EXPECT_EQ(t, kfi_peer_read(d->peer, base, key, there, n), 0);
	EXPECT(t, pattern_is(there, n, i), "piece %zu begins elsewhere", i);
	pattern(there, n, i + 1);
	EXPECT_EQ(t, kfi_peer_write(d->peer, base + len - n, key, there, n), 0);
	EXPECT(t, pattern_is(mem + len - n, n, i + 1), "piece %zu ends elsewhere", i);
}

static void check_ends(struct kfi_test *t, struct raw_domain *d, size_t i)
{
	u64 base = base_of(d, i), key = key_of(d, i);

	EXPECT_EQ(t, kfi_peer_read(d->peer, base - 1, key, t->env->scratch, 1), -EACCES);
	EXPECT_EQ(t, kfi_peer_read(d->peer, base + length_of(d, i), key, t->env->scratch, 1),
		  -EACCES);
}

static void check_all_refused(struct kfi_test *t, struct raw_domain *d)
{
	size_t i, n = le32_to_cpu(d->key->count);

	/* A refusal costs a connection. */
	for (i = 0; i < n; i += max(n / 50, 1))
		EXPECT_EQ(t, kfi_peer_read(d->peer, base_of(d, i), key_of(d, i), t->env->scratch,
					   1), -EACCES);
	EXPECT_EQ(t, kfi_peer_read(d->peer, base_of(d, n - 1), key_of(d, n - 1), t->env->scratch,
				   1), -EACCES);
}

static int regv(struct raw_domain *d, const struct kvec *list, size_t n, struct kfid_mr **mr)
{
	return kfi_mr_regv(d->domain, list, n, KFI_REMOTE, 0, 0, 0, mr, NULL);
}

/* Two buffers at every kind of alignment, with a gap between them or without. */
static void alignment_case(struct kfi_test *t)
{
	static const size_t ends[] = { 1, 7, 63, 64, 511, 2048, 4033, 4095, 4096 };
	u8 *mem = arena_at(t->env, MEM_VMALLOC, 0);
	struct raw_domain d;
	struct kfid_mr *mr;
	int i, j;

	if (!raw_open(t, &d))
		return;
	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		for (j = 0; j < ARRAY_SIZE(ends) && !t->failures; j++) {
			/* The first ends where ends[i] says, the second begins where ends[j] does. */
			size_t first = PAGE_SIZE + ends[i] - 5, second = 300 + PAGE_SIZE - ends[j];
			struct kvec list[] = {
				{ mem + 5, first },
				{ mem + 3 * PAGE_SIZE + ends[j] % PAGE_SIZE, second },
			};
			bool gap = ends[i] % PAGE_SIZE || ends[j] % PAGE_SIZE;

			if (!EXPECT_EQ(t, regv(&d, list, 2, &mr), 0))
				break;
			if (take(t, &d, mr, gap ? 2 : 1, first + second) && gap) {
				check_piece(t, &d, 0, list[0].iov_base);
				check_piece(t, &d, 1, list[1].iov_base);
				if (i == j) {
					check_ends(t, &d, 0);
					check_ends(t, &d, 1);
				}
			}
			EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		}
	}
	raw_close(t, &d);
}

/* One page more than a region of the device can hold makes two of them. */
static void page_limit_case(struct kfi_test *t)
{
	size_t most = t->env->dev->attrs.max_fast_reg_page_list_len, pages, want;
	size_t i, into, done;
	struct raw_domain d;
	struct kfid_mr *mr;
	u8 *mem;

	if (most > 4096)
		return ktap_skip(t, "the device's limit is too large to be reached here");
	if (!raw_open(t, &d))
		return;
	mem = vmalloc((3 * most + 2) * PAGE_SIZE);
	for (pages = most; mem && pages <= 3 * most; pages += pages % most ? most - 1 : 1) {
		for (into = 0; into < 2; into++) {
			if (!EXPECT_EQ(t, kfi_mr_reg(d.domain, mem + into, pages * PAGE_SIZE,
						     KFI_REMOTE, 0, 0, 0, &mr, NULL), 0))
				goto out;
			want = DIV_ROUND_UP(pages + into, most);
			if (take(t, &d, mr, want, pages * PAGE_SIZE))
				for (i = 0, done = 0; i < want; done += length_of(&d, i++))
					check_piece(t, &d, i, mem + into + done);
			EXPECT_EQ(t, kfi_close(&mr->fid), 0);
			check_all_refused(t, &d);
		}
	}
out:
	EXPECT(t, mem, "no memory");
	vfree(mem);
	raw_close(t, &d);
}

/* A large buffer is one region: a gigabyte, or a quarter of what the machine has left. */
static void gigabyte_case(struct kfi_test *t)
{
	size_t most = t->env->dev->attrs.max_fast_reg_page_list_len;
	size_t size = min_t(u64, SZ_1G, (u64)si_mem_available() * PAGE_SIZE / 4) & PAGE_MASK;
	struct raw_domain d;
	struct kfid_mr *mr;
	size_t i, done, n;
	u8 *mem;

	if (!raw_open(t, &d))
		return;
	mem = vmalloc(size);
	if (!EXPECT(t, mem, "no memory"))
		goto out;
	n = DIV_ROUND_UP(size / PAGE_SIZE, most);
	ktap_note("gigabyte: %zu MiB, %zu pieces", size >> 20, n);
	if (!EXPECT_EQ(t, kfi_mr_reg(d.domain, mem, size, KFI_REMOTE, 0, 0, 0, &mr, NULL), 0))
		goto out;
	EXPECT(t, n == 1 || !kfi_mr_desc(mr), "a descriptor of several pieces");
	if (take(t, &d, mr, n, size))
		for (i = 0, done = 0; i < n; done += length_of(&d, i++))
			check_piece(t, &d, i, mem + done);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	check_all_refused(t, &d);
out:
	vfree(mem);
	raw_close(t, &d);
}

/* As many pieces as a raw key can have, and one more, which registers none. */
static void most_case(struct kfi_test *t)
{
	struct kvec *list = kvcalloc(KFI_RAW_KEY_MOST + 1, sizeof(*list), GFP_KERNEL);
	size_t n = KFI_RAW_KEY_MOST, i, most = t->env->max_pages;
	u8 *mem = vmalloc((n + 1) * 16 + (most + 2) * PAGE_SIZE);
	struct raw_domain d;
	struct kfid_mr *mr;

	if (!raw_open(t, &d))
		goto free;
	if (!EXPECT(t, list && mem, "no memory"))
		goto out;
	for (i = 0; i <= n; i++)
		list[i] = (struct kvec) { mem + 16 * i + 1, 14 };
	if (EXPECT_EQ(t, regv(&d, list, n, &mr), 0)) {
		if (take(t, &d, mr, n, 14 * n))
			for (i = 0; i < n; i += i < 10 ? 1 : 97)
				check_piece(t, &d, i, list[i].iov_base);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		check_all_refused(t, &d);
	}
	EXPECT_EQ(t, regv(&d, list, n + 1, &mr), -KFI_E2BIG);
	EXPECT(t, !mr, "*mr is not NULL");
	/* Few enough segments, but the last one makes two pieces. */
	if (t->env->at_limit) {
		list[n - 1].iov_len = (most + 1) * PAGE_SIZE;
		EXPECT_EQ(t, regv(&d, list, n, &mr), -KFI_E2BIG);
		EXPECT(t, !mr, "*mr is not NULL");
	}
	list[n - 1] = (struct kvec) { NULL, 14 };
	EXPECT_EQ(t, regv(&d, list, n, &mr), -KFI_EFAULT);
	EXPECT(t, !mr, "*mr is not NULL");
out:
	raw_close(t, &d);
free:
	kvfree(list);
	vfree(mem);
}

/* A list as an IOMMU makes it, with entries of many pages: cut where the device's limit is. */
static void coalesced_case(struct kfi_test *t)
{
	size_t most = t->env->max_pages, len = (most + 1) * PAGE_SIZE;
	u8 *mem = arena_at(t->env, MEM_KMALLOC, 0);
	struct scatterlist sg[2];
	struct raw_domain d;
	struct kfid_mr *mr;

	if (!t->env->at_limit || t->env->dev->dma_device)
		return ktap_skip(t, "for software devices with a limit that can be reached");
	if (!raw_open(t, &d))
		return;
	sg_init_table(sg, 2);
	/* On software devices a mapped address is the kernel's own. */
	sg_dma_address(&sg[0]) = (uintptr_t)mem + 8;
	sg_dma_len(&sg[0]) = len - 8;
	sg_dma_address(&sg[1]) = (uintptr_t)mem - PAGE_SIZE + 3;
	sg_dma_len(&sg[1]) = 60;
	if (EXPECT_EQ(t, kfi_mr_regsgl(d.domain, sg, 2, KFI_REMOTE, 0, 0, 0, &mr, NULL), 0)) {
		/* The list is needed during the call only. */
		memset(sg, 0xff, sizeof(sg));
		if (take(t, &d, mr, 3, len - 8 + 60)) {
			EXPECT_EQ(t, length_of(&d, 0), most * PAGE_SIZE - 8);
			check_piece(t, &d, 0, mem + 8);
			check_piece(t, &d, 1, mem + most * PAGE_SIZE);
			check_piece(t, &d, 2, mem - PAGE_SIZE + 3);
		}
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		check_all_refused(t, &d);
	}
	raw_close(t, &d);
}

/* A region of several pieces keeps all its keys when it is refreshed, or when that is refused. */
static void refresh_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_VMALLOC, 0);
	struct kvec list[] = {
		{ mem + 5, 2 * PAGE_SIZE }, { mem + 3 * PAGE_SIZE + 9, 100 },
		{ mem + 5 * PAGE_SIZE + 1, PAGE_SIZE },
	};
	int i, want = feature_errno(F_REFRESH);
	struct raw_domain d;
	struct kfid_mr *mr;
	u64 keys[3];

	if (!raw_open(t, &d))
		return;
	if (EXPECT_EQ(t, regv(&d, list, 3, &mr), 0)) {
		take(t, &d, mr, 3, 3 * PAGE_SIZE + 100);
		for (i = 0; i < 3; i++)
			keys[i] = key_of(&d, i);
		EXPECT_EQ(t, kfi_mr_refresh(mr, NULL, 0, 0), want);
		EXPECT_EQ(t, kfi_mr_refresh(mr, &list[1], 1, 0), want);
		take(t, &d, mr, 3, 3 * PAGE_SIZE + 100);
		for (i = 0; i < 3; i++) {
			EXPECT(t, keys[i] == key_of(&d, i), "another key of piece %d", i);
			check_piece(t, &d, i, list[i].iov_base);
			check_ends(t, &d, i);
		}
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		check_all_refused(t, &d);
	}
	raw_close(t, &d);
}

#ifdef CONFIG_FAULT_INJECTION
/*
 * For the suite faults. For every allocation that fails: all pieces or none, and none is left at
 * the device.
 */
void pieces_faults_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_VMALLOC, 0);
	unsigned int nth, refused = 0;
	struct kvec list[12];
	struct raw_domain d;
	struct kfid_mr *mr;
	bool failed = true;
	int i, ret;

	if (!raw_open(t, &d))
		return;
	for (i = 0; i < ARRAY_SIZE(list); i++)
		list[i] = (struct kvec) { mem + i * PAGE_SIZE + 8, 100 };
	for (nth = 1; failed && nth < MAX_NTH && !t->failures; nth++) {
		arm(nth);
		ret = regv(&d, list, ARRAY_SIZE(list), &mr);
		failed = disarm();
		if (ret) {
			refused++;
			EXPECT(t, ret == -KFI_ENOMEM || ret == -KFI_EIO, "error %d", ret);
			EXPECT(t, !mr, "*mr is not NULL");
			continue;
		}
		if (take(t, &d, mr, ARRAY_SIZE(list), 1200))
			check_piece(t, &d, nth % 12, list[nth % 12].iov_base);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
	EXPECT(t, nth < MAX_NTH, "more than %d allocations", MAX_NTH);
	EXPECT(t, refused, "no allocation has failed: fault injection is not switched on");
	ktap_note("pieces: %u refusals", refused);
	/* Were a piece left, it would keep the domain open. */
	raw_close(t, &d);
}
#else
void pieces_faults_case(struct kfi_test *t)
{
	ktap_skip(t, "the kernel has no fault injection");
}
#endif

/*
 * Registered together: those that are one region to the device, those that are several, and a bad one; also when
 * the device refuses a request of them, so that each goes by itself.
 */
static void together_case(struct kfi_test *t)
{
	enum { MANY = 5, BAD = 3 };
	u8 *mem = arena_at(t->env, MEM_VMALLOC, 0), *one = arena_at(t->env, MEM_KMALLOC, 0);
	struct kvec list[] = {
		{ one + 7, 100 },
		{ mem + 5, 300 }, { mem + PAGE_SIZE + 9, 100 }, { mem + 2 * PAGE_SIZE + 1, 700 },
		{ mem + 3 * PAGE_SIZE, PAGE_SIZE },
		{ NULL, 14 },
		{ mem + 5 * PAGE_SIZE + 1, 60 }, { mem + 6 * PAGE_SIZE + 1, 60 },
	};
	static const u8 first[] = { 0, 1, 4, 5, 6, 8 };
	/*
	 * Which calls that post requests fail, and which region is refused for that. The pieces of a region are posted in
	 * one call. If it fails, each piece is posted by itself: the second failure is that of a piece.
	 */
	static const u8 skip[] = { 0, 0, 1, 1, 2 }, times[] = { 0, 1, 1, 2, 2 };
	static const u8 refused[] = { BAD, BAD, BAD, 1, 4 };
	struct kfi_mr_attr attrs[MANY] = {};
	struct kfid_mr *mrs[MANY];
	int i, j, round, errs[MANY];
	struct kfi_batch_ops *many;
	struct raw_domain d;
	u64 total;

	if (!raw_open(t, &d))
		return;
	for (i = 0; i < MANY; i++)
		attrs[i] = (struct kfi_mr_attr) {
			.mr_iov = &list[first[i]],
			.iov_count = first[i + 1] - first[i],
			.access = KFI_REMOTE,
			.type = KFI_KVEC,
		};
	if (!EXPECT_EQ(t, kfi_open_ops(&d.domain->fid, KFI_BATCH_OPS_1, 0, (void **)&many, NULL), 0) ||
	    !EXPECT_EQ(t, kfi_inject_start(t->env->dev), 0))
		goto out;
	for (round = 0; round < ARRAY_SIZE(skip); round++) {
		/* The regions of one piece are posted, then the pieces of one region, then those of the other. */
		if (round)
			kfi_inject_fail(KFI_INJECT_POST_REG, -EINVAL, skip[round], times[round]);
		EXPECT_EQ(t, many->regattr_many(&d.domain->fid, attrs, MANY, 0, 0, mrs, errs), -KFI_EFAULT);
		kfi_inject_fail(KFI_INJECT_POST_REG, 0, 0, 0);
		for (i = 0; i < MANY; i++) {
			int want = i == BAD ? -KFI_EFAULT : i == refused[round] ? -KFI_EIO : 0;

			if (!EXPECT_EQ(t, errs[i], want) || want) {
				EXPECT(t, !mrs[i], "a region that was refused");
				continue;
			}
			for (j = first[i], total = 0; j < first[i + 1]; j++)
				total += list[j].iov_len;
			if (take(t, &d, mrs[i], first[i + 1] - first[i], total))
				for (j = first[i]; j < first[i + 1]; j++)
					check_piece(t, &d, j - first[i], list[j].iov_base);
		}
		EXPECT_EQ(t, many->close_many(mrs, MANY, errs), 0);
		check_all_refused(t, &d);
	}
	kfi_inject_stop(t->env->dev);
out:
	raw_close(t, &d);
}

static const struct kfi_case cases[] = {
	{ "alignment", alignment_case },
	{ "page_limit", page_limit_case },
	{ "gigabyte", gigabyte_case },
	{ "most", most_case },
	{ "coalesced", coalesced_case },
	{ "refresh", refresh_case },
	{ "together", together_case },
};

const struct kfi_suite suite_pieces = {
	.name = "pieces",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
};
