// SPDX-License-Identifier: GPL-2.0
/* The common properties of every refusal: see errors.h. */
#include "errors.h"
#include "transfers.h"

/* The content of *mr before a call: a call that doesn't write it is noticed. */
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

/**
 * expect_refused_memory() - The request gives this errno whatever its memory is for.
 * @t: The test.
 * @req: The request.
 * @want: The errno, negative.
 * @writes: Whether that holds only if somebody may write to the memory.
 */
void expect_refused_memory(struct kfi_test *t, const struct reg_req *req, int want, bool writes)
{
	static const u64 reading[] = { KFI_REMOTE_READ, KFI_SEND, KFI_WRITE };
	struct reg_req readable = *req;
	int i;

	if (kfi_transfers)
		return transfers_refused(t, req, want, writes);
	expect_refused(t, req, want);
	for (i = 0; i < ARRAY_SIZE(reading) && !writes && req->access == KFI_REMOTE; i++) {
		readable.access = reading[i];
		expect_refused(t, &readable, want);
	}
}

/* Submits a request, and undoes it. Returns what the call has returned. */
int try_request(struct kfi_test *t, const struct reg_req *req)
{
	struct kfid_mr *mr;
	int ret;

	if (kfi_transfers)
		return transfers_try(t, req);
	ret = reg_submit(req, &mr);
	if (!ret)
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	return ret;
}

/* Memory can be registered by this call, in segments as reg_prepare() makes them, and a peer reaches it. */
void expect_registered(struct kfi_test *t, enum reg_call call, u8 *mem, size_t len, size_t split)
{
	struct reg_req req;
	struct kfid_mr *mr;

	if (kfi_transfers)
		return transfers_work(t, call, mem, len, split);
	if (!EXPECT_EQ(t, reg_prepare(t->env, &req, call, mem, len, split), 0))
		return;
	if (EXPECT_EQ(t, reg_submit(&req, &mr), 0)) {
		check_region(t, mr, mem, len);
		EXPECT_EQ(t, kfi_close(&mr->fid), 0);
	}
	reg_finish(t->env, &req);
}

/* The domain works: memory can be registered by the same call. */
void expect_works(struct kfi_test *t, enum reg_call call)
{
	expect_registered(t, call, arena_at(t->env, MEM_PAGES, ROW_ALIGN), ROW_LEN, PAGE_SIZE);
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
		expect_refused_memory(t, &req, row->want, row->writes);
		if (row->alone && req.count > 1) {
			struct reg_req alone = req;

			alone.kv++;
			alone.bv++;
			alone.sg++;
			alone.count = 1;
			expect_refused_memory(t, &alone, row->want, row->writes);
		}
		EXPECT(t, pattern_is(mem - GUARD, ROW_LEN + 2 * GUARD, 7), "memory was changed");
	}
	if (row->restore)
		row->restore(t->env, &req);
	reg_finish(t->env, &req);
	if (!t->skip)
		expect_works(t, t->variant);
}

/* Reports the numbers to the shell, which looks for as many events. */
void end_refusals(struct kfi_test *t)
{
	struct kfi_env *env = t->env;
	int i;

	for (i = 0; i < ARRAY_SIZE(env->refused); i++)
		if (env->refused[i])
			ktap_note("refused %d %u", -i, env->refused[i]);
	transfers_close(t);
}
