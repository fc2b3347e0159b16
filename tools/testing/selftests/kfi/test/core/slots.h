/* SPDX-License-Identifier: GPL-2.0 */
/* Objects whose operations are missing, in every way in which they can be. */
#ifndef KFI_TEST_SLOTS_H
#define KFI_TEST_SLOTS_H

#include "env.h"
#include "ktap.h"

/* How they are missing; variants of the cases below. */
enum bare_table {
	NO_TABLE,	/* the object has no table */
	EMPTY_TABLE,	/* it has one of NULLs, of a provider that doesn't say its size */
	SIZED_TABLE,	/* the same, with a size */
	SHORT_TABLE,	/* an older provider's, that ends before its first operation */
	BARE_TABLE_COUNT
};

#define BARE_TABLES	GENMASK(BARE_TABLE_COUNT - 1, 0)

/* The call is refused; counted, for the check of its event. */
#define REFUSES(t, call, want)							\
({										\
	struct kfi_test *__test = (t);						\
										\
	if (EXPECT_EQ(__test, call, want))					\
		__test->env->refused[-(want)]++;				\
})

#define NOSYS(t, call)	REFUSES(t, call, -KFI_ENOSYS)
#define INVAL(t, call)	REFUSES(t, call, -KFI_EINVAL)

const char *bare_table_name(unsigned int variant);

void bare_queues_case(struct kfi_test *t);
void bare_endpoints_case(struct kfi_test *t);
void bare_messages_case(struct kfi_test *t);
void bare_rma_case(struct kfi_test *t);
void bare_tagged_case(struct kfi_test *t);
void bare_atomic_case(struct kfi_test *t);

#endif /* KFI_TEST_SLOTS_H */
