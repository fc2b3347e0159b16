// SPDX-License-Identifier: GPL-2.0
/* Queues, counters, wait and poll sets, address vectors without operations: see slots.h. */
#include <kfi_domain.h>
#include <kfi_eq.h>

#include "bare.h"

const char *bare_table_name(unsigned int variant)
{
	static const char *const names[] = { "no_table", "empty", "sized", "too_short" };

	return names[variant];
}

static void eq(struct kfi_test *t, union bare_ops *ops)
{
	struct kfid_eq eq = { .ops = BARE(ops, t->variant, struct kfi_ops_eq) };
	struct kfi_eq_err_entry err;
	char text[8];
	u32 event;

	NOSYS(t, kfi_eq_read(&eq, &event, text, sizeof(text), 0));
	NOSYS(t, kfi_eq_readerr(&eq, &err, 0));
	NOSYS(t, kfi_eq_write(&eq, 0, text, sizeof(text), 0));
	NOSYS(t, kfi_eq_sread(&eq, &event, text, sizeof(text), 0, 0));
	EXPECT(t, kfi_eq_strerror(&eq, 1, NULL, text, sizeof(text)), "no text");
}

static void cq(struct kfi_test *t, union bare_ops *ops)
{
	struct kfid_cq cq = { .ops = BARE(ops, t->variant, struct kfi_ops_cq) };
	struct kfi_cq_err_entry err;
	kfi_addr_t from;
	char text[8];

	NOSYS(t, kfi_cq_read(&cq, text, 1));
	NOSYS(t, kfi_cq_readfrom(&cq, text, 1, &from));
	NOSYS(t, kfi_cq_readerr(&cq, &err, 0));
	NOSYS(t, kfi_cq_sread(&cq, text, 1, NULL, 0));
	NOSYS(t, kfi_cq_sreadfrom(&cq, text, 1, &from, NULL, 0));
	NOSYS(t, kfi_cq_signal(&cq));
	EXPECT(t, kfi_cq_strerror(&cq, 1, NULL, text, sizeof(text)), "no text");
}

static void cntr(struct kfi_test *t, union bare_ops *ops)
{
	struct kfid_cntr cntr = { .ops = BARE(ops, t->variant, struct kfi_ops_cntr) };

	EXPECT_EQ(t, kfi_cntr_read(&cntr), 0);
	EXPECT_EQ(t, kfi_cntr_readerr(&cntr), 0);
	NOSYS(t, kfi_cntr_add(&cntr, 1));
	NOSYS(t, kfi_cntr_adderr(&cntr, 1));
	NOSYS(t, kfi_cntr_set(&cntr, 1));
	NOSYS(t, kfi_cntr_seterr(&cntr, 1));
	NOSYS(t, kfi_cntr_wait(&cntr, 1, 0));
}

static void sets(struct kfi_test *t, union bare_ops *ops)
{
	struct kfid_wait wait = { .ops = BARE(ops, t->variant, struct kfi_ops_wait) };
	struct kfid_poll poll = { .ops = BARE(ops, t->variant, struct kfi_ops_poll) };
	void *context;

	NOSYS(t, kfi_wait(&wait, 0));
	NOSYS(t, kfi_poll(&poll, &context, 1));
	NOSYS(t, kfi_poll_add(&poll, &wait.kfid, 0));
	NOSYS(t, kfi_poll_del(&poll, &wait.kfid, 0));
}

static void av(struct kfi_test *t, union bare_ops *ops)
{
	struct kfid_av av = {
		.fid.ops = BARE(ops, t->variant, struct kfi_ops),
		.ops = BARE(ops, t->variant, struct kfi_ops_av),
	};
	size_t len = 8;
	kfi_addr_t name;
	char text[8];

	NOSYS(t, kfi_av_bind(&av, &av.fid, 0));
	NOSYS(t, kfi_av_insert(&av, text, 1, &name, 0, NULL));
	NOSYS(t, kfi_av_insertsvc(&av, "node", "service", &name, 0, NULL));
	NOSYS(t, kfi_av_insertsym(&av, "node", 1, "service", 1, &name, 0, NULL));
	NOSYS(t, kfi_av_remove(&av, &name, 1, 0));
	NOSYS(t, kfi_av_lookup(&av, 0, text, &len));
	EXPECT(t, kfi_av_straddr(&av, text, text, &len), "no text");
}

void bare_queues_case(struct kfi_test *t)
{
	union bare_ops ops;

	eq(t, &ops);
	cq(t, &ops);
	cntr(t, &ops);
	sets(t, &ops);
	av(t, &ops);
}
