/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The registration calls as one: a request says which call with which arguments, so that a test
 * can spoil an argument without knowing the call.
 */
#ifndef KFI_TEST_REQUEST_H
#define KFI_TEST_REQUEST_H

#include "env.h"

/* The calls; kfi_mr_regattr() counts once for each type of list. */
enum reg_call {
	REG,
	REGV,
	REGBV,
	REGSGL,
	ATTR_KVEC,
	ATTR_BVEC,
	ATTR_SGL,
	REG_CALLS
};

/* Sets of calls. */
#define ALL_CALLS	GENMASK(REG_CALLS - 1, 0)
#define BUF_CALLS	BIT(REG)
#define KVEC_CALLS	(BIT(REGV) | BIT(ATTR_KVEC))
#define BVEC_CALLS	(BIT(REGBV) | BIT(ATTR_BVEC))
#define SGL_CALLS	(BIT(REGSGL) | BIT(ATTR_SGL))
#define LIST_CALLS	(KVEC_CALLS | BVEC_CALLS | SGL_CALLS)
#define ATTR_CALLS	(BIT(ATTR_KVEC) | BIT(ATTR_BVEC) | BIT(ATTR_SGL))

/**
 * struct reg_req - a registration request
 * @call: Which call. Of the lists below only the call's own kind counts.
 * @domain: The domain.
 * @no_mr: Give no output pointer.
 * @no_attr: Give no attributes.
 * @attr_error: Give an error pointer as attributes.
 * @type: The list's type, for the attributes.
 * @buf: The buffer, for kfi_mr_reg().
 * @len: Its length.
 * @kv: The list.
 * @bv: The list.
 * @sg: The list.
 * @count: The list's length.
 * @access: As in the calls.
 * @offset: As in the calls.
 * @key: As in the calls.
 * @flags: As in the calls.
 * @context: As in the calls.
 * @auth_key: For the attributes.
 * @auth_key_size: For the attributes.
 * @value: For who spoils the request.
 * @mapped: How many entries of the environment's list the DMA extension has mapped.
 */
struct reg_req {
	enum reg_call call;
	struct kfid_domain *domain;
	bool no_mr;
	bool no_attr;
	bool attr_error;
	int type;
	const void *buf;
	size_t len;
	struct kvec *kv;
	struct bio_vec *bv;
	struct scatterlist *sg;
	size_t count;
	u64 access;
	u64 offset;
	u64 key;
	u64 flags;
	void *context;
	u8 *auth_key;
	size_t auth_key_size;
	u64 value;
	int mapped;
};

/*
 * How a buffer becomes a list: SPLIT_NONE makes as few segments as the kind of list allows. The
 * others cut at every multiple of their number of bytes, counted from the page that the buffer
 * begins in.
 */
#define SPLIT_NONE	0

const char *reg_call_name(unsigned int call);
size_t reg_segments(enum reg_call call, const void *mem, size_t len, size_t split);
int reg_prepare(struct kfi_env *env, struct reg_req *req, enum reg_call call, void *mem, size_t len,
		size_t split);
void reg_finish(struct kfi_env *env, struct reg_req *req);
int reg_submit(const struct reg_req *req, struct kfid_mr **mr);
int reg_simple(struct kfi_env *env, void *buf, size_t len, u64 access, struct kfid_mr **mr);

static inline bool reg_call_in(enum reg_call call, u32 calls)
{
	return BIT(call) & calls;
}

#endif /* KFI_TEST_REQUEST_H */
