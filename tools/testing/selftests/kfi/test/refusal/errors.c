// SPDX-License-Identifier: GPL-2.0
/* Refusals of arguments that are wrong by themselves, whatever memory they are about. */
#include "errors.h"
#include "suites.h"

/* Output pointer and domain. */

static const char *null_output(struct kfi_env *env, struct reg_req *req)
{
	req->no_mr = true;
	return NULL;
}

static const char *null_domain(struct kfi_env *env, struct reg_req *req)
{
	req->domain = NULL;
	return NULL;
}

static const char *error_domain(struct kfi_env *env, struct reg_req *req)
{
	req->domain = ERR_PTR(-ENODEV);
	return NULL;
}

static const char *fabric_as_domain(struct kfi_env *env, struct reg_req *req)
{
	req->domain = (struct kfid_domain *)env->fabric;
	return NULL;
}

/* All of a domain but its class. */
static const char *wrong_class(struct kfi_env *env, struct reg_req *req)
{
	static struct kfid_domain fake;

	fake.fid.fclass = KFI_CLASS_MR;
	fake.fid.ops = env->domain->fid.ops;
	fake.ops = env->domain->ops;
	fake.mr = env->domain->mr;
	req->domain = &fake;
	return NULL;
}

/* Attributes, list, count. */

static const char *null_attr(struct kfi_env *env, struct reg_req *req)
{
	req->no_attr = true;
	return NULL;
}

static const char *type_zero(struct kfi_env *env, struct reg_req *req)
{
	req->type = 0;
	return NULL;
}

static const char *type_unknown(struct kfi_env *env, struct reg_req *req)
{
	req->type = KFI_SGL + 1;
	return NULL;
}

static const char *type_negative(struct kfi_env *env, struct reg_req *req)
{
	req->type = -1;
	return NULL;
}

static const char *null_list(struct kfi_env *env, struct reg_req *req)
{
	req->buf = NULL;
	req->kv = NULL;
	req->bv = NULL;
	req->sg = NULL;
	return NULL;
}

static const char *error_attr(struct kfi_env *env, struct reg_req *req)
{
	req->attr_error = true;
	return NULL;
}

static const char *error_list(struct kfi_env *env, struct reg_req *req)
{
	req->kv = ERR_PTR(-ENOMEM);
	req->bv = ERR_PTR(-1);
	req->sg = ERR_PTR(-MAX_ERRNO);
	return NULL;
}

static const char *null_list_of_none(struct kfi_env *env, struct reg_req *req)
{
	req->count = 0;
	return null_list(env, req);
}

static const char *count_zero(struct kfi_env *env, struct reg_req *req)
{
	req->count = 0;
	return NULL;
}

/* Authorization keys: the provider has none. */

static u8 auth_key[16];

static const char *with_auth_key(struct kfi_env *env, struct reg_req *req)
{
	req->auth_key = auth_key;
	req->auth_key_size = sizeof(auth_key);
	return NULL;
}

static const char *null_auth_key(struct kfi_env *env, struct reg_req *req)
{
	req->auth_key_size = sizeof(auth_key);
	return NULL;
}

/* Flags, access, offset. */

static const char *set_flags(struct kfi_env *env, struct reg_req *req)
{
	req->flags = req->value;
	return NULL;
}

static const char *set_access(struct kfi_env *env, struct reg_req *req)
{
	req->access = req->value;
	return NULL;
}

static const char *set_offset(struct kfi_env *env, struct reg_req *req)
{
	req->offset = req->value;
	return NULL;
}

#define FLAGS(_name, _value)	\
	ROW(_name, ALL_CALLS, -KFI_EBADFLAGS, set_flags, .value = _value)
#define ACCESS(_name, _value)	\
	ROW(_name, ALL_CALLS, -KFI_EINVAL, set_access, .value = _value)
#define OFFSET(_name, _value)	\
	ROW(_name, ALL_CALLS, -KFI_EINVAL, set_offset, .value = _value)

static const struct kfi_case cases[] = {
	ROW("null_output", ALL_CALLS, -KFI_EINVAL, null_output),
	ROW("null_domain", ALL_CALLS, -KFI_EINVAL, null_domain),
	ROW("error_domain", ALL_CALLS, -KFI_EINVAL, error_domain),
	ROW("fabric_as_domain", ALL_CALLS, -KFI_EINVAL, fabric_as_domain),
	ROW("wrong_class", ALL_CALLS, -KFI_EINVAL, wrong_class),
	ROW("null_attr", ATTR_CALLS, -KFI_EINVAL, null_attr),
	ROW("type_zero", ATTR_CALLS, -KFI_EINVAL, type_zero),
	ROW("type_unknown", ATTR_CALLS, -KFI_EINVAL, type_unknown),
	ROW("type_negative", ATTR_CALLS, -KFI_EINVAL, type_negative),
	ROW("null_list", ALL_CALLS, -KFI_EINVAL, null_list),
	ROW("error_attr", ATTR_CALLS, -KFI_EINVAL, error_attr),
	ROW("error_list", LIST_CALLS, -KFI_EINVAL, error_list),
	ROW("null_list_of_none", LIST_CALLS, -KFI_EINVAL, null_list_of_none),
	ROW("count_zero", LIST_CALLS, -KFI_EINVAL, count_zero),
	ROW("auth_key", ATTR_CALLS, -KFI_EOPNOTSUPP, with_auth_key),
	ROW("null_auth_key", ATTR_CALLS, -KFI_EINVAL, null_auth_key),
	FLAGS("flag_more", KFI_MORE),
	FLAGS("flag_rma_event", KFI_RMA_EVENT),
	FLAGS("flag_remote_write", KFI_REMOTE_WRITE),
	FLAGS("flag_bit_0", BIT_ULL(0)),
	FLAGS("flag_bit_63", BIT_ULL(63)),
	FLAGS("flags_all", ~0ULL),
	ACCESS("access_unknown", KFI_MSG),
	ACCESS("access_partly_unknown", KFI_REMOTE | KFI_RMA_PMEM),
	ACCESS("access_bit_0", KFI_REMOTE | BIT_ULL(0)),
	ACCESS("access_bit_63", KFI_REMOTE | BIT_ULL(63)),
	ACCESS("access_all", ~0ULL),
	OFFSET("offset_one", 1),
	OFFSET("offset_length", ROW_LEN),
	OFFSET("offset_max", ~0ULL),
};

const struct kfi_suite suite_errors = {
	.name = "errors",
	.cases = cases,
	.count = ARRAY_SIZE(cases),
	.variant_name = reg_call_name,
	.end = end_refusals,
};
