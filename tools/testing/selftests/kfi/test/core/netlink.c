// SPDX-License-Identifier: GPL-2.0
/* Requests to the generic netlink family "kfi" that the command kfi does not send. */
#include <linux/file.h>
#include <linux/net.h>
#include <net/genetlink.h>

#include <kfabric.h>

#include "shared.h"

/* The numbers of Documentation/netlink/kfi.yaml. */
#define INFO_GET	1
#define OBJECT_GET	2
#define OBJECT_CLASS	1

/* Sends a request with an attribute of 4 bytes. Returns the errno of the first answer, which is in @answer. */
static int ask(struct socket *sock, u16 family, u16 flags, u8 cmd, u16 attr, const void *value, void *answer)
{
	struct {
		struct nlmsghdr nlh;
		struct genlmsghdr genl;
		struct nlattr attr;
		u8 value[4];
	} request = {
		.nlh = {
			.nlmsg_len = sizeof(request),
			.nlmsg_type = family,
			.nlmsg_flags = NLM_F_REQUEST | flags,
		},
		.genl = { .cmd = cmd, .version = 1 },
		.attr = { .nla_len = NLA_HDRLEN + sizeof(request.value), .nla_type = attr },
	};
	struct kvec out = { &request, sizeof(request) }, in = { answer, PAGE_SIZE };
	struct nlmsghdr *nlh = answer;
	struct msghdr msg = {};
	int ret;

	memcpy(request.value, value, sizeof(request.value));
	ret = kernel_sendmsg(sock, &msg, &out, 1, out.iov_len);
	msg = (struct msghdr) {};
	ret = ret < 0 ? ret : kernel_recvmsg(sock, &msg, &in, 1, in.iov_len, MSG_DONTWAIT);
	if (ret < 0)
		return ret;
	return nlh->nlmsg_type == NLMSG_ERROR ? ((struct nlmsgerr *)nlmsg_data(nlh))->error : 0;
}

/* An unknown class is refused, and so is an attribute of a request that has none. */
void netlink_case(struct kfi_test *t)
{
	static const u32 unknown[] = { 0, 4, 5, KFI_CLASS_CNTR + 1, ~0 };
	static const u32 known = KFI_CLASS_DOMAIN;
	void *answer = kzalloc(PAGE_SIZE, GFP_KERNEL);
	struct nlattr *id;
	struct socket *sock;
	struct file *file;
	u16 family;
	int i;

	if (!EXPECT(t, answer, "no memory") ||
	    !EXPECT_EQ(t, sock_create(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC, &sock), 0))
		goto out_free;
	/* The family asks for the rights of the one who opened the file. */
	file = sock_alloc_file(sock, 0, NULL);
	if (!EXPECT(t, !IS_ERR(file), "no file"))
		goto out_free;
	if (!EXPECT_EQ(t, ask(sock, GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, "kfi", answer), 0))
		goto out;
	id = nlmsg_find_attr(answer, GENL_HDRLEN, CTRL_ATTR_FAMILY_ID);
	if (!EXPECT(t, id, "no number of the family"))
		goto out;
	family = nla_get_u16(id);
	for (i = 0; i < ARRAY_SIZE(unknown); i++)
		EXPECT_EQ(t, ask(sock, family, NLM_F_DUMP, OBJECT_GET, OBJECT_CLASS, &unknown[i], answer), -EINVAL);
	EXPECT_EQ(t, ask(sock, family, NLM_F_DUMP, INFO_GET, OBJECT_CLASS, &known, answer), -EINVAL);
	EXPECT_EQ(t, ask(sock, family, NLM_F_DUMP, OBJECT_GET, OBJECT_CLASS, &known, answer), 0);
out:
	fput(file);
out_free:
	kfree(answer);
}
