// SPDX-License-Identifier: GPL-2.0
/* The passive endpoints of all listeners. */
#include "server.h"

struct listener listeners[MAX_ADDRESSES];
unsigned int listener_count = 1;

/* The listener may change while requests come in. */
static DEFINE_MUTEX(pep_lock);

int listener_listen(struct listener *l)
{
	int ret, backlog = 256;
	struct kfid_pep *pep;

	ret = kfi_passive_ep(l->fabric, l->info, &pep, l);
	if (ret)
		return ret;
	ret = kfi_pep_bind(pep, &l->eq->fid, 0);
	if (!ret)
		ret = kfi_control(&pep->fid, KFI_BACKLOG, &backlog);
	if (!ret)
		ret = kfi_listen(pep);
	if (ret) {
		kfi_close(&pep->fid);
		return ret;
	}
	mutex_lock(&pep_lock);
	l->pep = pep;
	mutex_unlock(&pep_lock);
	return 0;
}

void listener_deaf(struct listener *l)
{
	int ret;

	mutex_lock(&pep_lock);
	ret = l->pep ? kfi_close(&l->pep->fid) : 0;
	if (ret)
		wrong("closing a listener: %d", ret);
	else
		l->pep = NULL;
	mutex_unlock(&pep_lock);
}

void listener_reject(struct listener *l, struct kfi_info *info, u32 seed)
{
	u8 data[PAIR_REJECT];
	int ret;

	pair_fill(data, sizeof(data), seed + 1);
	mutex_lock(&pep_lock);
	ret = l->pep ? kfi_reject(l->pep, info->handle, data, sizeof(data)) : 0;
	mutex_unlock(&pep_lock);
	if (ret)
		wrong("rejecting: %d", ret);
	kfi_freeinfo(info);
}

void listeners_deaf(void)
{
	int i;

	for (i = 0; i < listener_count; i++)
		listener_deaf(&listeners[i]);
}

int listeners_listen(void)
{
	int i, ret = 0;

	for (i = 0; !ret && i < listener_count; i++)
		ret = listener_listen(&listeners[i]);
	return ret;
}
