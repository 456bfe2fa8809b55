/*
 * CPython in a process: its layout, and how a thread finds its state.
 *
 * A thread's state is the value of a key of pthread_getspecific() (autoTSSkey of _PyRuntime, "gilstate"), which
 * stays while the thread waits without the global lock. The key has no symbol: the function that returns that
 * value, PyGILState_GetThisThreadState(), is followed to the call that it makes. Where the C library
 * keeps the value is known from its own code (thread.c).
 *
 * All that is believed only when it holds in the process: of the threads that the interpreters list, one has its own
 * state where the row says.
 */
#include "lang/python.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { KEYS_MAX = 1024, INTERPRETERS_MAX = 64, THREADS_MAX = 4096, TYPE_READY = 1 << 12 };

struct find {
	const struct lang_mapped *runtime;
	const struct lang_image *libc; /* NULL: not known */
	const struct lang_memory *mem;
	const struct python_image *py;
	struct python_layout layout;
	struct lang_runtime rt;
	/* The key: {initialized:4 key:4} */
	bool has_key, many;
	bool is_waiting; /* the function has a key, which is not made yet */
	uint32_t key;
};

/* --- the key --- */

/* The address that a place stands for, in the process; what was read last is not. */
static bool address_of(const struct find *f, const struct place *p, uint8_t reads,
		       uint64_t *ret_addr)
{
	uint64_t addr = (uint64_t)p->off[0];

	if (p->base == PLACE_IMAGE)
		addr += f->runtime->bias;
	else if (p->base != PLACE_NUMBER)
		return false;
	for (uint8_t i = 0; i < reads; i++) {
		if (!lang_read(f->mem, addr, &addr, sizeof(addr)))
			return false;
		addr += (uint64_t)p->off[i + 1];
	}
	*ret_addr = addr;
	return true;
}

/* Is it a part of _PyRuntime, where that is known? */
static bool is_runtime(const struct find *f, uint64_t addr)
{
	uint64_t off = addr - f->py->runtime - f->runtime->bias;

	return !f->py->runtime_size || (off < f->py->runtime_size && off % 4 == 0);
}

/* The function calls another with a pointer to {initialized, key}, or with the key itself. */
static void take_call(void *ctx, const struct place *arg)
{
	struct find *f = ctx;
	bool is_key = arg->reads && arg->last_bytes == 4 && !arg->off[arg->reads];
	uint32_t pair[2];
	uint64_t addr;

	/* Its own first argument is a number. */
	if (arg->base != PLACE_IMAGE && (arg->base != PLACE_NUMBER || !arg->off[0]))
		return;
	/* While the dynamic linker is at work, pointers to the runtime are none yet. */
	f->is_waiting = true;
	if (!address_of(f, arg, is_key ? arg->reads - 1 : arg->reads, &addr))
		return;
	addr -= is_key ? sizeof(pair[0]) : 0;
	if (!is_runtime(f, addr) || !lang_read(f->mem, addr, pair, sizeof(pair)) || pair[0] != 1 ||
	    pair[1] >= KEYS_MAX)
		return;
	f->many |= f->has_key && f->key != pair[1];
	f->has_key = true;
	f->key = pair[1];
}

static int find_key(struct find *f, struct err *e)
{
	accessor_follow(&f->py->tstate, 0, &(struct accessor_fn){ .calls = take_call, .ctx = f });
	if (f->has_key && !f->many)
		return 0;
	if (!f->has_key && f->is_waiting)
		return err_set(e, -EAGAIN, "%s has not been initialized", f->rt.name);
	return err_set(e, -EOPNOTSUPP,
		       "%s: how its threads find their state cannot be read from "
		       "PyGILState_GetThisThreadState()",
		       f->rt.name);
}

/* --- is it so? --- */

static bool word_at(const struct find *f, uint64_t addr, uint64_t *ret_word)
{
	return lang_read(f->mem, addr, ret_word, sizeof(*ret_word));
}

/* 1: this thread has its state where the row says; 0: it has not; -1: nobody knows. */
static int has_state(const struct find *f, uint64_t tstate)
{
	uint64_t self, tp, value;

	if (!word_at(f, tstate + f->layout.tstate_thread_id, &self) || !self ||
	    !lang_thread_pointer(f->libc, self, &tp) ||
	    !lang_thread_value(&f->rt.row, tp, f->mem, &value) || !value)
		return -1;
	return value == tstate;
}

/*
 * Goes through the threads of all interpreters. A thread that runs another interpreter for a while has that
 * one's state; so one that fits is enough.
 */
