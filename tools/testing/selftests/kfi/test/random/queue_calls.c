// SPDX-License-Identifier: GPL-2.0
/* Random calls on event queues, completion queues and counters. No wait lasts longer than a millisecond. */
#include "random.h"
#include "errnos.h"

/* The largest entry of a completion queue is in KFI_CQ_FORMAT_TAGGED. */
#define ENTRIES	(sizeof(((struct random_world *)0)->room) / sizeof(struct kfi_cq_tagged_entry))

static ssize_t eq_open_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct kfi_eq_attr attr = {
		.size = a[1] % 8 ? a[1] % 64 : SIZE_MAX - a[1],
		.flags = random_flags(a[2], KFI_WRITE),
		.wait_obj = a[3] % 8,
	};

	return kfi_eq_open(random_object(w, FABRIC, a[0]), a[3] % 32 == 31 ? ERR_PTR(-ENOMEM) :
			   a[3] % 16 == 1 ? NULL : &attr, random_place(w, EQ, a[4]), NULL, w);
}

/* The info of a request is the reader's. */
static void took(struct random_world *w, u32 event, const struct kfi_eq_cm_entry *entry, ssize_t len)
{
	if (len < (ssize_t)sizeof(*entry) || event != KFI_CONNREQ || !entry->info)
		return;
	kfi_freeinfo(w->request);
	w->request = entry->info;
}

static ssize_t read_event(struct random_world *w, const u16 a[STEP_NUMBERS], bool waits)
{
	struct kfid_eq *eq = random_object(w, EQ, a[0]);
	u64 flags = a[1] % 4 ? 0 : random_flags(a[1] >> 2, KFI_PEEK);
	void *buf = a[2] % 32 ? w->room : NULL;
	size_t len = a[3] % 8 ? sizeof(w->room) : a[3] % 100;
	u32 event = 0, *at = a[4] % 32 ? &event : NULL;
	ssize_t ret;

	ret = waits ? kfi_eq_sread(eq, at, buf, len, a[5] % 64 == 0, flags) : kfi_eq_read(eq, at, buf, len, flags);
	if (!flags)
		took(w, event, buf, ret);
	return ret;
}

static ssize_t eq_read_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	return read_event(w, a, false);
}

static ssize_t eq_sread_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	return read_event(w, a, true);
}

static ssize_t eq_readerr_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct kfi_eq_err_entry entry = {};

	return kfi_eq_readerr(random_object(w, EQ, a[0]), a[1] % 32 ? &entry : NULL, random_flags(a[2], KFI_PEEK));
}

/* Nothing is in the event, so that a reader finds no info. */
static ssize_t eq_write_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	memset(w->room, 0, sizeof(w->room));
	return kfi_eq_write(random_object(w, EQ, a[0]), a[1] % 16, a[2] % 32 ? w->room : NULL, a[3] % 160,
			    random_flags(a[4], 0));
}

static ssize_t cq_open_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct kfi_cq_attr attr = {
		.size = a[1] % 8 ? a[1] % 64 : SIZE_MAX - a[1],
		.flags = random_flags(a[2], KFI_AFFINITY),
		.format = a[3] % 6,
		.wait_obj = a[3] >> 3 & 7,
		.signaling_vector = a[4] % 8 - 1,
		.wait_cond = a[4] >> 3 & 3,
	};

	return kfi_cq_open(random_object(w, DOMAIN, a[0]), a[4] % 32 == 31 ? ERR_PTR(-ENOMEM) :
			   a[4] % 16 == 1 ? NULL : &attr, random_place(w, CQ, a[5]), NULL, w);
}

static ssize_t cq_read_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	return kfi_cq_read(random_object(w, CQ, a[0]), a[1] % 32 ? w->room : NULL, a[2] % ENTRIES);
}

static ssize_t cq_readfrom_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	kfi_addr_t from[ENTRIES];

	return kfi_cq_readfrom(random_object(w, CQ, a[0]), a[1] % 32 ? w->room : NULL, a[2] % ENTRIES,
			       a[3] % 4 ? from : NULL);
}

static ssize_t cq_readerr_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct kfi_cq_err_entry entry = {};

	return kfi_cq_readerr(random_object(w, CQ, a[0]), a[1] % 32 ? &entry : NULL, random_flags(a[2], 0));
}

static ssize_t cq_sread_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	size_t threshold = a[4] % 8 ? a[4] % 4 : SIZE_MAX;

	return kfi_cq_sread(random_object(w, CQ, a[0]), a[1] % 32 ? w->room : NULL, a[2] % ENTRIES,
			    a[3] % 2 ? &threshold : NULL, a[5] % 64 == 0);
}

static ssize_t cq_signal_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	return kfi_cq_signal(random_object(w, CQ, a[0]));
}

static ssize_t cntr_open_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct kfi_cntr_attr attr = {
		.events = a[1] % 16 == 1,
		.wait_obj = a[2] % 8,
		.flags = random_flags(a[3], 0),
	};

	return kfi_cntr_open(random_object(w, DOMAIN, a[0]), a[1] % 32 == 31 ? ERR_PTR(-ENOMEM) :
			     a[1] % 16 == 2 ? NULL : &attr, random_place(w, CNTR, a[4]), w);
}

static ssize_t cntr_set_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct kfid_cntr *cntr = random_object(w, CNTR, a[0]);

	kfi_cntr_read(cntr);
	return kfi_cntr_set(cntr, a[1] % 4 ? a[1] : U64_MAX - a[1]);
}

static ssize_t cntr_seterr_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct kfid_cntr *cntr = random_object(w, CNTR, a[0]);

	kfi_cntr_readerr(cntr);
	return kfi_cntr_seterr(cntr, a[1]);
}

static ssize_t cntr_add_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	return kfi_cntr_add(random_object(w, CNTR, a[0]), a[1] % 4 ? a[1] : U64_MAX - a[1]);
}

static ssize_t cntr_adderr_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	return kfi_cntr_adderr(random_object(w, CNTR, a[0]), a[1]);
}

static ssize_t cntr_wait_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	return kfi_cntr_wait(random_object(w, CNTR, a[0]), a[1] % 4 ? a[1] : U64_MAX, a[2] % 64 == 0);
}

const struct random_call random_queue_calls[] = {
	CALL(eq_open), CALL(eq_read), CALL(eq_sread), CALL(eq_readerr), CALL(eq_write), CALL(cq_open), CALL(cq_read),
	CALL(cq_readfrom), CALL(cq_readerr), CALL(cq_sread), CALL(cq_signal), CALL(cntr_open), CALL(cntr_set),
	CALL(cntr_seterr), CALL(cntr_add), CALL(cntr_adderr), CALL(cntr_wait), {}
};
