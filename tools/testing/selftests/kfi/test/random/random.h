/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random sequences of calls with hostile arguments. A step is a call and six numbers. The numbers select
 * objects, memory, lengths and flags, so a step is possible after any other step. A sequence can therefore
 * be written as text, and shortened.
 */
#ifndef KFI_TEST_RANDOM_H
#define KFI_TEST_RANDOM_H

#include <kfi_atomic.h>

#include "ep/ep.h"

#define STEP_NUMBERS	6
#define SEQUENCE_STEPS	500

/* Objects of a sequence, by kind. */
enum random_kind {
	FABRIC, DOMAIN, EQ, CQ, CNTR, EP, PEP, SRX, MR,
	RANDOM_KINDS
};

#define RANDOM_OBJECTS	8

/* How a sequence runs; variants of the case. */
enum random_faults {
	NO_FAULTS,
	ALLOCATIONS_FAIL,
	DRIVER_FAILS,
	RANDOM_FAULTS
};

/**
 * struct random_step - a call
 * @call: Its index in random_calls.
 * @number: The numbers that select its arguments.
 * @has_result: The step must have the result @result. Otherwise it may have any result that is documented.
 * @result: See @has_result.
 */
struct random_step {
	unsigned int call;
	u16 number[STEP_NUMBERS];
	bool has_result;
	int result;
};

/**
 * struct random_sequence - the calls of a sequence
 * @mode: Selects the mr_mode of its domains.
 * @count: The number of steps.
 * @step: The steps.
 */
struct random_sequence {
	unsigned int mode;
	unsigned int count;
	struct random_step step[SEQUENCE_STEPS];
};

#define AREA_PAGES	8UL
#define AREA_SIZE	(AREA_PAGES * PAGE_SIZE)
#define RANDOM_LIST	16
#define RANDOM_RIGHTS	(KFI_SEND | KFI_RECV | KFI_READ | KFI_WRITE | KFI_REMOTE)

/**
 * struct random_target - where a transfer goes at the peer
 * @addr: The address.
 * @key: The key.
 */
struct random_target {
	u64 addr;
	u64 key;
};

/**
 * struct random_world - the objects and the memory that calls work on
 * @t: The case.
 * @p: A connected pair, whose objects are the first ones of their kinds.
 * @object: The objects; NULL where there is none.
 * @fixed: The number of objects that stay open, by kind: those of the pair, and a region of each side.
 * @area: Memory from alloc_pages_exact() and from vmalloc(), between guard pages.
 * @sg: A list of the first area, mapped for the first domain.
 * @mapped: The number of entries that were mapped.
 * @dma: The DMA extension of the first domain.
 * @closed: The latest region that was closed, by index; zeroes if there is none.
 * @request: The info of the latest connection request that was read.
 * @raw: Mapped raw keys; 0 where there is none.
 * @out: The output pointer of the step, or NULL.
 * @want: The only errno that the step may return, or 0.
 * @kv: A list for the step.
 * @bv: The same.
 * @desc: Descriptors for either.
 * @room: Space for results.
 */
struct random_world {
	struct kfi_test *t;
	struct ep_pair *p;
	void *object[RANDOM_KINDS][RANDOM_OBJECTS];
	unsigned int fixed[RANDOM_KINDS];
	u8 *area[2];
	struct scatterlist sg[AREA_PAGES];
	int mapped;
	struct kfi_dma_ops *dma;
	struct random_target closed[RANDOM_OBJECTS];
	struct kfi_info *request;
	u64 raw[4];
	void **out;
	int want;
	struct kvec kv[RANDOM_LIST];
	struct bio_vec bv[RANDOM_LIST];
	void *desc[RANDOM_LIST];
	u8 room[1024];
};

/**
 * struct random_errnos - the errnos that the manual page of a call lists
 * @names: Their names, with ", " between two of them.
 * @number: The errnos, and 0 at the end.
 */
struct random_errnos {
	const char *names;
	int number[32];
};

/**
 * struct random_call - a call of the API
 * @name: Its name, without "kfi_".
 * @run: Makes the call.
 * @errnos: The errnos that its manual page lists.
 */
struct random_call {
	const char *name;
	ssize_t (*run)(struct random_world *w, const u16 a[STEP_NUMBERS]);
	const struct random_errnos *errnos;
};

/* An entry of a table below, in a file that includes "errnos.h". */
#define ERRNOS(_call, ...)	\
	static const struct random_errnos __maybe_unused _call##_errnos = { #__VA_ARGS__, { __VA_ARGS__, 0 } }
#define CALL(_name)		{ #_name, _name##_call, &kfi_##_name##_errnos }

/* *_calls.c: tables of calls, each ended by an entry without a name. */
extern const struct random_call random_region_calls[];
extern const struct random_call random_object_calls[];
extern const struct random_call random_queue_calls[];
extern const struct random_call random_transfer_calls[];

/* world.c */
struct random_world *random_open(struct kfi_test *t, unsigned int mode);
void random_close(struct random_world *w);
void random_guards(struct random_world *w);

void *random_any(struct random_world *w, enum random_kind kind, u16 a);
void *random_object(struct random_world *w, enum random_kind kind, u16 a);
struct kfid *random_fid(struct random_world *w, u16 a);
void *random_place(struct random_world *w, enum random_kind kind, u16 a);
u64 random_flags(u16 a, u64 valid);
void *random_buffer(struct random_world *w, u16 a, u16 b, size_t *len);
size_t random_longer(size_t len);
size_t random_kvecs(struct random_world *w, u16 a, u16 b);
size_t random_bvecs(struct random_world *w, u16 a, u16 b);
void *random_desc(struct random_world *w, u16 a);
struct random_target random_target(struct kfid_mr *mr);

/* accesses.c, rounds.c */
void random_accesses_case(struct kfi_test *t);
void random_rounds_case(struct kfi_test *t);

#endif /* KFI_TEST_RANDOM_H */
