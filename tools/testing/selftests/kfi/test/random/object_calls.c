// SPDX-License-Identifier: GPL-2.0
/* Random calls that open, bind, connect and close objects. */
#include "random.h"
#include "errnos.h"

/* Spoils an attribute that a provider must look at. */
static void spoil(struct kfi_info *info, u16 a)
{
	size_t size = BIT_ULL(a >> 4 & 63);

	switch (a % 32) {
	case 1:
		info->ep_attr->type = a >> 4;
		break;
	case 2:
		info->tx_attr->size = size;
		break;
	case 3:
		info->rx_attr->size = size;
		break;
	case 4:
		info->tx_attr->iov_limit = size;
		break;
	case 5:
		info->tx_attr->op_flags = size;
		break;
	case 6:
		info->ep_attr->rx_ctx_cnt = KFI_SHARED_CONTEXT;
		break;
	case 7:
		info->domain_attr->mr_mode = a >> 4;
		break;
	case 8:
		info->domain_attr->mr_cnt = size;
		break;
	case 9:
		info->domain_attr->auth_key_size = a >> 4;
		break;
	case 10:
		info->fabric_attr->prov_version = a;
		break;
	case 11:
		info->dest_addrlen = min_t(size_t, info->dest_addrlen, a >> 4 & 15);
		break;
	case 12:
		info->tx_attr->inject_size = size;
		break;
	case 13:
		info->caps = size;
		break;
	case 14:
		info->ep_attr->max_msg_size = size;
	}
}

/* Returns an info to be freed, or NULL: that of the connection, or of a request, maybe spoiled. */
static struct kfi_info *some_info(struct random_world *w, u16 a, u16 b)
{
	struct kfi_info *from = b % 4 || !w->request ? w->p->info : w->request;
	struct kfi_info *info = a % 32 ? kfi_dupinfo(from) : NULL;

	if (info && b % 2)
		spoil(info, a);
	return info;
}

static ssize_t getinfo_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct kfi_info *hints = some_info(w, a[0], a[1]), *info = NULL;
	int ret = kfi_getinfo(a[2] % 16 ? KFI_VERSION(1, 7) : a[2], NULL, a[3] % 16 ? NULL : "port",
			      random_flags(a[4], KFI_SOURCE | KFI_NUMERICHOST | KFI_PROV_ATTR_ONLY), hints,
			      a[5] % 32 ? &info : NULL);

	EXPECT(w->t, !ret == !!info, "an error and an info");
	kfi_freeinfo(info);
	kfi_freeinfo(hints);
	return ret;
}

static ssize_t fabric_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct kfi_info *info = some_info(w, a[0], a[1]);
	int ret = kfi_fabric(info ? info->fabric_attr : NULL, random_place(w, FABRIC, a[2]), w);

	kfi_freeinfo(info);
	return ret;
}

static ssize_t domain_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct kfi_info *info = some_info(w, a[0], a[1]);
	int ret = kfi_domain(random_object(w, FABRIC, a[2]), info, random_place(w, DOMAIN, a[3]), w);

	kfi_freeinfo(info);
	return ret;
}

static ssize_t domain_bind_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	/* A domain with asynchronous registrations is one of the sequence's own. */
	struct kfid_domain *d = w->object[DOMAIN][w->fixed[DOMAIN] + a[0] % (RANDOM_OBJECTS - w->fixed[DOMAIN])];

	if (!d)
		w->want = -KFI_EINVAL;
	return kfi_domain_bind(d, a[2] % 4 ? random_any(w, EQ, a[1]) : random_fid(w, a[1]),
			       random_flags(a[2], KFI_REG_MR));
}

static ssize_t endpoint_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct kfi_info *info = some_info(w, a[0], a[1]);
	int ret = kfi_endpoint(random_object(w, DOMAIN, a[2]), info, random_place(w, EP, a[3]), w);

	kfi_freeinfo(info);
	return ret;
}

static ssize_t srx_context_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct kfi_rx_attr attr = {
		.size = a[1] % 8 ? a[1] % 64 : SIZE_MAX,
		.iov_limit = a[2] % 8 ? 0 : a[2],
		.op_flags = random_flags(a[2], KFI_COMPLETION),
	};

	return kfi_srx_context(random_object(w, DOMAIN, a[0]), a[1] % 16 ? &attr : NULL, random_place(w, SRX, a[3]),
			       w);
}

static ssize_t passive_ep_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct kfi_info *info = some_info(w, a[0], a[1]);
	int ret;

	if (info && a[2] % 4 && !info->src_addr) {
		swap(info->src_addr, info->dest_addr);
		swap(info->src_addrlen, info->dest_addrlen);
		/* The port of the listener is in use. */
		if (info->src_addr && a[2] % 8 != 1)
			((struct sockaddr_in *)info->src_addr)->sin_port = 0;
	}
	ret = kfi_passive_ep(random_object(w, FABRIC, a[3]), info, random_place(w, PEP, a[4]), w);
	kfi_freeinfo(info);
	return ret;
}

static ssize_t ep_bind_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	static const enum random_kind kinds[] = { EQ, CQ, CNTR, SRX };
	u64 valid = a[2] % 4 ? KFI_TRANSMIT | KFI_RECV : KFI_READ | KFI_WRITE | KFI_SELECTIVE_COMPLETION;
	struct kfid *fid = a[3] % 16 ? random_any(w, kinds[a[1] >> 4 & 3], a[1]) : random_fid(w, a[1]);

	return kfi_ep_bind(random_object(w, a[3] % 4 ? EP : SRX, a[0]), fid, random_flags(a[2], valid));
}