static int check_threads(const struct find *f, struct err *e)
{
	uint64_t interp, tstate;
	uint32_t n = 0, other = 0;

	/* Nothing to check it with. */
	if (!f->py->runtime || !f->libc->self.len)
		return 0;
	if (!word_at(f, f->py->runtime + f->runtime->bias + f->layout.runtime_interpreters,
		     &interp))
		return err_set(e, -EAGAIN, "%s: its memory cannot be read", f->rt.name);
	for (int i = 0; i < INTERPRETERS_MAX && interp; i++) {
		if (!word_at(f, interp + f->layout.interp_threads, &tstate))
			break;
		while (tstate && n++ < THREADS_MAX) {
			int has = has_state(f, tstate);

			if (has == 1)
				return 0;
			other += has == 0;
			if (!word_at(f, tstate + f->layout.tstate_next, &tstate))
				break;
		}
		if (!word_at(f, interp + f->layout.interp_next, &interp))
			break;
	}
	return err_set(e, -EAGAIN,
		       other ? "%s: none of its threads has its state where it should be"
			     : "%s has no thread with a state yet",
		       f->rt.name);
}

/* What code objects have as their type, if that can be relied on: a program that is not position-independent
 * may have a copy of the library's variable, and that one is used. */
static uint64_t code_type(const struct find *f)
{
	uint64_t type = f->py->code_type + f->runtime->bias, name, flags;
	char text[5];

	if (!f->py->code_type || !word_at(f, type + f->layout.type_name, &name) ||
	    !word_at(f, type + f->layout.type_flags, &flags) || !(flags & TYPE_READY) ||
	    !lang_read(f->mem, name, text, sizeof(text)) || memcmp(text, "code", 5) != 0)
		return 0;
	return type;
}

static int find_layout(struct find *f, struct err *e)
{
	const struct python_image *py = f->py;
	uint8_t said[PYTHON_OFFSETS_BYTES];
	bool says = py->runtime && py->runtime_size >= sizeof(said) &&
		    lang_read(f->mem, py->runtime + f->runtime->bias, said, sizeof(said)) &&
		    python_said_version(said);
	uint32_t version = says ? python_said_version(said) : py->version;
	int r;

	if (!version)
		return err_set(e, -EOPNOTSUPP, "%s: has CPython, but its version is not known",
			       f->runtime->image->name);
	if (says && py->version && py->version != version)
		return err_set(
			e, -EOPNOTSUPP,
			"%s: says that it is CPython 3.%u.%u in one place and 3.%u.%u in another",
			f->runtime->image->name, py->version >> 8 & 0xff, py->version & 0xff,
			version >> 8 & 0xff, version & 0xff);
	f->rt.version = version;
	snprintf(f->rt.name, sizeof(f->rt.name), "CPython 3.%u.%u", version >> 8 & 0xff,
		 version & 0xff);
	/* While it is being mapped, anything may be there. */
	if (!says && py->runtime && python_says_layout(version))
		return err_set(e, -EAGAIN, "%s does not say its layout", f->rt.name);
	r = python_layout_find(version, says ? said : NULL, &f->layout, e);
	if (r == 0 && f->layout.free_threaded)
		snprintf(f->rt.name, sizeof(f->rt.name), "CPython 3.%u.%u free-threaded",
			 version >> 8 & 0xff, version & 0xff);
	return r;
}

static void fill_runtime(struct find *f)
{
	const struct python_layout *l = &f->layout;
	struct lang_runtime *rt = &f->rt;

	rt->lang = MS_LANG_PYTHON;
	rt->untested = l->untested || f->py->tstate.machine != EM_X86_64;
	rt->row.lang = MS_LANG_PYTHON;
	rt->row.python = l->frames;
	lang_ranges_mapped(f->runtime, &rt->row);
	rt->code_filename = l->code_filename;
	rt->code_qualname = l->code_qualname;
	rt->code_bytecode = l->code_bytecode;
	rt->str_ascii = l->str_ascii;
	rt->str_compact = l->str_compact;
	rt->object_head = l->object;
	rt->ob_type = l->ob_type;
	rt->code_type = code_type(f);
	if (f->py->runtime)
		rt->python_interpreters =
			f->py->runtime + f->runtime->bias + l->runtime_interpreters;
	rt->python_interp_next = l->interp_next;
	rt->python_modules = l->interp_modules;
}

int python_find(const struct lang_mapped *runtime, const struct lang_mapped *libc,
		const struct lang_memory *mem, struct lang_runtime *ret_runtime, struct err *e)
{
	struct find f = { .runtime = runtime,
			  .libc = libc ? libc->image : NULL,
			  .mem = mem,
			  .py = &runtime->image->python };
	int r = find_layout(&f, e);

	if (r < 0)
		return r;
	r = find_key(&f, e);
	if (r < 0)
		return r;
	r = lang_thread_slot(f.libc, f.key, &f.rt.row, e);
	if (r < 0)
		return r;
	r = check_threads(&f, e);
	if (r < 0)
		return r;
	fill_runtime(&f);
	*ret_runtime = f.rt;
	return 0;
}
