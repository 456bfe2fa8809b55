/*
 * Perl in a process: its layout, and where a thread has its interpreter. With threads (-Dusethreads, as
 * distributions build it) each interpreter is a struct, which a thread finds by the key PL_thr_key of
 * pthread_getspecific(); without, its variables are the program's own, or in one struct (-Dusemultiplicity).
 *
 * The layout is believed when the first interpreter of the process looks like it: its stacks of contexts.
 */
#include "lang/perl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MINOR_FIRST = 30, MINOR_LAST = 40, KEYS_MAX = 1024, STACKS_MAX = 64, PERLSI_MAIN = 1 };
enum { TRIED_THREADS = 1, TRIED_GLOBAL = 2 }; /* on a running program, with threads and without */

/* Of the versions with an even minor number: 5.30.3, 5.32.1, 5.34.3, 5.36.0, 5.38.2, 5.40.0. */
static const struct perl_layout {
	uint16_t curcop, stackinfo; /* in struct interpreter */
	uint8_t cx_bytes, cx_cv;
	uint8_t si_type;
	bool hv_aux; /* struct xpvhv_aux lies in the body of a hash, not behind its buckets */
	uint8_t tried;
} rows[] = {
	[0] = { 0xe0, 0xf0, 0x60, 0x40, 0x28, false, TRIED_GLOBAL },
	[1] = { 0xe0, 0xf0, 0x68, 0x48, 0x2c, false, TRIED_THREADS },
	[2] = { 0xd0, 0xe0, 0x68, 0x48, 0x2c, false, TRIED_THREADS },
	[3] = { 0xd0, 0xe0, 0x68, 0x48, 0x2c, true, TRIED_THREADS },
	[4] = { 0xd0, 0xe0, 0x68, 0x48, 0x2c, true, TRIED_GLOBAL },
	[5] = { 0xd0, 0xe0, 0x68, 0x48, 0x2c, true, TRIED_THREADS },
};

_Static_assert(sizeof(rows) / sizeof(rows[0]) == (MINOR_LAST - MINOR_FIRST) / 2 + 1, "a row each");

struct find {
	const struct lang_mapped *runtime;
	const struct lang_memory *mem;
	const struct perl_image *perl;
	const struct perl_layout *layout;
	struct lang_runtime rt;
};

static bool word_at(const struct find *f, uint64_t addr, uint64_t *ret_word)
{
	return lang_read(f->mem, addr, ret_word, sizeof(*ret_word));
}

/* An address in the process of what is at `vaddr`, 0 of nothing. */
static uint64_t mapped(const struct find *f, uint64_t vaddr)
{
	return vaddr ? vaddr + f->runtime->bias : 0;
}

static void map_range(const struct find *f, const struct lang_range *range, __u64 *ret_start,
		      __u64 *ret_end)
{
	*ret_start = mapped(f, range->start);
	*ret_end = mapped(f, range->end);
}

/* Do the stacks of contexts, from the innermost one at `si` on, look like such? */
static bool are_stacks(const struct find *f, uint64_t si)
{
	uint8_t buf[0x30];
	int32_t ix, max, type;

	for (int i = 0; si && i < STACKS_MAX; i++) {
		if (si % 8 || !lang_read(f->mem, si, buf, sizeof(buf)))
			return false;
		memcpy(&ix, buf + 0x20, sizeof(ix));
		memcpy(&max, buf + 0x24, sizeof(max));
		memcpy(&type, buf + f->layout->si_type, sizeof(type));
		memcpy(&si, buf + 0x10, sizeof(si));
		if (ix < -1 || max < 0 || ix > max || max > 1 << 24 || type < -1 || type > 32 ||
		    (!si && type != PERLSI_MAIN))
			return false;
	}
	return true;
}

