// SPDX-License-Identifier: GPL-2.0
/*
 * Allocations that fail where the connection manager tells of an event, which is in tasks of its own. A
 * probe sets them to fail for the time of each event, and of nothing else: what the device's own tasks
 * can't send they give up.
 */
#include <linux/kprobes.h>

#include "attempt.h"
#include "failing.h"

#if defined(CONFIG_FAULT_INJECTION) && defined(CONFIG_KRETPROBES)

/* Which allocation of each event is to fail; 0 if none is. How many have. */
static unsigned int meant;
static atomic_t failures;

static int handler_begins(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	arm(READ_ONCE(meant));
	return 0;
}

static int handler_ends(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	if (disarm() && READ_ONCE(meant))
		atomic_inc(&failures);
	return 0;
}

static struct kretprobe probe = {
	.kp.symbol_name = "cma_cm_event_handler",
	.entry_handler = handler_begins,
	.handler = handler_ends,
};

static unsigned int failed_since(int before)
{
	WRITE_ONCE(meant, 0);
	return atomic_read(&failures) - before;
}

void ep_handlers_case(struct kfi_test *t)
{
	unsigned int nth, failed = 1, refused = 0, came[EP_OUTCOMES] = {};
	enum ep_outcome outcome;
	struct ep_pair *p;
	int before;

	if (!needs_feature(t, F_DEVICE))
		return;
	p = ep_listening(t, NULL);
	if (p && !EXPECT_EQ(t, register_kretprobe(&probe), 0)) {
		ep_pair_close(t, p);
		return;
	}
	for (nth = 1; p && failed && nth < MAX_NTH && !t->failures; nth++) {
		ep_attempt_close(t, p);
		before = atomic_read(&failures);
		WRITE_ONCE(meant, nth);
		outcome = ep_attempt(t, p);
		failed = failed_since(before);
		refused += failed;
		came[outcome]++;
		EXPECT(t, failed || outcome == EP_UP, "no connection, and nothing has failed");
	}
	ktap_note("%u failed: %u up, %u refused, %u failed", refused, came[EP_UP], came[EP_REFUSED],
		  came[EP_FAILED]);
	EXPECT(t, refused, "no allocation has failed");
	if (p) {
		ep_pair_close(t, p);
		unregister_kretprobe(&probe);
	}
}

#else

void ep_handlers_case(struct kfi_test *t)
{
	ktap_skip(t, "the kernel has no kretprobes");
}

#endif