static ssize_t pep_bind_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	return kfi_pep_bind(random_object(w, PEP, a[0]), a[2] % 4 ? random_any(w, EQ, a[1]) : random_fid(w, a[1]),
			    random_flags(a[3], 0));
}

static ssize_t enable_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	return kfi_enable(random_object(w, EP, a[0]));
}

static ssize_t listen_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	return kfi_listen(random_object(w, PEP, a[0]));
}

static ssize_t connect_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct sockaddr_in address = ep_address();
	size_t len = sizeof(address);

	if (a[1] % 8)
		kfi_getname(&w->p->pep->fid, &address, &len);
	if (a[1] % 16 == 1)
		address.sin_family = a[1];
	return kfi_connect(random_object(w, EP, a[0]), a[2] % 4 ? &address : NULL, a[3] % 8 ? w->room : NULL,
			   a[3] % 4 ? a[3] % CM_REQUEST : a[3] % sizeof(w->room));
}

static ssize_t accept_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	return kfi_accept(random_object(w, EP, a[0]), a[1] % 8 ? w->room : NULL,
			  a[1] % 4 ? a[1] % CM_ACCEPT : a[1] % sizeof(w->room));
}

static ssize_t reject_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	kfid_t handle = w->request && a[1] % 8 ? w->request->handle : (kfid_t)random_fid(w, a[1]);

	return kfi_reject(random_object(w, PEP, a[0]), handle, a[2] % 8 ? w->room : NULL,
			  a[2] % 4 ? a[2] % CM_REJECT : a[2] % sizeof(w->room));
}

/* The connection is seldom taken down. */
static ssize_t shutdown_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	return kfi_shutdown(random_object(w, EP, a[0]), a[1] % 64 ? BIT_ULL(a[1] & 63) : random_flags(a[2], 0));
}

static ssize_t setname_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	struct sockaddr_in address = ep_address();

	if (a[1] % 4 == 0)
		address.sin_family = a[1];
	return kfi_setname(a[2] % 4 ? random_any(w, PEP, a[0]) : random_fid(w, a[0]), a[1] % 8 == 1 ? NULL : &address,
			   a[3] % 4 ? sizeof(address) : a[3] % sizeof(address));
}

static ssize_t getname_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	size_t len = a[1] % 4 ? sizeof(w->room) : a[1] % 64;

	return kfi_getname(random_fid(w, a[0]), a[2] % 8 ? w->room : NULL, a[2] % 32 ? &len : NULL);
}

static ssize_t getpeer_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	size_t len = a[1] % 4 ? sizeof(w->room) : a[1] % 64;

	return kfi_getpeer(random_object(w, EP, a[0]), a[2] % 8 ? w->room : NULL, a[2] % 32 ? &len : NULL);
}

static int option(u16 a)
{
	return a % 4 ? KFI_OPT_CONNECT_TIMEOUT + a % 4 - 1 : a;
}

static ssize_t setopt_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	/* Also as a size. */
	u64 value = a[2];

	return kfi_setopt(random_fid(w, a[0]), a[1] % 8 == 0, option(a[1] >> 3), a[3] % 16 ? &value : NULL,
			  a[3] % 4 ? 4 : a[3] % 9);
}

static ssize_t getopt_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	size_t len = a[2] % 4 ? sizeof(w->room) : a[2] % 9;

	return kfi_getopt(random_fid(w, a[0]), a[1] % 8 == 0, option(a[1] >> 3), a[3] % 16 ? w->room : NULL,
			  a[3] % 32 ? &len : NULL);
}

static ssize_t control_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	int backlog = a[2];

	/* Other commands have structures as arguments. */
	if (a[1] % 2)
		return kfi_control(random_object(w, PEP, a[0]), KFI_BACKLOG, a[1] % 16 == 1 ? NULL : &backlog);
	return kfi_control(random_fid(w, a[0]), -1 - a[1], NULL);
}

static ssize_t close_call(struct random_world *w, const u16 a[STEP_NUMBERS])
{
	enum random_kind kind = a[0] % RANDOM_KINDS;
	unsigned int n = a[1] % RANDOM_OBJECTS;
	void *object = random_any(w, kind, a[1]);
	struct random_target was = {};
	int ret;

	/* Queues and endpoints of the pair stay. Domains and fabrics are in use. */
	if (!IS_ERR(object) && n < w->fixed[kind]) {
		if (kind > DOMAIN)
			object = NULL;
		else
			w->want = -KFI_EBUSY;
	}
	if (IS_ERR_OR_NULL(object))
		w->want = -KFI_EINVAL;
	else if (kind == MR)
		was = random_target(object);
	ret = kfi_close(object);
	if (ret)
		return ret;
	w->object[kind][n] = NULL;
	if (kind == MR)
		w->closed[n] = was;
	return 0;
}

const struct random_call random_object_calls[] = {
	CALL(getinfo), CALL(fabric), CALL(domain), CALL(domain_bind), CALL(endpoint), CALL(srx_context),
	CALL(passive_ep), CALL(ep_bind), CALL(pep_bind), CALL(enable), CALL(listen), CALL(connect), CALL(accept),
	CALL(reject), CALL(shutdown), CALL(setname), CALL(getname), CALL(getpeer), CALL(setopt), CALL(getopt),
	CALL(control), CALL(close), {}
};
