// SPDX-License-Identifier: GPL-2.0
/*
 * kfabric in C: two machines, and 64 MiB each way between them.
 *
 *   insmod kfi_stream_c.ko address=192.0.2.1	listens there, and serves the first who comes
 *   insmod kfi_stream_c.ko peer=192.0.2.1	connects, writes to the server's memory and reads from it
 *
 * The server says where its memory is by a message. For each chunk the client writes it, and says so; the
 * server looks at each byte, puts others in their place, and says that; the client reads those, and looks
 * at each of them. kfi_stream_rust.ko is the same in Rust, and either understands the other.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>

#include <kfi_cm.h>
#include <kfi_endpoint.h>
#include <kfi_eq.h>
#include <kfi_rma.h>

#define PORT		"18516"
#define CHUNK		(256 * 1024)
#define CHUNKS		256
/* How many chunks there are between two lines of progress. */
#define STEP		64
/* Something must be wrong if nothing has happened for so long. */
#define PATIENCE_MS	60000

static char *address;
module_param(address, charp, 0444);
MODULE_PARM_DESC(address, "server: IPv4 address of this machine to listen at");

static char *peer;
module_param(peer, charp, 0444);
MODULE_PARM_DESC(peer, "client: IPv4 address of the server");

/* What is sent: where the server's memory is; and then, which chunk there is. */
struct message {
	__le64 addr;
	__le64 key;
	__le64 chunk;
};

/* What may have completed. */
enum { SENT, CAME, WRITTEN, WAS_READ, KINDS };

struct stream {
	struct kfi_info *info;
	struct kfid_fabric *fabric;
	struct kfid_domain *domain;
	struct kfid_eq *eq;
	struct kfid_cq *cq;
	struct kfid_pep *pep;
	struct kfid_ep *ep;
	struct kfid_mr *mr;
	u8 *data;
	struct message *out;
	struct message *in;
	/* How many of each kind have completed that nobody has waited for yet. */
	unsigned int done[KINDS];
};

/* The bytes of a chunk, which is no other chunk's: even ones are the client's. */
static u8 byte_of(unsigned int chunk, size_t i)
{
	return i * 7 + (i >> 8) * 5 + (i >> 16) * 3 + chunk * 13;
}

static void fill(u8 *data, unsigned int chunk)
{
	size_t i;

	for (i = 0; i < CHUNK; i++)
		data[i] = byte_of(chunk, i);
}

static int check(const u8 *data, unsigned int chunk)
{
	size_t i;

	for (i = 0; i < CHUNK; i++)
		if (data[i] != byte_of(chunk, i)) {
			pr_err("chunk %u: byte %zu is %#x\n", chunk, i, data[i]);
			return -EIO;
		}
	return 0;
}

/* Waits for this event; @entry gets what there is to it. */
static int event(struct stream *s, u32 wanted, struct kfi_eq_cm_entry *entry)
{
	struct kfi_eq_err_entry err = {};
	ssize_t len;
	u32 got;

	len = kfi_eq_sread(s->eq, &got, entry, sizeof(*entry), PATIENCE_MS, 0);
	if (len == -KFI_EAVAIL && kfi_eq_readerr(s->eq, &err, 0) > 0)
		return -err.err;
	if (len < 0)
		return len == -KFI_EAGAIN ? -ETIMEDOUT : len;
	return got == wanted ? 0 : -ENOTCONN;
}

/* Waits for the completion of an operation of this kind. */
static int wait(struct stream *s, unsigned int kind)
{
	while (!s->done[kind]) {
		struct kfi_cq_data_entry entry;
		struct kfi_cq_err_entry err = {};
		ssize_t n = kfi_cq_sread(s->cq, &entry, 1, NULL, PATIENCE_MS);

		if (n == -KFI_EAVAIL && kfi_cq_readerr(s->cq, &err, 0) == 1) {
			pr_err("a transfer failed: %s\n",
			       kfi_cq_strerror(s->cq, err.prov_errno, NULL, NULL, 0));
			return -err.err;
		}
		if (n != 1)
			return n == -KFI_EAGAIN ? -ETIMEDOUT : n;
		if (entry.flags & KFI_SEND)
			s->done[SENT]++;
		else if (entry.flags & KFI_RECV)
			s->done[CAME]++;
		else if (entry.flags & KFI_WRITE)
			s->done[WRITTEN]++;
		else
			s->done[WAS_READ]++;
	}
	s->done[kind]--;
	return 0;
}

