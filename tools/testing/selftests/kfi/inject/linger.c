// SPDX-License-Identifier: GPL-2.0
/*
 * Softirq that takes its time between the end of a poll and asking for the next interrupt, and who doesn't
 * wait for it.
 *
 * ib_poll_handler() does so after irq_poll_complete(), so irq_poll_disable() doesn't know of it.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/export.h>
#include <linux/percpu.h>

#include "inject.h"

static unsigned int linger_ms;
static atomic_t destroyed;

/* With which queue each CPU is at it; NULL if that was destroyed. */
static DEFINE_PER_CPU(struct ib_cq *, lingering);

/**
 * linger() - Softirq is about to ask for the next interrupt.
 * @cq: Of what.
 *
 * Return: Whether there is still a queue of that kind.
 */
bool linger(struct ib_cq *cq)
{
	unsigned int ms = READ_ONCE(linger_ms);

	if (!ms)
		return true;
	this_cpu_write(lingering, cq);
	mdelay(ms);
	return this_cpu_xchg(lingering, NULL);
}

/**
 * linger_destroy() - A completion queue is to be destroyed.
 * @cq: Which.
 */
void linger_destroy(struct ib_cq *cq)
{
	int cpu;

	for_each_online_cpu(cpu)
		if (cmpxchg(per_cpu_ptr(&lingering, cpu), cq, NULL) == cq)
			atomic_inc(&destroyed);
}

void kfi_inject_linger(unsigned int ms)
{
	atomic_set(&destroyed, 0);
	WRITE_ONCE(linger_ms, ms);
}
EXPORT_SYMBOL_GPL(kfi_inject_linger);

unsigned int kfi_inject_destroyed(void)
{
	return atomic_read(&destroyed);
}
EXPORT_SYMBOL_GPL(kfi_inject_destroyed);
