// SPDX-License-Identifier: GPL-2.0
/*
 * Files of debugfs. Their operations take memory of a process, so they are used with memory of the one that loads this
 * module. Process context.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mman.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <rdma/ib_verbs.h>

#include "debugfs.h"
#include "env.h"

/* Open a file below debugfs, and map @size bytes of the process for what goes through it. */
static struct file *open_file(const char *path, int flags, size_t size, unsigned long *at)
{
	char full[128];
	struct file *f;

	snprintf(full, sizeof(full), "/sys/kernel/debug/%s", path);
	f = filp_open(full, flags, 0);
	if (IS_ERR(f))
		return f;
	*at = vm_mmap(NULL, 0, PAGE_ALIGN(size), PROT_READ | PROT_WRITE,
		      MAP_ANONYMOUS | MAP_PRIVATE, 0);
	if (IS_ERR_VALUE(*at)) {
		__fput_sync(f);
		return ERR_PTR(*at);
	}
	return f;
}

static void close_file(struct file *f, unsigned long at, size_t size)
{
	vm_munmap(at, PAGE_ALIGN(size));
	/* At once: filp_close() holds the file's module until this process returns from its system call. */
	__fput_sync(f);
}

/**
 * debugfs_read() - Read a file.
 * @path: The file, below /sys/kernel/debug.
 * @text: Takes what is read, without a zero at the end.
 * @size: Room there, in bytes.
 *
 * Return: How many bytes were read, or an errno.
 */
ssize_t debugfs_read(const char *path, char *text, size_t size)
{
	unsigned long at;
	loff_t pos = 0;
	ssize_t len;
	struct file *f = open_file(path, O_RDONLY, size, &at);

	if (IS_ERR(f))
		return PTR_ERR(f);
	len = f->f_op->read ? f->f_op->read(f, (char __user *)at, size, &pos) : -EINVAL;
	if (len > 0 && copy_from_user(text, (char __user *)at, len))
		len = -EFAULT;
	close_file(f, at, size);
	return len;
}

/**
 * figure_of() - Look up a number in lines "name number".
 * @text: The lines.
 * @name: Which line.
 *
 * Return: The number, or -1 if there is no line with that name.
 */
long figure_of(const char *text, const char *name)
{
	size_t n = strlen(name);
	long value;

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
		if (!strncmp(text, name, n) && text[n] == ' ' && sscanf(text + n, "%ld", &value) == 1)
			return value;
	return -1;
}

/**
 * debugfs_figure() - Look up a number in a file of lines "name number".
 * @t: The case, which fails if the file can't be read.
 * @path: The file, below /sys/kernel/debug.
 * @name: Which line.
 *
 * Return: The number, or -1 if there is no line with that name.
 */
long debugfs_figure(struct kfi_test *t, const char *path, const char *name)
{
	char *text = kzalloc(PAGE_SIZE, GFP_KERNEL);
	ssize_t len = text ? debugfs_read(path, text, PAGE_SIZE - 1) : -ENOMEM;
	long value = -1;

	if (EXPECT(t, len > 0, "%s: %zd", path, len))
		value = figure_of(text, name);
	kfree(text);
	return value;
}

/**
 * debugfs_set() - Write a number to a file.
 * @t: The case, which fails if the file does not take it.
 * @path: The file, below /sys/kernel/debug.
 * @value: The number.
 *
 * Return: Whether the file took it.
 */
bool debugfs_set(struct kfi_test *t, const char *path, long value)
{
	char text[24];
	size_t size = snprintf(text, sizeof(text), "%ld\n", value);
	ssize_t len = -EINVAL;
	unsigned long at;
	loff_t pos = 0;
	struct file *f = open_file(path, O_WRONLY, size, &at);

	if (!EXPECT(t, !IS_ERR(f), "%s: %ld", path, PTR_ERR(f)))
		return false;
	if (copy_to_user((char __user *)at, text, size))
		len = -EFAULT;
	else if (f->f_op->write)
		len = f->f_op->write(f, (char __user *)at, size, &pos);
	close_file(f, at, size);
	return EXPECT(t, len == size, "%s: %zd", path, len);
}

/**
 * needs_model() - Skip a case that needs the model NIC, if the device is another one.
 * @t: The case.
 *
 * Return: Whether the device is the model.
 */
bool needs_model(struct kfi_test *t)
{
	if (!kfi_hardware)
		ktap_skip(t, "no model NIC");
	return kfi_hardware;
}

/**
 * nic_stat() - Read a statistic of the model NIC.
 * @t: The case, which fails if the device doesn't exist.
 * @dev: The device.
 * @name: Which one.
 *
 * Return: The number, or -1 if there is none of that name.
 */
long nic_stat(struct kfi_test *t, struct ib_device *dev, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "kfi_nic/%s/stats", dev_name(&dev->dev));
	return debugfs_figure(t, path, name);
}

/**
 * nic_set() - Plan a fault of the model NIC, or set a value.
 * @t: The case, which fails if the file doesn't exist.
 * @dev: The device.
 * @file: The fault or the value.
 * @value: How many calls or requests the fault hits, or the value.
 *
 * Return: Whether that has been done.
 */
bool nic_set(struct kfi_test *t, struct ib_device *dev, const char *file, long value)
{
	char path[64];

	snprintf(path, sizeof(path), "kfi_nic/%s/%s", dev_name(&dev->dev), file);
	return debugfs_set(t, path, value);
}
