/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfi_bench.ko: what it costs to register memory and to close the region, by kfabric and by C that
 * is written by hand on the RDMA core.
 *
 * Time is what ktime_get_ns() says. In a guest that runs with --icount (tools/vm/run) a nanosecond
 * is an instruction.
 */
#ifndef KFI_BENCH_H
#define KFI_BENCH_H

#include <linux/bvec.h>
#include <linux/completion.h>
#include <linux/log2.h>
#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>

#include <kfabric.h>
#include <kfi_dma_ext.h>
#include <kfi_domain.h>

/* A region of the longest work; what rxe can have in one. */
#define MAX_PAGES	512
/* How many regions a batch has. */
#define BATCH		32

/* The rights of peers, for both sides. */
#define KFI_RIGHTS	(KFI_REMOTE_READ | KFI_REMOTE_WRITE)
#define IB_RIGHTS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)

/* --- memory.c --- */

/* The memory of a work, and the form in which it is given to a call. */
enum bench_form {
	LINEAR,			/* an address of kmalloc() */
	VMALLOC,		/* an address of vmalloc() */
	VMAP,			/* an address, scattered pages behind it */
	KVEC,			/* as LINEAR, as a list of one segment */
	BVEC_ONE,		/* as LINEAR, as one bio_vec */
	BVEC_SCATTERED,		/* scattered pages, one bio_vec each */
	SGL_ONE,		/* as LINEAR, as a list that is mapped, of one entry */
	SGL_SCATTERED,		/* scattered pages, as a list that is mapped, of one entry each */
};

/* The places of scattered pages. tools/bench/table says what each represents. */
enum bench_layout {
	ALTERNATE,		/* every second page of 4 MiB, in order */
	NEAR,			/* pages of 4 MiB, in random order */
	FAR,			/* a page in each of 512 blocks of 2 MiB, in random order */
	LAYOUTS,
};

/**
 * struct bench_scattered - MAX_PAGES pages of one layout
 * @pages: The pages.
 * @vmap: The pages in a row.
 * @bv: The pages, one bio_vec each.
 * @sg: The pages, mapped. The list of 1, 2, 4 and so on pages begins at that place.
 */
struct bench_scattered {
	struct page *pages[MAX_PAGES];
	u8 *vmap;
	struct bio_vec bv[MAX_PAGES];
	struct scatterlist sg[2 * MAX_PAGES];
};

/**
 * struct bench_mem - the memory that all works share, MAX_PAGES pages of each kind
 * @linear: Of kmalloc().
 * @vmalloc: Of vmalloc().
 * @arena: 4 MiB with the pages of ALTERNATE and NEAR.
 * @layouts: The scattered pages.
 * @scattered: The layout that is measured.
 * @sg_one: The first 2^n pages of @linear, mapped.
 */
struct bench_mem {
	u8 *linear;
	u8 *vmalloc;
	u8 *arena;
	struct bench_scattered layouts[LAYOUTS];
	struct bench_scattered *scattered;
	struct scatterlist sg_one[ilog2(MAX_PAGES) + 1];
};

struct bench_mem *mem_alloc(void);
void mem_free(struct bench_mem *mem);
struct scatterlist *mem_list(struct bench_mem *mem, enum bench_form form, unsigned int pages,
			     int *entries);

/* --- c_device.c, connect.c, queue.c --- */

/**
 * struct bench_queue - a queue pair that is connected to itself, for requests that stay here
 * @qp: The queue pair.
 * @cq: Where it completes.
 * @direct: Whether the one who waits polls @cq; otherwise softirq does.
 * @cqe: The one completion that is waited for.
 * @done: For softirq.
 * @ended: For who polls.
 * @status: How the last request has ended.
 */
struct bench_queue {
	struct ib_qp *qp;
	struct ib_cq *cq;
	bool direct;
	struct ib_cqe cqe;
	struct completion done;
	bool ended;
	enum ib_wc_status status;
};

/**
 * struct c_region - a region of C's
 * @mr: The device's; NULL if it has none at the moment.
 * @list: Room for a list of MAX_PAGES entries.
 * @mapped: How many entries of @list are mapped; 0 if a list is used that came mapped.
 * @reg: The request that registers it.
 * @inv: The request that invalidates it.
 */
struct c_region {
	struct ib_mr *mr;
	struct scatterlist *list;
	int mapped;
	struct ib_reg_wr reg;
	struct ib_send_wr inv;
};

/**
 * struct bench_dev - C's side: what a consumer of the RDMA core has
 * @ib: The device; held, so that it doesn't go away.
 * @pd: A protection domain of its own.
 * @softirq: The queue of the ways that sleep.
 * @polled: The queue of the ways that poll.
 * @pool: Regions that have their @mr for good, one of MAX_PAGES pages.
 * @fresh: Regions that get one each time.
 */
