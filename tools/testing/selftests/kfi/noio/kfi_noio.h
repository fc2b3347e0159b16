/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Is the calling task allowed to wait for I/O, where somebody relies on it not to?
 *
 * Between begin and end two watches look at each allocation of the task: tracepoints of the slab
 * allocator, on any kernel, and lockdep where it is there. To lockdep the task looks like one that
 * holds a lock which is also taken to free memory. So waiting for memory, under any lock that is
 * taken meanwhile, would be a deadlock.
 */
#ifndef KFI_NOIO_H
#define KFI_NOIO_H

#include <linux/types.h>

/* One task at a time. Sleeps. Returns 0 or an errno. */
int kfi_noio_begin(void);

/* Returns how many allocations could have waited for I/O. The log says which. */
unsigned int kfi_noio_end(void);

#endif /* KFI_NOIO_H */
