/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The conformance suite: what kfi_mr(3) and fi_mr(3) say, over any provider.
 *
 * Cases know no provider. They open a place (a domain in some mr_mode, with a remote side) and
 * register memory there by whatever calls. Then they have the remote side reach it. The remote side
 * of each provider is in its struct provider. A case belongs to a feature of the table
 * (features.def). If the provider lacks the feature, the case checks for the errno in the table.
 */
#ifndef KFI_CONFORM_H
#define KFI_CONFORM_H

#include "env.h"
#include "request.h"

/* The modes in which a region is good at once and is one piece. */
#define MODE_DEFAULT	0
#define MODE_BASIC	(KFI_MR_VIRT_ADDR | KFI_MR_PROV_KEY)
#define MODE_RAW	(MODE_BASIC | KFI_MR_RAW)

struct place;

/**
 * struct provider - what is tested
 * @name: Its prov_name.
 * @device: Returns the device of a domain, or NULL.
 * @mapped_keys: Whether its remote side takes keys that the initiator's domain has mapped. Otherwise
 *	a case takes them apart itself.
 * @attach: Makes the remote side of a place. Returns 0 or an errno.
 * @detach: Undoes that.
 * @connects: How often the remote side has had to connect; a refused access may cost a connection.
 * @read: Gets bytes out of a region, as a peer does. Returns 0, -EACCES if the target refused, or
 *	another errno if something else went wrong.
 * @write: Puts bytes into a region.
 */
struct provider {
	const char *name;
	struct ib_device *(*device)(struct kfid_domain *domain);
	bool mapped_keys;
	int (*attach)(struct place *p);
	void (*detach)(struct place *p);
	unsigned int (*connects)(struct place *p);
	int (*read)(struct place *p, u64 addr, u64 key, void *buf, size_t len);
	int (*write)(struct place *p, u64 addr, u64 key, const void *buf, size_t len);
};

extern const struct provider provider_verbs;
extern const struct provider provider_loop;
extern const struct provider *under_test;

/**
 * struct place - a domain and its remote side
 * @env: The suite's environment, but with this domain.
 * @info: The info that the domain was opened with; its own.
 * @mode: The domain's mr_mode.
 * @target: The object that the remote side accesses, for providers that care; the domain at first.
 * @initiator: The object that accesses, for providers that care; NULL at first.
 * @remote: The provider's own.
 */
struct place {
	struct kfi_env env;
	struct kfi_info *info;
	int mode;
	struct kfid *target;
	struct kfid *initiator;
	void *remote;
};

/**
 * struct check - a case of the table
 * @feature: The feature that it belongs to.
 * @run: Where the provider has the feature.
 * @refused: Where it hasn't: expects the errno of the table.
 */
struct check {
	enum feature feature;
	void (*run)(struct kfi_test *t);
	void (*refused)(struct kfi_test *t);
};

#define CHECK(_name, _variants, _feature, _run, _refused) {			\
	.name = _name,								\
	.run = run_check,							\
	.variants = _variants,							\
	.data = &(const struct check) {						\
		.feature = _feature, .run = _run, .refused = _refused,		\
	},									\
}

/* Features that no provider may lack. */
#define ALWAYS(_name, _variants, _feature, _run)	\
	CHECK(_name, _variants, _feature, _run, NULL)

void run_check(struct kfi_test *t);

/**
 * struct section - cases that belong together
 * @cases: The cases.
 * @count: How many.
 */
struct section {
	const struct kfi_case *cases;
	unsigned int count;
};

#define SECTION(_name)	\
	const struct section _name = { .cases = cases, .count = ARRAY_SIZE(cases) }

extern const struct section section_regions;
extern const struct section section_refusals;
extern const struct section section_modes;
extern const struct section section_combine;
extern const struct section section_keys;
extern const struct section section_async;
extern const struct section section_bind;
extern const struct section section_endpoints;
extern const struct section section_connected;
extern const struct section section_enable;
extern const struct section section_raw;
extern const struct section section_gaps;
extern const struct section section_refresh;
extern const struct section section_absent;

/* place.c */
struct kfi_info *hints_for(int mode);
int ask(struct kfi_info *hints, struct kfi_info **info);
struct kfi_info *offer_of(struct kfi_test *t, int mode);
bool has_offer(struct kfi_test *t, int mode);
int mode_with(struct kfi_test *t, int bit);
struct place *place_open(struct kfi_test *t, int mode);
struct place *place_open_info(struct kfi_test *t, const struct kfi_info *info);
void place_close(struct kfi_test *t, struct place *p);
void in_each_mode(struct kfi_test *t, void (*run)(struct kfi_test *t, struct place *p));

/* check.c */
bool reaches(struct kfi_test *t, struct place *p, u64 addr, u64 key, u8 *mem, size_t len);
bool refuses(struct kfi_test *t, struct place *p, u64 addr, u64 key, u8 *mem, size_t len);
bool good(struct kfi_test *t, struct place *p, struct kfid_mr *mr, u8 *mem, size_t len);
void close_mr(struct kfi_test *t, struct kfid_mr *mr);

/* absent.c: each expects the errno of the table. */
void refused_default(struct kfi_test *t);
void refused_rma_events(struct kfi_test *t);
void refused_endpoints(struct kfi_test *t);
void refused_refresh(struct kfi_test *t);
void refused_auth_keys(struct kfi_test *t);

static inline int register_buf(struct place *p, void *buf, size_t len, u64 access,
			       struct kfid_mr **mr)
{
	return kfi_mr_reg(p->env.domain, buf, len, access, 0, 0, 0, mr, NULL);
}

#endif /* KFI_CONFORM_H */
