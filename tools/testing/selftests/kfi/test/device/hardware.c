// SPDX-License-Identifier: GPL-2.0
/*
 * The behaviour of hardware only: memory that is mapped for the device as long as it may be
 * accessed, and a close that waits for an access under way. The model NIC (nic/) counts its
 * accesses, and delays them as a test demands.
 */
#include <linux/completion.h>
#include <linux/delay.h>

#include <kfi_batch_ext.h>

#include "debugfs.h"
#include "job.h"
#include "model.h"
#include "request.h"
#include "suites.h"

#define LEN	256
/* A mapping of more than 32 pages. */
#define UNCACHED_LEN	(40 * PAGE_SIZE)
/* How long an access takes: the test comes in the middle of it, however busy the machine is. */
#define ACCESS_US	1000000

static bool set(struct kfi_test *t, const char *file, long value)
{
	return nic_set(t, t->env->dev, file, value);
}

static long stat(struct kfi_test *t, const char *name)
{
	return nic_stat(t, t->env->dev, name);
}

/* An access of the peer. */
struct access {
	struct kfi_env *env;
	u64 iova, key;
	bool write;
};

static int access(void *data)
{
	struct access *a = data;

	return a->write ? kfi_peer_write(a->env->peer, a->iova, a->key, a->env->scratch, LEN) :
			  kfi_peer_read(a->env->peer, a->iova, a->key, a->env->scratch, LEN);
}

/* Begins an access to a region, and waits until the device has looked the region up. */
static bool access_begins(struct kfi_test *t, struct access *a, struct job *job)
{
	if (!set(t, "access_us", ACCESS_US) || !job_start(t, job, access, a))
		return false;
	while (!job_is_done(job) && stat(t, "under_way") == 0)
		usleep_range(100, 1000);
	return EXPECT(t, !job_is_done(job), "the access ended before it was seen");
}

/* The calls that end an access to regions. */
enum ending {
	CLOSE,
	CLOSE_MANY,
	CLOSE_LATER,
	REFRESH,
	ENDINGS
};

/* As many are closed together. */
#define TOGETHER	3

struct later {
	struct kfi_closing closing;
	struct completion done;
	int err;
};

static void told(struct kfi_closing *closing, int err)
{
	struct later *later = container_of(closing, struct later, closing);

	later->err = err;
	complete(&later->done);
}

static void end_access(struct kfi_test *t, enum ending ending, struct kfid_mr **mr)
{
	struct later later = { .closing.done = told };
	struct kfi_batch_ops *ops;
	void *table;

	if (!EXPECT_EQ(t, kfi_open_ops(&t->env->domain->fid, KFI_BATCH_OPS_1, 0, &table, NULL), 0))
		return;
	ops = table;
	switch (ending) {
	case CLOSE_MANY:
		EXPECT_EQ(t, ops->close_many(mr, TOGETHER, NULL), 0);
		break;
	case CLOSE_LATER:
		init_completion(&later.done);
		ops->close_later(mr[0], &later.closing);
		wait_for_completion(&later.done);
		EXPECT_EQ(t, later.err, 0);
		break;
	case REFRESH:
		EXPECT_EQ(t, kfi_mr_refresh(mr[0], NULL, 0, 0), 0);
		break;
	default:
		EXPECT_EQ(t, kfi_close(&mr[0]->fid), 0);
	}
}

/* Each kind of memory is mapped by a way of its own. */
static void one_ending(struct kfi_test *t, enum ending ending, enum mem_kind kind, bool write)
{
	unsigned int i, n = ending == CLOSE_MANY ? TOGETHER : 1;
	u8 *mem = arena_at(t->env, kind, 0);
	struct access a = { .env = t->env, .write = write };
	struct kfid_mr *mr[TOGETHER];
	long mapped = stat(t, "mapped");
	struct job job = {};

	for (i = 0; i < n; i++)
		if (!EXPECT_EQ(t, reg_simple(t->env, mem, LEN, KFI_REMOTE, &mr[i]), 0))
			return;
	/* The last one, or the one before. */
	a.iova = mr[write ? n - 1 : n / 2]->iova;
	a.key = mr[write ? n - 1 : n / 2]->key;
	access_begins(t, &a, &job);
	end_access(t, ending, mr);
	/* The accesses that were under way have ended. */
	EXPECT_EQ(t, stat(t, "under_way"), 0);
	set(t, "access_us", 0);
	EXPECT_EQ(t, job_end(t, &job), 0);
	if (ending == REFRESH) {
		check_region(t, mr[0], mem, LEN);
		EXPECT_EQ(t, kfi_close(&mr[0]->fid), 0);
	}
	EXPECT_EQ(t, stat(t, "mapped"), mapped);
	check_refused(t, a.iova, a.key, mem, LEN);
}

/* A region is closed while the peer is in the middle of an access. */
static void close_waits_case(struct kfi_test *t)
{
	enum mem_kind kind;

	for (kind = 0; kind < MEM_KINDS; kind++) {
		one_ending(t, CLOSE, kind, true);
		one_ending(t, CLOSE, kind, false);
	}
}

/* Or with others, or by the provider's own thread; or it gets other memory. */
static void others_wait_case(struct kfi_test *t)
{
	enum ending ending;

	for (ending = CLOSE + 1; ending < ENDINGS; ending++) {
		if (ending == REFRESH && !has_feature(F_REFRESH))
			continue;
		one_ending(t, ending, MEM_VMALLOC, true);
		one_ending(t, ending, MEM_VMALLOC, false);
	}
}

/* An open region is mapped, and its memory stays so until it is closed. */
static void mapped_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_VMALLOC, 0);
	struct kfid_mr *mr;
	struct model_counts before;
	long mapped = stat(t, "mapped");

	model_read(&before);
	if (!EXPECT_EQ(t, reg_simple(t->env, mem, 4 * PAGE_SIZE, KFI_REMOTE, &mr), 0))
		return;
	check_region(t, mr, mem, 4 * PAGE_SIZE);
	EXPECT(t, stat(t, "mapped") > mapped, "nothing is mapped");
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	EXPECT(t, !model_grown(t, &before), "more %s than before", model_grown(t, &before));
}

/*
 * The DMA layer refuses to map: the call says so, and the next one succeeds. The DMA layer keeps addresses of small
 * mappings for reuse, and compares none of them with a mask of 12 bits.
 */
static void map_fails_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_VMALLOC, 0);
	struct kfid_mr *mr = NULL;

	if (!device_iommu_mapped(t->env->dev->dma_device)) {
		ktap_skip(t, "without an IOMMU the kernel warns of such mappings");
		return;
	}
	if (set(t, "dma_bits", 12) &&
	    !EXPECT_EQ(t, reg_simple(t->env, mem, UNCACHED_LEN, KFI_REMOTE, &mr), -KFI_EIO) && !IS_ERR_OR_NULL(mr))
		kfi_close(&mr->fid);
	set(t, "dma_bits", 64);
	if (EXPECT_EQ(t, reg_simple(t->env, mem, 2 * PAGE_SIZE, KFI_REMOTE, &mr), 0)) {
		check_region(t, mr, mem, 2 * PAGE_SIZE);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
}

static const struct kfi_case cases[] = {
	{ "mapped", mapped_case },
	{ "close_waits", close_waits_case },
	{ "others_wait", others_wait_case },
	{ "map_fails", map_fails_case },
};

const struct kfi_suite suite_hardware = {
	.name = "hardware",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
};
