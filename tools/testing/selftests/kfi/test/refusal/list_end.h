/* SPDX-License-Identifier: GPL-2.0 */
/* A scatterlist that ends where its memory does. */
#ifndef KFI_TEST_LIST_END_H
#define KFI_TEST_LIST_END_H

#include "env.h"

void list_end(struct kfi_test *t, struct kfi_env *env, bool by_extension);
void list_end_case(struct kfi_test *t);

#endif /* KFI_TEST_LIST_END_H */
