// SPDX-License-Identifier: GPL-2.0
/* What every refusal must look like: see errors.h. */
#include "errors.h"

/* What *mr holds before a call: a call that doesn't write it is noticed. */
#define UNTOUCHED	((struct kfid_mr *)0x5a5a5a5a)

/**
 * expect_refused() - The request gives this errno and has no other effect.
 * @t: The test.
 * @req: The request.
 * @want: The errno, negative.
 */
void expect_refused(struct kfi_test *t, const struct reg_req *req, int want)
{
	struct kfid_mr *mr = UNTOUCHED;
	int ret = reg_submit(req, &mr);

	if (!ret) {
		EXPECT(t, false, "accepted, expected %d", want);
		if (mr && mr != UNTOUCHED)
			EXPECT_EQ(t, kfi_close(&mr->fid), 0);
		return;
	}
	if (!EXPECT_EQ(t, ret, want))
		return;
	if (req->no_mr)
		EXPECT(t, mr == UNTOUCHED, "*mr was written");
	else
		EXPECT(t, !mr, "*mr is not NULL");
	t->env->refused[-want]++;
}

/* The domain works: memory can be registered by the same call, and a peer reaches it. */
void expect_works(struct kfi_test *t, enum reg_call call)
{
	u8 *mem = arena_at(t->env, MEM_PAGES, ROW_ALIGN);
	struct reg_req req;
	struct kfid_mr *mr;

	if (!EXPECT_EQ(t, reg_prepare(t->env, &req, call, mem, ROW_LEN, PAGE_SIZE), 0))
		return;
	if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
		check_region(t, mr, mem, ROW_LEN);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
	reg_finish(t->env, &req);
}

void run_row(struct kfi_test *t)
{
	const struct row *row = t->c->data;
	u8 *mem = arena_at(t->env, MEM_KMALLOC, ROW_ALIGN);
	struct reg_req req;

	if (!EXPECT_EQ(t, reg_prepare(t->env, &req, t->variant, mem, ROW_LEN, PAGE_SIZE), 0))
		return;
	pattern(mem - GUARD, ROW_LEN + 2 * GUARD, 7);
	req.value = row->value;
	t->skip = row->spoil(t->env, &req);
	if (!t->skip) {
		expect_refused(t, &req, row->want);
		if (row->alone && req.count > 1) {
			struct reg_req alone = req;

			alone.kv++;
			alone.bv++;
			alone.sg++;
			alone.count = 1;
			expect_refused(t, &alone, row->want);
		}
		EXPECT(t, pattern_is(mem - GUARD, ROW_LEN + 2 * GUARD, 7), "memory was changed");
	}
	if (row->restore)
		row->restore(t->env, &req);
	reg_finish(t->env, &req);
	if (!t->skip)
		expect_works(t, t->variant);
}

/* For the shell, which looks for as many events. */
void report_refused(struct kfi_env *env)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(env->refused); i++)
		if (env->refused[i])
			ktap_note("refused %d %u", -i, env->refused[i]);
}
