/* SPDX-License-Identifier: GPL-2.0 */
/* Domains of the loopback provider, whose extension is the peer. */
#ifndef KFI_TEST_LOOP_H
#define KFI_TEST_LOOP_H

#include <kfi_loop_ext.h>

#include "request.h"

/**
 * struct loop - an open domain of the loopback provider
 * @env: The domain, its DMA extension, lists and memory; no peer.
 * @ops: The loopback extension.
 * @target: The object that a peer accesses; the domain.
 * @initiator: The object that accesses; nobody.
 */
struct loop {
	struct kfi_env env;
	struct kfi_loop_ops *ops;
	struct kfid *target;
	struct kfid *initiator;
};

/* The modes that are offered by themselves. */
#define BASIC_MODE	(KFI_MR_VIRT_ADDR | KFI_MR_PROV_KEY)

struct kfi_info *loop_info(struct kfi_test *t, int mr_mode);
struct loop *loop_open_info(struct kfi_test *t, struct kfi_info *info);
struct loop *loop_open(struct kfi_test *t, int mr_mode);
void loop_close(struct kfi_test *t, struct loop *l);
int loop_reg(struct loop *l, void *buf, size_t len, u64 access, u64 key, struct kfid_mr **mr);
int loop_write(struct loop *l, u64 addr, u64 key, const void *buf, size_t len);
int loop_read(struct loop *l, u64 addr, u64 key, void *buf, size_t len);
bool loop_reaches(struct kfi_test *t, struct loop *l, u64 addr, u64 key, u8 *mem, size_t len);
bool loop_denied(struct kfi_test *t, struct loop *l, u64 addr, u64 key, u8 *mem, size_t len);

/* Cases, by file. */
void loop_application_key_case(struct kfi_test *t);
void loop_provider_key_case(struct kfi_test *t);
void loop_key_range_case(struct kfi_test *t);
void loop_million_case(struct kfi_test *t);
void loop_counter_case(struct kfi_test *t);
void loop_endpoint_case(struct kfi_test *t);
void loop_auth_key_case(struct kfi_test *t);
void loop_extras_case(struct kfi_test *t);
void loop_close_race_case(struct kfi_test *t);
void loop_refresh_case(struct kfi_test *t);
void loop_refresh_pages_case(struct kfi_test *t);
void loop_pieces_case(struct kfi_test *t);

#endif /* KFI_TEST_LOOP_H */
