/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The initiator's side of raw keys: a domain that maps them, and a raw key as the documentation
 * has it, written here a second time.
 */
#ifndef KFI_TEST_RAW_H
#define KFI_TEST_RAW_H

#include <kfi_raw_ext.h>

#include "env.h"

/* More pieces than any test of a few asks for. */
#define FEW	8

/**
 * struct raw_side - who maps raw keys
 * @domain: A domain of its own, next to the one that regions are in.
 * @ops: The extension.
 */
struct raw_side {
	struct kfid_domain *domain;
	struct kfi_raw_ops *ops;
};

bool side_open(struct kfi_test *t, struct raw_side *side);
void side_close(struct kfi_test *t, struct raw_side *side);

struct kfi_raw_key *raw_make(const struct kfi_rma_iov *iov, size_t count);
int raw_resolve(const struct raw_side *side, u64 key, u64 addr, u64 len, struct kfi_rma_iov *iov,
		size_t *count);
int raw_read(struct kfi_test *t, const struct raw_side *side, u64 key, u64 addr, size_t len);
int raw_write(struct kfi_test *t, const struct raw_side *side, u64 key, u64 addr, size_t len);

/* bad.c */
void raw_malformed_case(struct kfi_test *t);
void raw_fuzz_case(struct kfi_test *t);
void raw_limits_case(struct kfi_test *t);

/* calls.c */
void raw_arguments_case(struct kfi_test *t);
void raw_unmap_case(struct kfi_test *t);
void raw_fields_case(struct kfi_test *t);

/* many.c */
void raw_many_case(struct kfi_test *t);
void raw_threads_case(struct kfi_test *t);

#endif /* KFI_TEST_RAW_H */
