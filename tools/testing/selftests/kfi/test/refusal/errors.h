/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Refusals: a row takes a request that is right, spoils it in one way, and says which errno that
 * must give. Each row runs for each call that can be spoiled so.
 */
#ifndef KFI_TEST_ERRORS_H
#define KFI_TEST_ERRORS_H

#include "request.h"

/* Requests are for this much memory, this far into a page: four segments, by page. */
#define ROW_ALIGN	100
#define ROW_LEN		(3 * PAGE_SIZE)
#define ROW_SEGMENTS	4

/**
 * struct row - what is wrong, and what it gives
 * @want: The errno, negative.
 * @spoil: Makes the request wrong; returns why that can't be tried here, or NULL.
 * @restore: Frees what @spoil has allocated, or NULL.
 * @value: The value that @spoil puts in, if the row says so; it finds it in the request.
 * @alone: It is the second segment that is wrong, also if there is no other.
 * @writes: It is refused only if somebody may write to the memory.
 */
struct row {
	int want;
	const char *(*spoil)(struct kfi_env *env, struct reg_req *req);
	void (*restore)(struct kfi_env *env, struct reg_req *req);
	u64 value;
	bool alone;
	bool writes;
};

#define ROW(_name, _calls, _want, _spoil, ...) {				\
	.name = _name,								\
	.run = run_row,								\
	.variants = _calls,							\
	.data = &(const struct row) { .want = _want, .spoil = _spoil, __VA_ARGS__ },	\
}

void run_row(struct kfi_test *t);
void expect_refused(struct kfi_test *t, const struct reg_req *req, int want);
void expect_refused_memory(struct kfi_test *t, const struct reg_req *req, int want, bool writes);
int try_request(struct kfi_test *t, const struct reg_req *req);
void expect_registered(struct kfi_test *t, enum reg_call call, u8 *mem, size_t len, size_t split);
void expect_works(struct kfi_test *t, enum reg_call call);
void end_refusals(struct kfi_test *t);

#endif /* KFI_TEST_ERRORS_H */
