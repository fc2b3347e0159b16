/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Allocations of this task that fail, one after the other: the first one that a call makes, then the
 * second one, and so on. Needs a kernel with fault injection, which faults.sh switches on.
 */
#ifndef KFI_TEST_FAILING_H
#define KFI_TEST_FAILING_H

#include <linux/sched.h>

#include "env.h"

#ifdef CONFIG_FAULT_INJECTION

/* No call makes as many allocations. */
#define MAX_NTH	500

/* From here on the allocation of this number fails. */
static inline void arm(unsigned int nth)
{
	WRITE_ONCE(current->fail_nth, nth);
}

/* None does any more. Whether the one that was to fail was made. */
static inline bool disarm(void)
{
	bool failed = !READ_ONCE(current->fail_nth);

	WRITE_ONCE(current->fail_nth, 0);
	atomic_add(failed, &kfi_failures);
	return failed;
}

#endif /* CONFIG_FAULT_INJECTION */

#endif /* KFI_TEST_FAILING_H */
