// SPDX-License-Identifier: GPL-2.0
/* Restriction of a task's memory allocations. */
#include <linux/sched/mm.h>

#include "inline.h"
#include "kfabric_helpers.h"

/* Allocations between save and restore don't wait for I/O, whatever their flags say. */
KFI_HELPER unsigned int kfi_helper_noio_save(void)
{
	return memalloc_noio_save();
}

KFI_HELPER void kfi_helper_noio_restore(unsigned int flags)
{
	memalloc_noio_restore(flags);
}

KFI_HELPER bool kfi_helper_in_noio(void)
{
	return current->flags & PF_MEMALLOC_NOIO;
}

/* Is the current task on its way to free memory, so that it may take what is left of it? Process context. */
KFI_HELPER bool kfi_helper_frees_memory(void)
{
	return current->flags & PF_MEMALLOC;
}
