/* SPDX-License-Identifier: GPL-2.0 */
/* The features of the provider under test, by the table features.def. */
#ifndef KFI_TEST_FEATURE_H
#define KFI_TEST_FEATURE_H

#include <linux/types.h>

struct ib_device;
struct kfi_test;

enum feature {
#define FEATURE(_name, ...)	F_##_name,
#include "../../features.def"
#undef FEATURE
	FEATURES
};

/* The last feature of regions. Each of these has a case in the conformance suite. */
#define LAST_REGION_FEATURE	F_PMEM

/* The columns of the table. */
enum feature_column {
	COLUMN_VERBS,
	COLUMN_FENCED,
	COLUMN_DEREG,
	COLUMN_IWARP,
	COLUMN_LOOP,
	COLUMNS
};

/**
 * feature_column() - Select the column of the table.
 * @provider: A provider's name.
 * @iwarp: Whether its device is an iWARP one.
 * @dev: Its device, or NULL for a software device.
 *
 * The module parameters weak and hardware count, too. Process context.
 */
void feature_column(const char *provider, bool iwarp, const struct ib_device *dev);

/**
 * feature_errno() - Look up what a consumer gets that asks for a feature.
 * @f: The feature.
 *
 * Return: 0 if the provider has the feature. Else the errno of the refusal, negative, or -1 if no call
 * asks for it.
 */
int feature_errno(enum feature f);

/* Has the provider under test this feature? */
static inline bool has_feature(enum feature f)
{
	return !feature_errno(f);
}

/* The text of a feature. */
const char *feature_text(enum feature f);

/**
 * needs_feature() - Skip a case that needs a feature which the provider lacks.
 * @t: The case.
 * @f: The feature.
 *
 * Return: Whether the provider has it.
 */
bool needs_feature(struct kfi_test *t, enum feature f);

#endif /* KFI_TEST_FEATURE_H */
