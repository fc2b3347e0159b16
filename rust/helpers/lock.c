// SPDX-License-Identifier: GPL-2.0
/* A spinlock that is taken with interrupts off: spin_lock_irqsave() and its kin are macros. */
#include <linux/irqflags.h>
#include <linux/spinlock.h>

#include "inline.h"
#include "kfabric_helpers.h"

KFI_HELPER unsigned long kfi_helper_lock_irqsave(spinlock_t *lock) __acquires(lock)
{
	unsigned long flags;

	spin_lock_irqsave(lock, flags);
	return flags;
}

KFI_HELPER bool kfi_helper_trylock_irqsave(spinlock_t *lock, unsigned long *flags)
{
	return spin_trylock_irqsave(lock, *flags);
}

KFI_HELPER void kfi_helper_unlock_irqrestore(spinlock_t *lock, unsigned long flags) __releases(lock)
{
	spin_unlock_irqrestore(lock, flags);
}

KFI_HELPER bool kfi_helper_irqs_disabled(void)
{
	return irqs_disabled();
}
