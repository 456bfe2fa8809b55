/*
 * Tasks of asyncio in memory that anyone may have made: what is read ends.
 *
 *   version:1 { place:2 base:1 word:8 }…
 */
#include "base/bytes.h"
#include "python_tasks_fixture.h"

#include <errno.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void on_task(void *ctx, const struct python_task *task)
{
	(void)ctx;
	if (!task->n || task->n > PYTHON_TASK_FRAMES || task->waits_for < 4096)
		abort();
}

static bool change(struct tasks_process *p, struct bytes *in)
{
	uint64_t word;
	uint16_t at;
	uint8_t base;

	if (bytes_u16(in, &at) < 0 || bytes_u8(in, &base) < 0 || bytes_u64(in, &word) < 0)
		return false;
	ptf_put(p, at % PTF_LEN, base % 2 ? PTF_BASE + word % PTF_LEN : word);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct tasks_process p;
	struct python_task_fn fn = { .task = on_task, .max = 64 };
	struct python_tasks tasks = { 0 };
	struct bytes in = bytes_of(data, len);
	uint8_t version;
	int r;

	if (bytes_u8(&in, &version) < 0)
		return 0;
	ptf_init(&p);
	p.rt.version = 0x030000 | (uint32_t)version << 8;
	p.rt.python_modules = 944;
	while (change(&p, &in))
		;
	r = python_tasks(&p.rt, &p.memory.mem, &tasks, &fn);
	if (r != 0 && r != -ENOENT && r != -EOPNOTSUPP)
		abort();
	if (fn.seen > fn.max || fn.ready + fn.changed > fn.seen + 1 || p.memory.reads > 1000000)
		abort();
	return 0;
}
