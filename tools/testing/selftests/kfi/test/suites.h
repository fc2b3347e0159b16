/* SPDX-License-Identifier: GPL-2.0 */
/* The suites of kfi_selftest.ko, each in the file of its name. */
#ifndef KFI_TEST_SUITES_H
#define KFI_TEST_SUITES_H

#include "ktap.h"

extern const struct kfi_suite suite_oracle;
extern const struct kfi_suite suite_inject;
extern const struct kfi_suite suite_siw;
extern const struct kfi_suite suite_negotiate;
extern const struct kfi_suite suite_contiguous;
extern const struct kfi_suite suite_core;
extern const struct kfi_suite suite_slots;
extern const struct kfi_suite suite_states;
extern const struct kfi_suite suite_eq;
extern const struct kfi_suite suite_cntr;
extern const struct kfi_suite suite_cq;
extern const struct kfi_suite suite_batch;
extern const struct kfi_suite suite_later;
extern const struct kfi_suite suite_matrix;
extern const struct kfi_suite suite_random;
extern const struct kfi_suite suite_rights;
extern const struct kfi_suite suite_lifetime;
extern const struct kfi_suite suite_async;
extern const struct kfi_suite suite_errors;
extern const struct kfi_suite suite_segments;
extern const struct kfi_suite suite_badmem;
extern const struct kfi_suite suite_goodmem;
extern const struct kfi_suite suite_badruns;
extern const struct kfi_suite suite_scattered;
extern const struct kfi_suite suite_badpages;
extern const struct kfi_suite suite_noio;
extern const struct kfi_suite suite_order;
extern const struct kfi_suite suite_raw;
extern const struct kfi_suite suite_stress;
extern const struct kfi_suite suite_hammer;
extern const struct kfi_suite suite_recovery;
extern const struct kfi_suite suite_queue;
extern const struct kfi_suite suite_stuck;
extern const struct kfi_suite suite_stuck_close;
extern const struct kfi_suite suite_refresh;
extern const struct kfi_suite suite_pieces;
extern const struct kfi_suite suite_local;
extern const struct kfi_suite suite_held;
extern const struct kfi_suite suite_down;
extern const struct kfi_suite suite_gone_async;
extern const struct kfi_suite suite_gone_close;
extern const struct kfi_suite suite_faults;
extern const struct kfi_suite suite_hardware;
extern const struct kfi_suite suite_pool_line;
extern const struct kfi_suite suite_pool_idle;
extern const struct kfi_suite suite_pool_ahead;
extern const struct kfi_suite suite_pool_large;
extern const struct kfi_suite suite_pool_none;

extern const struct kfi_suite suite_reserve;

void batch_faults_case(struct kfi_test *t);
void pieces_faults_case(struct kfi_test *t);
void reserve_faults_case(struct kfi_test *t);
extern const struct kfi_suite suite_loop;
extern const struct kfi_suite suite_ep;
extern const struct kfi_suite suite_ep_gone;
extern const struct kfi_suite suite_pair;
extern const struct kfi_suite suite_killed;
extern const struct kfi_suite suite_cut;
extern const struct kfi_suite suite_ep_faults;
extern const struct kfi_suite suite_ep_errors;
extern const struct kfi_suite suite_ep_driver;
extern const struct kfi_suite suite_ep_unload;
extern const struct kfi_suite suite_ep_observed;
extern const struct kfi_suite suite_ep_observed_reuse;
extern const struct kfi_suite suite_ep_fence;

#endif /* KFI_TEST_SUITES_H */
