// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of QEMU for tools/bench/profile/run: writes down which blocks of code a guest runs.
 *
 * It does so between two marks of the guest, see bench_mark(). A record is three 64-bit words:
 *
 *   a mark                     0, the number or function that was marked, 0
 *   a block (without wall=on)  its address, the stack pointer, its number of instructions
 *   a sample (with wall=on)    the block's address or IDLE, 0, nanoseconds since the previous sample
 *
 * Without "wall=on", the guest must have one CPU. With it, a thread of the host samples each CPU about every half
 * millisecond.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "qemu_plugin.h"

int qemu_plugin_version = 4;

/* A block. QEMU keeps its address for as long as it runs. */
struct block {
	uint64_t address;
	uint64_t instructions;
};

#define IDLE 16
/* A prime number of nanoseconds, so that samples keep no step with the guest's timers. */
#define PERIOD 499979

static FILE *out;
static struct qemu_plugin_register *rsp, *rax;
static struct bytes *value;
/* The last mark; 0 if that has ended. */
static _Atomic uint64_t marked;
/* With samples, the address of the block that each CPU runs, or IDLE. */
static qemu_plugin_u64 running;
static _Atomic unsigned int cpus;

static uint64_t read_register(struct qemu_plugin_register *which)
{
	uint64_t v = 0;

	g_byte_array_set_size(value, 0);
	qemu_plugin_read_register(which, value);
	memcpy(&v, value->data, value->len < sizeof(v) ? value->len : sizeof(v));
	return v;
}

static void record(uint64_t address, uint64_t second, uint64_t third)
{
	const uint64_t words[] = { address, second, third };

	fwrite(words, sizeof(words), 1, out);
}

static void block_runs(unsigned int cpu, void *data)
{
	const struct block *block = data;

	if (marked)
		record(block->address, read_register(rsp), block->instructions);
}

static void mark_runs(unsigned int cpu, void *data)
{
	marked = read_register(rax);
	record(0, marked, 0);
}

/* nopl 0x4b464b01(%rax,%rax,1), which no compiler makes. */
static int is_mark(const struct qemu_plugin_insn *insn)
{
	static const uint8_t mark[] = { 0x0f, 0x1f, 0x84, 0x00, 0x01, 'K', 'F', 'K' };
	uint8_t code[sizeof(mark)];

	return qemu_plugin_insn_data(insn, code, sizeof(code)) == sizeof(mark) &&
	       !memcmp(code, mark, sizeof(mark));
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t i, n = qemu_plugin_tb_n_insns(tb);
	struct block *block = malloc(sizeof(*block));

	if (!block)
		return;
	block->address = qemu_plugin_tb_vaddr(tb);
	block->instructions = n;
	if (running.score)
		qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_PLUGIN_INLINE_STORE_U64,
								  running, block->address);
	else
		qemu_plugin_register_vcpu_tb_exec_cb(tb, block_runs, QEMU_PLUGIN_CB_R_REGS, block);
	for (i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (is_mark(insn))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, mark_runs,
							       QEMU_PLUGIN_CB_R_REGS, NULL);
	}
}

static void cpu_begins(qemu_plugin_id_t id, unsigned int cpu)
{
	struct array *all = qemu_plugin_get_registers();
	const qemu_plugin_reg_descriptor *r = (void *)all->data;
	unsigned int i;

	for (i = 0; i < all->len; i++) {
		if (!strcmp(r[i].name, "rsp"))
			rsp = r[i].handle;
		else if (!strcmp(r[i].name, "rax"))
			rax = r[i].handle;
	}
	value = g_byte_array_new();
	cpus = cpu + 1;
}

static void cpu_waits(qemu_plugin_id_t id, unsigned int cpu)
{
	qemu_plugin_u64_set(running, cpu, IDLE);
}

static uint64_t nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void *take_samples(void *data)
{
	const struct timespec period = { .tv_nsec = PERIOD };
	uint64_t now, before = nanoseconds();
	unsigned int cpu;

	for (;;) {
		nanosleep(&period, NULL);
		now = nanoseconds();
		for (cpu = 0; marked && cpu < cpus; cpu++)
			record(qemu_plugin_u64_get(running, cpu), 0, now - before);
		before = now;
	}
	return NULL;
}

static void ended(qemu_plugin_id_t id, void *data)
{
	/* A thread may still write. */
	fflush(out);
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	out = argc > 0 && !strncmp(argv[0], "out=", 4) ? fopen(argv[0] + 4, "wb") : NULL;
	if (!out) {
		fprintf(stderr, "blocks: no out=FILE that can be written\n");
		return -1;
	}
	if (argc == 2 && !strcmp(argv[1], "wall=on")) {
		pthread_t thread;

		running.score = qemu_plugin_scoreboard_new(sizeof(uint64_t));
		qemu_plugin_register_vcpu_idle_cb(id, cpu_waits);
		if (pthread_create(&thread, NULL, take_samples, NULL))
			return -1;
	}
	qemu_plugin_register_vcpu_init_cb(id, cpu_begins);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
	return 0;
}
