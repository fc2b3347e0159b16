// SPDX-License-Identifier: GPL-2.0
/* Random calls that make memory regions and use them. */
#include <kfi_raw_ext.h>

#include "random.h"
#include "errnos.h"

static u64 rights(u16 a)
{
	return a % 4 ? RANDOM_RIGHTS : random_flags(a >> 2, RANDOM_RIGHTS);
}

/* Registration calls take any object for a domain and refuse it. */
static struct kfid_domain *domain_or_not(struct random_world *w, u16 a)
{
	struct kfid *fid = a % 32 == 0 ? random_fid(w, a >> 4) : random_object(w, DOMAIN, a);

	if (IS_ERR_OR_NULL(fid) || fid->fclass != KFI_CLASS_DOMAIN)
		w->want = -KFI_EINVAL;
	return (struct kfid_domain *)fid;
}

static ssize_t mr_reg_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	size_t len;
	void *buf = random_buffer(w, a[1], a[2], &len);

	return kfi_mr_reg(domain_or_not(w, a[0]), buf, len, rights(a[3]), a[3] == U16_MAX, a[4],
			  random_flags(a[4] | 1, 0), random_place(w, MR, a[5]), w);
}

static ssize_t mr_regv_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	size_t count = random_kvecs(w, a[1], a[2]);

	return kfi_mr_regv(domain_or_not(w, a[0]), a[1] % 64 ? w->kv : NULL, count, rights(a[3]), 0, a[4],
			   random_flags(a[4], 0), random_place(w, MR, a[5]), w);
}

static ssize_t mr_regbv_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	size_t count = random_bvecs(w, a[1], a[2]);

	return kfi_mr_regbv(domain_or_not(w, a[0]), a[1] % 64 ? w->bv : NULL, count, rights(a[3]), 0, a[4],
			    random_flags(a[4], 0), random_place(w, MR, a[5]), w);
}

static ssize_t mr_regsgl_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	unsigned int first = a[1] % w->mapped;

	/* One entry more than there are is the end of the list. */
	return kfi_mr_regsgl(domain_or_not(w, a[0]), a[1] % 64 ? &w->sg[first] : NULL,
			     a[2] % (w->mapped - first + 2), rights(a[3]), 0, a[4], random_flags(a[4], 0),
			     random_place(w, MR, a[5]), w);
}

static ssize_t mr_regattr_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct kfi_mr_attr attr = {
		.type = KFI_KVEC,
		.mr_iov = w->kv,
		.iov_count = random_kvecs(w, a[1], a[2]),
		.access = rights(a[3]),
		.offset = a[4] % 128 == 0,
		.requested_key = a[4],
		.context = w,
		.auth_key_size = a[4] % 16 == 1 ? a[3] % 300 : 0,
		.auth_key = a[4] % 32 == 1 ? NULL : w->room,
	};

	if (a[4] % 4 == 2) {
		attr.type = KFI_BVEC;
		attr.mr_biov = w->bv;
		attr.iov_count = random_bvecs(w, a[1], a[2]);
	}
	if (a[4] % 64 == 3)
		attr.type = 0x77;
	return kfi_mr_regattr(domain_or_not(w, a[0]), a[4] % 128 == 5 ? NULL : a[4] % 128 == 6 ? ERR_PTR(-ENOMEM) :
			      &attr, random_flags(a[4] >> 3, 0), random_place(w, MR, a[5]));
}

static ssize_t mr_bind_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct kfid *fid = a[2] % 8 ? random_any(w, EP, a[1]) : random_fid(w, a[1]);

	return kfi_mr_bind(random_object(w, MR, a[0]), fid, random_flags(a[2], KFI_REMOTE_WRITE));
}

static ssize_t mr_enable_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct kfid_mr *mr = random_object(w, MR, a[0]);

	return a[1] % 4 ? kfi_mr_enable(mr) : kfi_mr_enable_more(mr);
}

static ssize_t mr_refresh_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	size_t count = random_kvecs(w, a[1], a[2]);

	return kfi_mr_refresh(random_object(w, MR, a[0]), a[3] % 2 ? NULL : w->kv, a[3] % 4 == 1 ? 0 : count,
			      random_flags(a[4], 0));
}

static ssize_t mr_raw_attr_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	size_t size = a[1] % 4 ? sizeof(w->room) : a[1] % 100;
	u64 base;

	return kfi_mr_raw_attr(random_object(w, MR, a[0]), a[2] % 32 ? &base : NULL, a[3] % 32 ? w->room : NULL,
			       a[4] % 32 ? &size : NULL, random_flags(a[5], 0));
}

/* The raw key is what is in the room: mostly one that the call before has put there, with a byte changed. */
static ssize_t mr_map_raw_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	unsigned int n = a[0] % ARRAY_SIZE(w->raw);
	u64 key = w->raw[n];
	int ret;

	if (a[1] % 2)
		w->room[a[1] % 64] ^= a[2];
	ret = kfi_mr_map_raw(w->p->side[n % 2].domain, a[3] % 4 ? 0 : U64_MAX - a[3], a[4] % 32 ? w->room : NULL,
			     KFI_RAW_KEY_SIZE(1 + a[4] % 3) - (a[4] % 16 == 1), key ? NULL : &key,
			     random_flags(a[5], 0));
	if (w->raw[n])
		w->want = -KFI_EINVAL;
	else if (ret)
		EXPECT(w->t, key == KFI_KEY_NOTAVAIL || (!key && ret == -KFI_EINVAL), "the key is %#llx", key);
	else
		w->raw[n] = key;
	return ret;
}

static ssize_t mr_unmap_key_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	unsigned int n = a[0] % ARRAY_SIZE(w->raw);
	u64 key = a[1] % 4 ? w->raw[n] : a[1];
	int ret = kfi_mr_unmap_key(w->p->side[n % 2].domain, key);

	if (!ret)
		w->raw[n] = 0;
	return ret;
}

const struct random_call random_region_calls[] = {
	CALL(mr_reg), CALL(mr_regv), CALL(mr_regbv), CALL(mr_regsgl), CALL(mr_regattr), CALL(mr_bind),
	CALL(mr_enable), CALL(mr_refresh), CALL(mr_raw_attr), CALL(mr_map_raw), CALL(mr_unmap_key), {}
};
