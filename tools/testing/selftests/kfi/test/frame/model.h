/* SPDX-License-Identifier: GPL-2.0 */
/* The counters of the model NIC (nic/README). A case must not leave them larger than it found them. */
#ifndef KFI_TEST_MODEL_H
#define KFI_TEST_MODEL_H

#include <linux/types.h>

struct kfi_test;

/**
 * struct model_counts - the counters at one moment
 * @valid: Whether the device was there.
 * @value: The model's counters, in the order of the table in model.c.
 * @dma_entries: Mappings that DMA-API debugging knows, of all devices; 0 without it.
 */
struct model_counts {
	bool valid;
	long value[11];
	long dma_entries;
};

void model_read(struct model_counts *counts);
void model_before(const struct kfi_test *t, struct model_counts *counts);
const char *model_grown(const struct kfi_test *t, const struct model_counts *before);
void model_expect(struct kfi_test *t, const struct model_counts *before);

#endif /* KFI_TEST_MODEL_H */
