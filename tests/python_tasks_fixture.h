/*
 * Memory of a process with CPython 3.12 and asyncio in it, made of bytes: two tasks, of which one waits, in a coroutine that
 * awaits another, for a future. Tests and the fuzzer change it.
 */
#ifndef MEMSCOPE_TESTS_PYTHON_TASKS_FIXTURE_H
#define MEMSCOPE_TESTS_PYTHON_TASKS_FIXTURE_H

#include "fake_process.h"
#include "lang/python.h"

#include <string.h>

#define PTF_BASE 0x7f0000000000ULL

enum {
	PTF_LEN = 0x2000,
	PTF_INTERP = 0x100,
	PTF_MODULES = 0x600, PTF_MODULES_KEYS = 0x700, PTF_MODULE_NAME = 0x800, PTF_MODULE = 0x900,
	PTF_DICT = 0xa00, PTF_DICT_KEYS = 0xb00, PTF_SET_NAME = 0xc00,
	PTF_WEAKSET = 0xd40, PTF_VALUES = 0xe00, PTF_SET = 0xf00, PTF_TABLE = 0x1000,
	PTF_REF = 0x1100, PTF_REF_READY = 0x1140,
	PTF_TASK = 0x1200, PTF_TASK_READY = 0x1300,
	PTF_OUTER = 0x1400, PTF_INNER = 0x1500, PTF_CODE = 0x1600, PTF_ITER = 0x1700, PTF_FUTURE = 0x1740,
	PTF_TYPES = 0x1800, PTF_TYPE_NAMES = 0x1c00,
	PTF_WAITER_AT = 128, PTF_COROUTINE_AT = 136, PTF_FRAME_AT = 72, /* in a task, in a coroutine */
	PTF_STACKTOP_AT = 64, PTF_LOCALS_AT = 72,                      /* in a frame */
	PTF_FIRST_LINE = 40,
};

struct tasks_process {
	uint8_t bytes[PTF_LEN];
	struct lang_runtime rt;
	struct fake_process memory;
};

static inline void ptf_put(struct tasks_process *p, uint32_t off, uint64_t value)
{
	fake_process_put(&p->memory, off, value, 8);
}

static inline void ptf_point(struct tasks_process *p, uint32_t off, uint32_t to)
{
	ptf_put(p, off, PTF_BASE + to);
}

/* Gives an object its type, by name. */
static inline void ptf_type(struct tasks_process *p, uint32_t object, const char *name)
{
	static const char *const names[] = { "dict",     "module",        "set",    "_asyncio.Task",
					     "_asyncio.FutureIter", "coroutine", "_asyncio.Future", "other" };
	uint32_t i = 0;

	while (i < 7 && strcmp(names[i], name) != 0)
		i++;
	ptf_point(p, object + 8, PTF_TYPES + 0x40 * i);
	ptf_point(p, PTF_TYPES + 0x40 * i + 24, PTF_TYPE_NAMES + 0x40 * i);
	memcpy(p->bytes + PTF_TYPE_NAMES + 0x40 * i, name, strlen(name) + 1);
}

static inline void ptf_dict(struct tasks_process *p, uint32_t dict, uint32_t keys, uint32_t name,
			    const char *text, uint32_t value)
{
	ptf_type(p, dict, "dict");
	ptf_point(p, dict + 32, keys);
	ptf_put(p, keys + 8, 3 | 3 << 8 | 1 << 16); /* 8 indices of a byte, keys are texts */
	ptf_put(p, keys + 24, 1);
	ptf_point(p, keys + 40, name);
	ptf_point(p, keys + 48, value);
	ptf_put(p, name + 16, strlen(text));
	ptf_put(p, name + 32, 1 << 2 | 1 << 5 | 1 << 6);
	memcpy(p->bytes + name + 40, text, strlen(text));
}

static inline void ptf_coroutine(struct tasks_process *p, uint32_t at, uint32_t awaits)
{
	uint32_t frame = at + PTF_FRAME_AT;

	ptf_type(p, at, "coroutine");
	p->bytes[frame - 5] = 0xff; /* suspended */
	ptf_point(p, frame, PTF_CODE);
	ptf_point(p, frame + 56, PTF_CODE + 192 + 6); /* where it is */
	ptf_put(p, frame + PTF_STACKTOP_AT, 1);
	ptf_point(p, frame + PTF_LOCALS_AT, awaits);
}

static inline void ptf_init(struct tasks_process *p)
{
	struct python_layout l;

	memset(p, 0, sizeof(*p));
	fake_process_init(&p->memory, PTF_BASE, p->bytes, PTF_LEN);
	python_layout_find(0x030c01, NULL, &l, NULL);
	p->rt.lang = MS_LANG_PYTHON;
	p->rt.version = 0x030c01;
	p->rt.row.python = l.frames;
	p->rt.str_ascii = l.str_ascii;
	p->rt.str_compact = l.str_compact;
	p->rt.object_head = l.object;
	p->rt.ob_type = l.ob_type;
	p->rt.python_interpreters = PTF_BASE;

	ptf_point(p, 0, PTF_INTERP);
	ptf_point(p, PTF_INTERP + 944, PTF_MODULES);
	ptf_dict(p, PTF_MODULES, PTF_MODULES_KEYS, PTF_MODULE_NAME, "asyncio.tasks", PTF_MODULE);
	ptf_type(p, PTF_MODULE, "module");
	ptf_point(p, PTF_MODULE + 16, PTF_DICT);
	ptf_dict(p, PTF_DICT, PTF_DICT_KEYS, PTF_SET_NAME, "_scheduled_tasks", PTF_WEAKSET);
	ptf_put(p, PTF_WEAKSET - 24, PTF_BASE + PTF_VALUES - 1);
	ptf_point(p, PTF_VALUES, PTF_SET);
	ptf_type(p, PTF_SET, "set");
	ptf_put(p, PTF_SET + 32, 7);
	ptf_point(p, PTF_SET + 40, PTF_TABLE);
	ptf_point(p, PTF_TABLE, PTF_REF);
	ptf_point(p, PTF_TABLE + 5 * 16, PTF_REF_READY);
	ptf_point(p, PTF_REF + 16, PTF_TASK);
	ptf_point(p, PTF_REF_READY + 16, PTF_TASK_READY);
	ptf_type(p, PTF_TASK, "_asyncio.Task");
	ptf_type(p, PTF_TASK_READY, "_asyncio.Task");
	ptf_point(p, PTF_TASK + PTF_WAITER_AT, PTF_FUTURE);
	ptf_point(p, PTF_TASK + PTF_COROUTINE_AT, PTF_OUTER);
	ptf_point(p, PTF_TASK_READY + PTF_COROUTINE_AT, PTF_OUTER);
	ptf_coroutine(p, PTF_OUTER, PTF_INNER);
	ptf_coroutine(p, PTF_INNER, PTF_ITER);
	ptf_type(p, PTF_ITER, "_asyncio.FutureIter");
	ptf_point(p, PTF_ITER + 16, PTF_FUTURE);
	ptf_type(p, PTF_FUTURE, "_asyncio.Future");
	ptf_put(p, PTF_CODE + 68, PTF_FIRST_LINE);
}

#endif