/* Sends a message. */
static int say(struct stream *s, unsigned int chunk)
{
	*s->out = (struct message){ .chunk = cpu_to_le64(chunk) };
	if (s->mr) {
		s->out->addr = cpu_to_le64(s->mr->iova);
		s->out->key = cpu_to_le64(kfi_mr_key(s->mr));
	}
	return kfi_send(s->ep, s->out, sizeof(*s->out), NULL, 0, NULL);
}

/* Sends a message, and waits until that is done. */
static int tell(struct stream *s, unsigned int chunk)
{
	return say(s, chunk) ?: wait(s, SENT);
}

/* Waits for a message, and for the next one from then on; it must be about this chunk. */
static int hear(struct stream *s, unsigned int chunk, struct message *told)
{
	int ret = wait(s, CAME);

	if (ret)
		return ret;
	*told = *s->in;
	if (le64_to_cpu(told->chunk) != chunk)
		return -EPROTO;
	return kfi_recv(s->ep, s->in, sizeof(*s->in), NULL, 0, NULL);
}

/* What there is to @node. */
static int find(struct stream *s, const char *node, u64 flags)
{
	struct kfi_info *hints = kfi_allocinfo();
	int ret = -ENOMEM;

	if (!hints)
		return ret;
	hints->fabric_attr->prov_name = kstrdup("verbs", GFP_KERNEL);
	hints->ep_attr->type = KFI_EP_MSG;
	hints->caps = KFI_MSG | KFI_RMA;
	hints->domain_attr->mr_mode = KFI_MR_VIRT_ADDR | KFI_MR_PROV_KEY;
	if (hints->fabric_attr->prov_name)
		ret = kfi_getinfo(KFI_VERSION(1, 7), node, PORT, flags | KFI_NUMERICHOST, hints, &s->info);
	kfi_freeinfo(hints);
	return ret;
}

static int open(struct stream *s, const char *node, u64 flags)
{
	struct kfi_eq_attr eq = { .wait_obj = KFI_WAIT_UNSPEC };
	struct kfi_cq_attr cq = { .format = KFI_CQ_FORMAT_DATA, .wait_obj = KFI_WAIT_UNSPEC };
	int ret;

	s->data = kmalloc(CHUNK, GFP_KERNEL);
	s->out = kzalloc_obj(*s->out);
	s->in = kzalloc_obj(*s->in);
	if (!s->data || !s->out || !s->in)
		return -ENOMEM;
	ret = find(s, node, flags);
	if (!ret)
		ret = kfi_fabric(s->info->fabric_attr, &s->fabric, NULL);
	if (!ret)
		ret = kfi_domain(s->fabric, s->info, &s->domain, NULL);
	if (!ret)
		ret = kfi_eq_open(s->fabric, &eq, &s->eq, NULL, NULL);
	if (!ret)
		ret = kfi_cq_open(s->domain, &cq, &s->cq, NULL, NULL);
	return ret;
}

/* An endpoint that waits for a message already. */
static int endpoint(struct stream *s, struct kfi_info *info)
{
	int ret;

	ret = kfi_endpoint(s->domain, info, &s->ep, NULL);
	if (!ret)
		ret = kfi_ep_bind(s->ep, &s->eq->fid, 0);
	if (!ret)
		ret = kfi_ep_bind(s->ep, &s->cq->fid, KFI_TRANSMIT | KFI_RECV);
	if (!ret)
		ret = kfi_enable(s->ep);
	return ret ?: kfi_recv(s->ep, s->in, sizeof(*s->in), NULL, 0, NULL);
}

static void close_all(struct stream *s)
{
	/* First who uses something, then what it uses. */
	if (s->ep)
		kfi_close(&s->ep->fid);
	if (s->mr)
		kfi_close(&s->mr->fid);
	if (s->pep)
		kfi_close(&s->pep->fid);
	if (s->cq)
		kfi_close(&s->cq->fid);
	if (s->eq)
		kfi_close(&s->eq->fid);
	if (s->domain)
		kfi_close(&s->domain->fid);
	if (s->fabric)
		kfi_close(&s->fabric->fid);
	kfi_freeinfo(s->info);
	kfree(s->data);
	kfree(s->out);
	kfree(s->in);
}