struct bench_dev {
	struct ib_device *ib;
	struct ib_pd *pd;
	struct bench_queue softirq;
	struct bench_queue polled;
	struct c_region pool[BATCH];
	struct c_region fresh[BATCH];
};

int c_open(struct bench_dev *dev, struct ib_device *ib);
void c_close(struct bench_dev *dev);
int connect_to_self(struct ib_qp *qp);
int queue_open(struct bench_queue *q, struct ib_pd *pd, bool direct);
void queue_close(struct bench_queue *q);
int queue_run(struct bench_queue *q, const struct ib_send_wr *first, struct ib_send_wr *last);

/* --- the ways --- */

/**
 * struct bench - all that is open
 * @mem: The memory.
 * @dev: C's side.
 * @info: The info that the domains were opened with.
 * @fabric: The fabric.
 * @domain: Registrations here are there when the call returns.
 * @many: The extension by which many are registered in one go.
 * @dma: The extension by which lists are mapped.
 * @mapped: How many of the lists that come mapped are.
 */
struct bench {
	struct bench_mem *mem;
	struct bench_dev dev;
	struct kfi_info *info;
	struct kfid_fabric *fabric;
	struct kfid_domain *domain;
	struct kfi_batch_ops *many;
	struct kfi_dma_ops *dma;
	int mapped;
};

/* Registers @pages pages in this form, and closes the region. Returns 0 or an errno. */
typedef int (*bench_way)(struct bench *b, enum bench_form form, unsigned int pages);

/* kfi_open.c */
int kfi_open(struct bench *b, const char *name);
int kfi_shut(struct bench *b);

/* kfi_ways.c */
int kfi_register(struct kfid_domain *domain, struct bench_mem *mem, enum bench_form form,
		 unsigned int pages, struct kfid_mr **mr);
int kfi_one(struct bench *b, enum bench_form form, unsigned int pages);
int kfi_batch(struct bench *b, enum bench_form form, unsigned int pages);

/* c_region.c */
int c_prepare(struct bench *b, struct bench_queue *q, struct c_region *r, enum bench_form form,
	      unsigned int pages);
void c_unmap(struct bench *b, struct c_region *r);
int c_alloc(struct bench *b, struct c_region *r, unsigned int pages);
int c_free(struct c_region *r);
void c_new_key(struct c_region *r);

/* c_ways.c */
int c_dereg(struct bench *b, enum bench_form form, unsigned int pages);
int c_dereg_polled(struct bench *b, enum bench_form form, unsigned int pages);
int c_pooled(struct bench *b, enum bench_form form, unsigned int pages);
int c_pooled_polled(struct bench *b, enum bench_form form, unsigned int pages);

/* c_batch.c */
int c_batch_pooled(struct bench *b, enum bench_form form, unsigned int pages);
int c_batch_dereg(struct bench *b, enum bench_form form, unsigned int pages);

/* works.c */

/**
 * struct bench_work - what is registered
 * @name: Its name in what is printed.
 * @form: The form of the memory.
 * @pages: How many pages a region has.
 * @batch: Whether a way registers a batch at a time.
 * @goal: The maximum of kfabric's cost, in percent of C's way D, Bd for a batch.
 * @weak_goal: The same with weak_fence=1, of the way S, or B; 0 if there is none.
 * @layout: Where scattered pages are.
 */
struct bench_work {
	const char *name;
	enum bench_form form;
	unsigned int pages;
	bool batch;
	unsigned int goal;
	unsigned int weak_goal;
	enum bench_layout layout;
};

extern const struct bench_work bench_works[];
extern const unsigned int bench_works_count;

/* measure.c */

/* The options of a run. */
struct bench_options {
	unsigned int rounds;
	const char *only;
	bool weak;
};

/*
 * For tools/bench/profile: what is run from here on is of this way, or of none. It is a nop that no
 * compiler makes.
 */
static inline void bench_mark(bench_way way)
{
	if (IS_ENABLED(CONFIG_X86_64))
		asm volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 0x01, 'K', 'F', 'K'" :: "a"(way) : "memory");
}

bool bench_wanted(const struct bench_options *o, const char *name);
u64 bench_median(u64 *values, unsigned int count);
int bench_time(struct bench *b, bench_way way, enum bench_form form, unsigned int pages,
	       unsigned int times, u64 *each);
int bench_measure(struct bench *b, const struct bench_options *o);
void bench_print(const char *name, u64 value, const char *way, u64 c, unsigned int goal);

/* regions.c */
int bench_regions(struct bench *b, const struct bench_options *o);

/* threads.c */
int bench_threads(struct bench *b, const struct bench_options *o);

#endif /* KFI_BENCH_H */
