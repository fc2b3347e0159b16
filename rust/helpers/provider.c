// SPDX-License-Identifier: GPL-2.0
/*
 * The reference that a struct kfi_provider carries: one is held while the provider is registered,
 * one by each user. The completion fires when the last is gone.
 */
#include <linux/completion.h>

#include <kfabric.h>
#include <kfi_prov.h>

#include "kfabric_helpers.h"

void kfi_helper_provider_init(struct kfi_provider *provider)
{
	init_completion(&provider->comp);
	atomic_set(&provider->ref_cnt, 1);
}

void kfi_helper_provider_get(struct kfi_provider *provider)
{
	atomic_inc(&provider->ref_cnt);
}

void kfi_helper_provider_put(struct kfi_provider *provider)
{
	if (atomic_dec_and_test(&provider->ref_cnt))
		complete(&provider->comp);
}

/* Drops the registration's reference and sleeps until every user is gone. */
void kfi_helper_provider_drain(struct kfi_provider *provider)
{
	kfi_helper_provider_put(provider);
	wait_for_completion(&provider->comp);
}
