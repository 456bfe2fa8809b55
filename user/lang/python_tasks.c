/*
 * Tasks of asyncio: those that there are, and what each one awaits, by the interpreter's own structures.
 *
 *   interpreter → sys.modules → asyncio.tasks → the WeakSet of tasks → its set → weak references → tasks
 *   task → coroutine → what lies on top of its frame's stack of values, which is what it awaits → …
 *
 * The set is _all_tasks to 3.11 and _scheduled_tasks after it (Lib/asyncio/tasks.py, Modules/_asynciomodule.c); from 3.14 on there
 * is a list instead, which is not read yet. A coroutine that is suspended has what it awaits on top (genobject.c,
 * _PyGen_yf()). The program runs on meanwhile: what a task waits for is read before and after, and one that changed is no task
 * of which anything is known. All is checked by its type, by name; loops have bounds.
 */
#include "abi.h"
#include "lang/python.h"

#include <errno.h>
#include <string.h>

enum {
	MINOR_FIRST = 8,
	MINOR_LAST = 13,
	INTERPRETERS_MAX = 8,
	ENTRIES_MAX = 16384, /* of a dict: sys.modules of a large program has a few thousand */
	SLOTS_MAX = 1 << 20, /* of a set                                                    */
	ENTRIES_AT_ONCE = 32,
	ATTRIBUTES_MAX = 16, /* of a WeakSet                                                */
	STACK_MAX = 4096,    /* values of a frame                                          */
	MISSED_MAX = 6,      /* a program without asyncio is searched for it at one look in 64 */
	SUSPENDED = 0xff,    /* frame state: FRAME_SUSPENDED; in 3.13 the same while it awaits */
};

/* What the headers do not say at run time; by asking an interpreter of each version where it has what. */
struct tasks_layout {
	uint16_t modules;          /* of an interpreter; 3.13 says it itself     */
	uint8_t waiter, coroutine; /* of a task                                  */
	uint8_t frame; /* of a coroutine: a pointer to its frame, from 3.11 on the frame itself */
	uint8_t stack,
		top; /* of a frame: begin of the values; where the top is: a pointer, from 3.10 on a number */
};

static const struct tasks_layout layouts[] = {
	[8 - MINOR_FIRST] = { 56, 104, 112, 16, 64, 72 },
	[9 - MINOR_FIRST] = { 856, 144, 152, 16, 64, 72 },
	[10 - MINOR_FIRST] = { 856, 152, 160, 16, 64, 80 },
	[11 - MINOR_FIRST] = { 888, 128, 136, 80, 72, 64 },
	[12 - MINOR_FIRST] = { 944, 128, 136, 72, 72, 64 },
	[13 - MINOR_FIRST] = { 0, 112, 120, 72, 72, 64 },
};

/* Offsets that did not change in those versions (Include/cpython/: dictobject.h, setobject.h, …). */
enum {
	OB_TYPE = 8,
	TYPE_NAME = 24,
	MODULE_DICT = 16,
	REF_OBJECT = 16,
	ITER_FUTURE =
		16, /* _asyncio.FutureIter, coroutine_wrapper, async_generator_asend: what they are of */
	DICT_KEYS = 32,
	DICT_VALUES = 40,
	SET_MASK = 32,
	SET_TABLE = 40,
	SET_ENTRY = 16,
};

enum kind {
	KIND_OTHER,
	KIND_COROUTINE,
	KIND_WRAPPER,
	KIND_ITER,
	KIND_TASK,
	KIND_FUTURE,
	KIND_SET,
	KIND_MODULE,
	KIND_DICT
};

struct look {
	const struct lang_runtime *rt;
	const struct lang_memory *mem;
	struct tasks_layout at;
	uint32_t minor;
	struct python_tasks *t;
};

static bool word(const struct look *k, uint64_t at, uint64_t *ret_word)
{
	return at >= 4096 && lang_read(k->mem, at, ret_word, sizeof(*ret_word));
}

static enum kind kind_named(const char *name)
{
	static const struct {
		const char *name;
		enum kind kind;
	} kinds[] = {
		{ "coroutine", KIND_COROUTINE },
		{ "generator", KIND_COROUTINE },
		{ "async_generator", KIND_COROUTINE },
		{ "coroutine_wrapper", KIND_WRAPPER },
		{ "async_generator_asend", KIND_WRAPPER },
		{ "_asyncio.FutureIter", KIND_ITER },
		{ "_asyncio.Task", KIND_TASK },
		{ "_asyncio.Future", KIND_FUTURE },
		{ "set", KIND_SET },
		{ "module", KIND_MODULE },
		{ "dict", KIND_DICT },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return kinds[i].kind;
	return KIND_OTHER;
}

/* By its type's name, which is asked for once. */
static enum kind kind_of(const struct look *k, uint64_t object)
{
	struct python_tasks *t = k->t;
	uint64_t type, at;
	char name[PYTHON_TYPE_NAME] = "";

