/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests as transfers: a connected endpoint sends and receives the memory of a request, without a descriptor.
 * The module parameter "transfers" puts them in the place of registrations.
 */
#ifndef KFI_TEST_TRANSFERS_H
#define KFI_TEST_TRANSFERS_H

#include "request.h"

/**
 * transfers_refused() - Expects that a request is refused as the memory of each kind of transfer.
 * @t: The test.
 * @req: The request.
 * @want: The errno, negative.
 * @writes: Whether only those transfers count that write to the memory.
 */
void transfers_refused(struct kfi_test *t, const struct reg_req *req, int want, bool writes);

/* Sends the memory of a request to nobody. Returns what the call returns. */
int transfers_try(struct kfi_test *t, const struct reg_req *req);

/*
 * Sends, receives, writes and reads this memory, at most ROW_LEN bytes, by a call, in segments as reg_prepare() makes
 * them; and compares the bytes.
 */
void transfers_work(struct kfi_test *t, enum reg_call call, u8 *mem, size_t len, size_t split);

/* Closes what the others have opened. */
void transfers_close(struct kfi_test *t);

#endif /* KFI_TEST_TRANSFERS_H */
