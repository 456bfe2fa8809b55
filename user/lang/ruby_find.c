/*
 * Ruby in a process: its layout, and how a thread finds its state.
 *
 * From 3.0 on a thread's execution context is a thread-local variable (ruby_current_ec), which stays while the thread waits
 * without the GVL, and changes with the fiber. It has no symbol from 3.3 on: rb_thread_current() is followed to its own
 * read of it, or to its call of __tls_get_addr() with {module, offset}, which the dynamic linker has filled in. Up to 2.7 it
 * is one variable, of the thread that has the GVL: the walk takes it only for the thread on whose C stack it says to be.
 */
#include "lang/ruby.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MODULES_MAX = 1 << 20, OFFSET_MAX = 1 << 24, EC_READS = 3 };

struct find {
	const struct lang_mapped *runtime;
	const struct lang_memory *mem;
	const struct ruby_image *rb;
	struct lang_runtime rt;
	bool has_thread, waiting;
};

/* rb_thread_current() returns ec->thread_ptr->self: three reads, the first at a distance from the thread's pointer. */
static void take_return(void *ctx, const struct place *value)
{
	struct find *f = ctx;

	if (f->has_thread || value->base != PLACE_THREAD || value->reads != EC_READS ||
	    value->last_bytes != 8)
		return;
	f->rt.row.thread = MS_THREAD_TLS;
	f->rt.row.off = (uint64_t)value->off[0];
	f->has_thread = true;
}

/* __tls_get_addr(&{module, offset}). */
static void take_call(void *ctx, const struct place *arg)
{
	struct find *f = ctx;
	uint64_t pair[2];

	if (f->has_thread || arg->base != PLACE_IMAGE || arg->reads)
		return;
	if (!lang_read(f->mem, (uint64_t)arg->off[0] + f->runtime->bias, pair, sizeof(pair)) ||
	    !pair[0]) {
		f->waiting = true;
		return;
	}
	if (pair[0] > MODULES_MAX || pair[1] > OFFSET_MAX)
		return;
	f->rt.row.thread = MS_THREAD_DTV;
	f->rt.row.module = pair[0];
	f->rt.row.off = pair[1];
	f->has_thread = true;
}

static int find_thread(struct find *f, struct err *e)
{
	if (f->rb->current_ec) {
		f->rt.row.thread = MS_THREAD_GLOBAL;
		f->rt.row.off = f->rb->current_ec + f->runtime->bias;
		return 0;
	}
	accessor_follow(
		&f->rb->current, 0,
		&(struct accessor_fn){ .returns = take_return, .calls = take_call, .ctx = f });
	if (f->has_thread)
		return 0;
	if (f->waiting)
		return err_set(e, -EAGAIN, "%s has not been initialized", f->rt.name);
	return err_set(
		e, -EOPNOTSUPP,
		"%s: how its threads find their state cannot be read from rb_thread_current()",
		f->rt.name);
}

/* Of the variables that may be the names of IDs, the one that has names. Operators are themselves: "!" is 33. */
static int find_names(struct find *f, struct err *e)
{
	struct ruby_rt *ruby = &f->rt.ruby;

	for (uint32_t i = 0; i < f->rb->n_names; i++) {
		char text[8] = "";
		uint64_t string;
		bool cut = false;

		ruby->names = f->rb->names[i] + f->runtime->bias;
		if (ruby_name(ruby, f->mem, '!', &string) == 0 &&
		    ruby_text(ruby, f->mem, string, text, sizeof(text), &cut) == 0 &&
		    !strcmp(text, "!"))
			return 0;
	}
	return err_set(e, -EAGAIN, "%s: it has no names of methods (yet)", f->rt.name);
}

int ruby_find(const struct lang_mapped *runtime, const struct lang_mapped *libc,
	      const struct lang_memory *mem, struct lang_runtime *ret_runtime, struct err *e)
{
	struct find f = { .runtime = runtime, .mem = mem, .rb = &runtime->image->ruby };
	struct lang_runtime *rt = &f.rt;
	uint32_t version = f.rb->version;
	struct ruby_layout layout;
	int r = ruby_layout_find(version, &layout, e);

	(void)libc;
	if (r < 0)
		return r;
	rt->lang = MS_LANG_RUBY;
	rt->version = version;
	rt->untested = layout.untested || f.rb->current.machine != EM_X86_64;
	snprintf(rt->name, sizeof(rt->name), "Ruby %u.%u.%u", version >> 16, version >> 8 & 0xff,
		 version & 0xff);
	rt->ruby = layout.rt;
	rt->row.lang = MS_LANG_RUBY;
	rt->row.ruby = layout.frames;
	rt->row.ruby.ready = f.rb->ready;
	rt->row.ruby.cfp_reg = f.rb->cfp_reg;
	rt->row.ruby.outer = f.rb->outer;
	lang_ranges_mapped(runtime, &rt->row);
	r = find_thread(&f, e);
	if (r == 0)
		r = find_names(&f, e);
	if (r < 0)
		return r;
	*ret_runtime = f.rt;
	return 0;
}