static int serve(struct stream *s)
{
	struct kfi_eq_cm_entry entry;
	struct message told;
	unsigned int i;
	int ret;

	ret = open(s, address, KFI_SOURCE);
	if (!ret)
		ret = kfi_mr_reg(s->domain, s->data, CHUNK, KFI_REMOTE_READ | KFI_REMOTE_WRITE, 0,
				 0, 0, &s->mr, NULL);
	if (!ret)
		ret = kfi_passive_ep(s->fabric, s->info, &s->pep, NULL);
	if (!ret)
		ret = kfi_pep_bind(s->pep, &s->eq->fid, 0);
	if (!ret)
		ret = kfi_listen(s->pep);
	if (ret)
		return ret;
	pr_info("listening at %s, port " PORT "\n", address);
	ret = event(s, KFI_CONNREQ, &entry);
	if (ret)
		return ret;
	ret = endpoint(s, entry.info);
	kfi_freeinfo(entry.info);
	if (!ret)
		ret = kfi_accept(s->ep, NULL, 0);
	if (!ret)
		ret = event(s, KFI_CONNECTED, &entry);
	if (!ret)
		ret = tell(s, 0);
	for (i = 0; i < CHUNKS && !ret; i++) {
		ret = hear(s, 2 * i, &told);
		if (!ret)
			ret = check(s->data, 2 * i);
		fill(s->data, 2 * i + 1);
		/* When the client has the last one it reads and goes, which may be before this is done. */
		if (!ret)
			ret = i < CHUNKS - 1 ? tell(s, 2 * i + 1) : say(s, 2 * i + 1);
	}
	return ret ?: event(s, KFI_SHUTDOWN, &entry);
}

static int one_chunk(struct stream *s, unsigned int i, u64 addr, u64 key)
{
	struct message told;
	int ret;

	fill(s->data, 2 * i);
	ret = kfi_write(s->ep, s->data, CHUNK, NULL, 0, addr, key, NULL) ?: wait(s, WRITTEN);
	if (!ret)
		ret = tell(s, 2 * i);
	if (!ret)
		ret = hear(s, 2 * i + 1, &told);
	if (!ret)
		ret = kfi_read(s->ep, s->data, CHUNK, NULL, 0, addr, key, NULL) ?:
		      wait(s, WAS_READ);
	return ret ?: check(s->data, 2 * i + 1);
}

static int stream(struct stream *s)
{
	struct kfi_eq_cm_entry entry;
	struct message told;
	unsigned int i, ms;
	ktime_t begin;
	int ret;

	ret = open(s, peer, 0);
	if (!ret)
		ret = endpoint(s, s->info);
	if (!ret)
		ret = kfi_connect(s->ep, NULL, NULL, 0);
	if (!ret)
		ret = event(s, KFI_CONNECTED, &entry);
	if (!ret)
		ret = hear(s, 0, &told);
	if (ret)
		return ret;
	begin = ktime_get();
	for (i = 0; i < CHUNKS; i++) {
		ret = one_chunk(s, i, le64_to_cpu(told.addr), le64_to_cpu(told.key));
		if (ret)
			return ret;
		if ((i + 1) % STEP == 0)
			pr_info("%u of %u MiB each way\n", (i + 1) / (SZ_1M / CHUNK),
				CHUNKS / (SZ_1M / CHUNK));
	}
	ms = max(1, (int)ktime_ms_delta(ktime_get(), begin));
	pr_info("demo: %u MiB each way, each byte verified, in %u ms: %u MiB/s\n",
		CHUNKS / (SZ_1M / CHUNK), ms, 2 * CHUNKS / (SZ_1M / CHUNK) * 1000 / ms);
	return 0;
}

static int __init stream_init(void)
{
	struct stream *s;
	int ret;

	if (!address == !peer) {
		pr_err("say address= to serve, or peer= to connect\n");
		return -EINVAL;
	}
	s = kzalloc_obj(*s);
	if (!s)
		return -ENOMEM;
	ret = address ? serve(s) : stream(s);
	close_all(s);
	kfree(s);
	if (ret)
		pr_err("failed: %s\n", kfi_strerror(-ret));
	/* insmod knows Linux's numbers only. */
	return ret > -KFI_ERRNO_OFFSET ? ret : -EIO;
}
module_init(stream_init);

/* All that it had is closed. */
static void __exit stream_exit(void)
{
}
module_exit(stream_exit);

MODULE_DESCRIPTION("kfabric in C: 64 MiB each way between two machines");
MODULE_LICENSE("GPL");
