// SPDX-License-Identifier: GPL-2.0
/* The table of features, and the column of the provider under test. */
#include <linux/bug.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

#include <kfi_errno.h>

#include "env.h"
#include "feature.h"

/* The cells of features.def. */
enum {
	CELL_YES = 0,
	CELL_NO = -1,
	CELL_UNTESTED = 1,
	CELL_NO_RXE = 2,
	CELL_EBADFLAGS = -KFI_EBADFLAGS,
	CELL_ENODATA = -KFI_ENODATA,
	CELL_ENOPROTOOPT = -KFI_ENOPROTOOPT,
	CELL_ENOSYS = -KFI_ENOSYS,
	CELL_EOPNOTSUPP = -KFI_EOPNOTSUPP,
};

static const struct {
	const char *text;
	int cell[COLUMNS];
	const char *skip;
} features[FEATURES] = {
#define FEATURE(_name, _text, _verbs, _fenced, _dereg, _iwarp, _loop)		\
	[F_##_name] = {								\
		_text,								\
		{ CELL_##_verbs, CELL_##_fenced, CELL_##_dereg, CELL_##_iwarp,	\
		  CELL_##_loop },						\
		"the provider lacks: " _text,					\
	},
#include "../../features.def"
#undef FEATURE
};

static enum feature_column column;
static bool hardware;

/* Is it hardware that can invalidate regions? */
static bool invalidates(const struct ib_device *dev)
{
	return !ib_uses_virt_dma((struct ib_device *)dev) && dev->ops.driver_id != RDMA_DRIVER_HNS;
}

void feature_column(const char *provider, bool iwarp, const struct ib_device *dev)
{
	hardware = kfi_hardware || (dev && !ib_uses_virt_dma((struct ib_device *)dev));
	if (!strcmp(provider, "loop"))
		column = COLUMN_LOOP;
	else if (iwarp)
		column = COLUMN_IWARP;
	else if (kfi_weak || (dev && invalidates(dev)))
		column = COLUMN_FENCED;
	else
		column = hardware ? COLUMN_DEREG : COLUMN_VERBS;
}

int feature_errno(enum feature f)
{
	/* A warning of the kernel fails the suite. */
	WARN(features[f].cell[column] == CELL_UNTESTED, "no expectation in column %d for: %s", column,
	     features[f].text);
	if (features[f].cell[column] == CELL_NO_RXE)
		return hardware ? 0 : CELL_NO;
	return features[f].cell[column];
}

const char *feature_text(enum feature f)
{
	return features[f].text;
}

bool needs_feature(struct kfi_test *t, enum feature f)
{
	if (has_feature(f))
		return true;
	ktap_skip(t, features[f].skip);
	return false;
}