/* Is what the row says there in the first interpreter? */
static int check(const struct find *f, uint64_t interpreter, struct err *e)
{
	const struct ms_perl *p = &f->rt.row.perl;
	uint64_t base = p->global ? 0 : interpreter, si = 0, cop = 0;

	if (!word_at(f, base + p->stackinfo, &si) || !word_at(f, base + p->curcop, &cop) || !si ||
	    !cop)
		return err_set(e, -EAGAIN, "%s has not been initialized", f->rt.name);
	if (!are_stacks(f, si) || cop % 8)
		return err_set(e, -EAGAIN, "%s: its memory does not look like that version",
			       f->rt.name);
	return 0;
}

/* How a thread finds its interpreter, and the first one. */
static int find_thread(struct find *f, const struct lang_image *libc, uint64_t *ret_interpreter,
		       struct err *e)
{
	const struct perl_image *perl = f->perl;
	struct ms_lang_row *row = &f->rt.row;
	uint64_t at = mapped(f, perl->interpreter);
	uint32_t key;

	*ret_interpreter = 0;
	if (!perl->thread_key && perl->curcop && perl->stackinfo && perl->op) {
		row->thread = MS_THREAD_GLOBAL;
		row->off = mapped(f, perl->stackinfo);
		row->perl.global = 1;
		return 0;
	}
	if (!at || !word_at(f, at, ret_interpreter) || !*ret_interpreter)
		return err_set(e, at ? -EAGAIN : -EOPNOTSUPP,
			       at ? "%s has not been initialized"
				  : "%s: where its interpreter is is not known",
			       f->rt.name);
	if (!perl->thread_key) {
		row->thread = MS_THREAD_GLOBAL;
		row->off = at;
		return 0;
	}
	if (!lang_read(f->mem, mapped(f, perl->thread_key), &key, sizeof(key)) || key >= KEYS_MAX)
		return err_set(e, -EAGAIN, "%s has not been initialized", f->rt.name);
	return lang_thread_slot(libc, key, row, e);
}

static void fill_row(struct find *f)
{
	const struct perl_layout *l = f->layout;
	struct ms_perl *p = &f->rt.row.perl;

	f->rt.lang = f->rt.row.lang = MS_LANG_PERL;
	f->rt.perl_threads = f->perl->thread_key != 0;
	f->rt.perl_hv_aux = l->hv_aux;
	lang_ranges_mapped(f->runtime, &f->rt.row);
	map_range(f, &f->perl->main, &p->main_start, &p->main_end);
	map_range(f, &f->perl->catch, &p->catch_start, &p->catch_end);
	p->entersub = mapped(f, f->perl->entersub);
	p->cx_bytes = l->cx_bytes;
	p->cx_cv = l->cx_cv;
	p->op = p->global ? mapped(f, f->perl->op) : 8;
	p->curcop = p->global ? mapped(f, f->perl->curcop) : l->curcop;
	p->stackinfo = p->global ? mapped(f, f->perl->stackinfo) : l->stackinfo;
}

int perl_find(const struct lang_mapped *runtime, const struct lang_mapped *libc,
	      const struct lang_memory *mem, struct lang_runtime *ret_runtime, struct err *e)
{
	struct find f = { .runtime = runtime, .mem = mem, .perl = &runtime->image->perl };
	uint32_t version = f.perl->version, minor = version >> 8 & 0xff;
	uint64_t interpreter;
	int r;

	f.rt.version = version;
	snprintf(f.rt.name, sizeof(f.rt.name), "Perl %u.%u.%u", version >> 16, minor,
		 version & 0xff);
	if (version >> 16 != 5 || minor < MINOR_FIRST || minor > MINOR_LAST || minor % 2)
		return err_set(e, -EOPNOTSUPP,
			       "%s: its layout is not known, as that of 5.%d to 5.%d is", f.rt.name,
			       MINOR_FIRST, MINOR_LAST);
	f.layout = &rows[(minor - MINOR_FIRST) / 2];
	r = find_thread(&f, libc ? libc->image : NULL, &interpreter, e);
	if (r < 0)
		return r;
	fill_row(&f);
	f.rt.untested = !(f.layout->tried & (f.rt.row.perl.global ? TRIED_GLOBAL : TRIED_THREADS));
	r = check(&f, interpreter, e);
	if (r < 0)
		return r;
	*ret_runtime = f.rt;
	return 0;
}