	if (object % 8 || !word(k, object + OB_TYPE, &type))
		return KIND_OTHER;
	for (uint32_t i = 0; i < t->n_types; i++)
		if (t->types[i].type == type)
			return (enum kind)t->types[i].kind;
	/* A name may lie at the end of what is mapped: shorter ones are asked for, too. */
	if (!word(k, type + TYPE_NAME, &at) ||
	    (!lang_read(k->mem, at, name, sizeof(name) - 1) && !lang_read(k->mem, at, name, 8)))
		return KIND_OTHER;
	t->types[t->next_type].type = type;
	t->types[t->next_type].kind = (uint8_t)kind_named(name);
	t->next_type = (t->next_type + 1) % PYTHON_TYPES;
	if (t->n_types < PYTHON_TYPES)
		t->n_types++;
	return kind_named(name);
}

/* --- dicts --- */

static bool is_text(const struct look *k, uint64_t object, const char *want)
{
	char text[32];
	bool cut;

	return python_text(k->rt, k->mem, object, text, sizeof(text), &cut) == 0 && !cut &&
	       strcmp(text, want) == 0;
}

struct entries {
	uint64_t at, n;
	unsigned bytes, key; /* of an entry; where its key is, the value follows */
};

/* The keys of a dict, after Objects/dictobject.c: a table of indices, then the entries. */
static bool find_entries(const struct look *k, uint64_t keys, struct entries *ret_entries)
{
	uint64_t head[5];
	struct entries e;

	if (!lang_read(k->mem, keys, head, sizeof(head)))
		return false;
	if (k->minor < 11) {
		uint64_t size = head[1], index = size <= 0xff ? 1 : size <= 0xffff ? 2 : 4;

		if (size > SLOTS_MAX || size & (size - 1))
			return false;
		e = (struct entries){ keys + 40 + size * index, head[4], 24, 8 };
	} else {
		uint8_t index_bytes = head[1] >> 8 & 0xff, kind = head[1] >> 16 & 0xff;

		if (index_bytes > 24 || kind > 2)
			return false;
		e = (struct entries){ keys + 32 + (1ULL << index_bytes), head[3], kind ? 16 : 24,
				      kind ? 0 : 8 };
	}
	if (e.n > ENTRIES_MAX)
		return false;
	*ret_entries = e;
	return true;
}

/* The value of a text in a dict that is not split; 0: it has none. */
static uint64_t dict_get(const struct look *k, uint64_t dict, const char *key)
{
	uint64_t part[3 * ENTRIES_AT_ONCE], keys, values;
	struct entries e;

	if (kind_of(k, dict) != KIND_DICT || !word(k, dict + DICT_KEYS, &keys) ||
	    !word(k, dict + DICT_VALUES, &values) || values || !find_entries(k, keys, &e))
		return 0;
	for (uint64_t i = 0; i < e.n; i += ENTRIES_AT_ONCE) {
		uint64_t n = e.n - i < ENTRIES_AT_ONCE ? e.n - i : ENTRIES_AT_ONCE;

		if (!lang_read(k->mem, e.at + i * e.bytes, part, n * e.bytes))
			return 0;
		for (uint64_t j = 0; j < n; j++) {
			const uint64_t *entry = part + j * (e.bytes / 8) + e.key / 8;

			if (entry[0] && entry[1] && is_text(k, entry[0], key))
				return entry[1];
		}
	}
	return 0;
}

/* --- the set of tasks --- */

/* The first set among words. */
static uint64_t first_set(const struct look *k, const uint64_t *at, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (at[i] && kind_of(k, at[i]) == KIND_SET)
			return at[i];
	return 0;
}

static uint64_t set_in_values(const struct look *k, uint64_t values)
{
	uint64_t at[ATTRIBUTES_MAX / 2];

	return lang_read(k->mem, values, at, sizeof(at)) ? first_set(k, at, ATTRIBUTES_MAX / 2) : 0;
}

static uint64_t set_in_dict(const struct look *k, uint64_t dict)
{
	uint64_t keys, values, part[3 * ATTRIBUTES_MAX];
	struct entries e;

	if (kind_of(k, dict) != KIND_DICT || !word(k, dict + DICT_KEYS, &keys) ||
	    !word(k, dict + DICT_VALUES, &values))
		return 0;
	if (values)
		return set_in_values(k, values + (k->minor == 13 ? 8 : 0));
	if (!find_entries(k, keys, &e))
		return 0;
	e.n = e.n < ATTRIBUTES_MAX ? e.n : ATTRIBUTES_MAX;
	if (!lang_read(k->mem, e.at, part, e.n * e.bytes))
		return 0;
	return first_set(k, part, (uint32_t)(e.n * e.bytes / 8));
}

/*
 * WeakSet.data: its first attribute, and the first that is a set. Attributes are in a dict, or from 3.11 on in an array
 * of values: before the object, and in 3.13 behind it, until somebody asks for the dict.
 */
static uint64_t data_of(const struct look *k, uint64_t weakset)
{
	uint64_t at, set = 0;

	switch (k->minor) {
	case 11:
		if (word(k, weakset - 32, &at) && at)
			return set_in_values(k, at);
		break;
	case 12:
		if (word(k, weakset - 24, &at) && at & 1)
			return set_in_values(k, at + 1);
		break;
	case 13:
		set = set_in_values(k, weakset + 24);
		break;
	default:
		return word(k, weakset + 16, &at) ? set_in_dict(k, at) : 0;
	}
	if (!set && word(k, weakset - 24, &at))
		set = set_in_dict(k, at);
	return set;
}

static uint64_t weakset_of(const struct look *k, uint64_t interp)
{
	uint32_t modules_at = k->at.modules ? k->at.modules : k->rt->python_modules;
	uint64_t modules, module, dict;

	if (!modules_at || !word(k, interp + modules_at, &modules))
		return 0;
	module = dict_get(k, modules, "asyncio.tasks");
	if (!module || kind_of(k, module) != KIND_MODULE || !word(k, module + MODULE_DICT, &dict))
		return 0;
	return dict_get(k, dict, k->minor < 12 ? "_all_tasks" : "_scheduled_tasks");
}

/* The set of one interpreter that has asyncio; of several, the first. */
static uint64_t find_weakset(const struct look *k)
{
	uint64_t interp, weakset;

	if (!word(k, k->rt->python_interpreters, &interp))
		return 0;
	for (int i = 0; i < INTERPRETERS_MAX && interp; i++) {
		weakset = weakset_of(k, interp);
		if (weakset)
			return weakset;
		if (!word(k, interp + k->rt->python_interp_next, &interp))
			break;
	}
	return 0;
}

/* --- what a task awaits --- */

/* A frame, as the walk records it (bpf/walk/python.h). */
static bool add_frame(const struct look *k, uint64_t frame, struct python_task *task)
{
	const struct ms_python *p = &k->rt->row.python;
	uint64_t code, instr, first_line = 0, name, linetable;
	uint64_t *words = task->words[task->n];

	if (task->n == PYTHON_TASK_FRAMES || !word(k, frame + p->frame_code, &code) ||
	    !lang_read(k->mem, code + p->code_first_line, &first_line, 4) ||
	    !word(k, code + p->code_name, &name) || !word(k, code + p->code_linetable, &linetable))
		return false;
	if (p->instr_kind == MS_PYTHON_LASTI) {
		uint32_t lasti;

		if (!lang_read(k->mem, frame + p->frame_instr, &lasti, sizeof(lasti)))
			return false;
		instr = lasti;
	} else {
		if (!word(k, frame + p->frame_instr, &instr))
			return false;
		instr -= code;
	}
	words[0] = code;
	words[1] = (uint64_t)MS_LANG_PYTHON << MS_LANG_SHIFT |
		   (uint64_t)ms_python_cookie((uint32_t)first_line, name, linetable) << 32 |
		   (uint32_t)instr;
	task->n++;
	return true;
}

/* The frame of a coroutine that is suspended; 0: it is not. */
static uint64_t frame_of(const struct look *k, uint64_t coroutine)
{
	uint64_t frame = coroutine + k->at.frame;
	uint8_t state;

	if (k->minor < 11)
		return word(k, frame, &frame) ? frame : 0;
	return lang_read(k->mem, frame - 5, &state, 1) && state == SUSPENDED ? frame : 0;
}

/* What lies on top of its stack of values; 0: nothing. */
static uint64_t top_of(const struct look *k, uint64_t frame)
{
	uint64_t values = frame + k->at.stack, top, object;
	uint32_t n;

	if (k->minor < 11 && !word(k, values, &values))
		return 0;
	if (k->minor < 10) {
		if (!word(k, frame + k->at.top, &top) || top <= values ||
		    top - values > 8 * STACK_MAX)
			return 0;
	} else {
		if (!lang_read(k->mem, frame + k->at.top, &n, sizeof(n)) || !n || n > STACK_MAX)
			return 0;
		top = values + 8ULL * n;
	}
	return word(k, top - 8, &object) ? object : 0;
}

/* The chain of coroutines, the outermost first. */
static void follow(const struct look *k, uint64_t at, struct python_task *task)
{
	uint64_t frame;

	for (int i = 0; i < 2 * PYTHON_TASK_FRAMES && at; i++) {
		switch (kind_of(k, at)) {
		case KIND_COROUTINE:
			frame = frame_of(k, at);
			if (!frame || !add_frame(k, frame, task))
				return;
			at = top_of(k, frame);
			break;
		case KIND_WRAPPER:
			if (!word(k, at + ITER_FUTURE, &at))
				return;
			break;
		case KIND_ITER:
			task->of_task =
				word(k, at + ITER_FUTURE, &at) && kind_of(k, at) == KIND_TASK;
			return;
		case KIND_TASK:
			task->of_task = true;
			return;
		default:
			return;
		}
	}
}

static void read_task(const struct look *k, uint64_t at, struct python_task_fn *fn)
{
	struct python_task task = { .at = at };
	uint64_t coroutine, now[2];

	fn->seen++;
	if (!word(k, at + k->at.waiter, &task.waits_for) ||
	    !word(k, at + k->at.coroutine, &coroutine)) {
		fn->changed++;
		return;
	}
	if (task.waits_for < 4096) {
		fn->ready++; /* it runs, is about to, or has ended */
		return;
	}
	follow(k, coroutine, &task);
	/* The same coroutine waits for the same as before: nothing ran in between. */
	if (!word(k, at + k->at.waiter, &now[0]) || !word(k, at + k->at.coroutine, &now[1]) ||
	    now[0] != task.waits_for || now[1] != coroutine || !task.n)
		fn->changed++;
	else
		fn->task(fn->ctx, &task);
}

static void read_set(const struct look *k, uint64_t set, struct python_task_fn *fn)
{
	uint64_t mask, table, part[2 * ENTRIES_AT_ONCE], at;
	uint32_t left = fn->max;

	if (!word(k, set + SET_MASK, &mask) || !word(k, set + SET_TABLE, &table) ||
	    mask >= SLOTS_MAX)
		return;
	for (uint64_t i = 0; i <= mask && left; i += ENTRIES_AT_ONCE) {
		uint64_t n = mask + 1 - i < ENTRIES_AT_ONCE ? mask + 1 - i : ENTRIES_AT_ONCE;

		if (!lang_read(k->mem, table + i * SET_ENTRY, part, n * SET_ENTRY)) {
			fn->changed++; /* it has grown meanwhile */
			return;
		}
		for (uint64_t j = 0; j < n && left; j++) {
			/* Free ones are 0, and what was taken out is a static object that no weak reference is. */
			if (!part[2 * j] || !word(k, part[2 * j] + REF_OBJECT, &at) || at < 4096 ||
			    kind_of(k, at) != KIND_TASK)
				continue;
			left--;
			read_task(k, at, fn);
		}
	}
	fn->more = !left;
}

int python_tasks(const struct lang_runtime *rt, const struct lang_memory *mem,
		 struct python_tasks *t, struct python_task_fn *fn)
{
	struct look k = { .rt = rt, .mem = mem, .minor = rt->version >> 8 & 0xff, .t = t };
	uint64_t set;

	if (rt->lang != MS_LANG_PYTHON || k.minor < MINOR_FIRST || k.minor > MINOR_LAST ||
	    rt->object_head != 16 || !rt->python_interpreters)
		return -EOPNOTSUPP;
	k.at = layouts[k.minor - MINOR_FIRST];
	if (t->skip) {
		t->skip--;
		return -ENOENT;
	}
	if (!t->weakset)
		t->weakset = find_weakset(&k);
	set = t->weakset ? data_of(&k, t->weakset) : 0;
	if (!set) {
		t->weakset = 0;
		t->missed += t->missed < MISSED_MAX;
		t->skip = 1u << t->missed;
		return -ENOENT;
	}
	t->missed = 0;
	read_set(&k, set, fn);
	return 0;
}
