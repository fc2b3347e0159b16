// SPDX-License-Identifier: GPL-2.0
/*
 * What only hardware does: memory that is mapped for the device as long as it may be accessed, and a close that waits for
 * an access under way. The model NIC (nic/) says what it does, and does it as slowly as it is told.
 */
#include <linux/delay.h>

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

/* Each kind of memory is mapped by a way of its own. */
static void one_close(struct kfi_test *t, enum mem_kind kind, bool write)
{
	u8 *mem = arena_at(t->env, kind, 0);
	struct access a = { .env = t->env, .write = write };
	long mapped = stat(t, "mapped");
	struct job job = {};
	struct kfid_mr *mr;

	if (!EXPECT_EQ(t, reg_simple(t->env, mem, LEN, KFI_REMOTE, &mr), 0))
		return;
	a.iova = mr->iova;
	a.key = mr->key;
	access_begins(t, &a, &job);
	EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	/* What was under way has ended. */
	EXPECT_EQ(t, stat(t, "under_way"), 0);
	set(t, "access_us", 0);
	EXPECT_EQ(t, job_end(t, &job), 0);
	EXPECT_EQ(t, stat(t, "mapped"), mapped);
	check_refused(t, a.iova, a.key, mem, LEN);
}

/* A region is closed while the peer is in the middle of an access. */
static void close_waits_case(struct kfi_test *t)
{
	enum mem_kind kind;

	for (kind = 0; kind < MEM_KINDS; kind++) {
		one_close(t, kind, true);
		one_close(t, kind, false);
	}
}

/* An open region is mapped, and its memory stays so until it is closed. */
static void mapped_case(struct kfi_test *t)
{
	u8 *mem = arena_at(t->env, MEM_VMALLOC, 0);
	struct kfid_mr *mr;
	struct model_counts before;

	model_read(&before);
	if (!EXPECT_EQ(t, reg_simple(t->env, mem, 4 * PAGE_SIZE, KFI_REMOTE, &mr), 0))
		return;
	check_region(t, mr, mem, 4 * PAGE_SIZE);
	EXPECT(t, model_grown(t, &before), "nothing is mapped");
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
	{ "map_fails", map_fails_case },
};

const struct kfi_suite suite_hardware = {
	.name = "hardware",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
};
