// SPDX-License-Identifier: GPL-2.0
/* How long kfi_verbs.ko lets requests take. */
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "wr_timeout.h"

int set_wr_timeout(int seconds)
{
	struct file *f = filp_open("/sys/module/kfi_verbs/parameters/wr_timeout", O_RDWR, 0);
	char buf[16] = "";
	loff_t pos = 0;
	int ret, was;

	if (IS_ERR(f))
		return PTR_ERR(f);
	ret = kernel_read(f, buf, sizeof(buf) - 1, &pos);
	if (ret > 0)
		ret = kstrtoint(strim(buf), 10, &was);
	if (!ret) {
		pos = 0;
		ret = snprintf(buf, sizeof(buf), "%d", seconds);
		ret = kernel_write(f, buf, ret, &pos);
	}
	filp_close(f, NULL);
	return ret < 0 ? ret : was;
}
