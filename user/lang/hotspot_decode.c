/*
 * A frame of HotSpot's as the walk recorded it, to functions, files and lines.
 *
 *   interpreted   Method ─► ConstMethod ─► ConstantPool ─► InstanceKlass      names
 *                                    └─► bytecodes, table of line numbers     line of the bci
 *   compiled      nmethod ─► PcDesc of the pc ─► scopes                       a Method and a bci for each that is inlined
 *   a stub        CodeBlob ─► name
 *
 * Scopes are compressed numbers (code/scopeDesc.cpp): where the scope begins that this one is inlined into, 0: in none; the
 * number of its Method among the nmethod's metadata, from 1 on; the bci and 1. Compiled code has such a description at its
 * calls of Java and polls only: a thread that was interrupted between two of them, or calls a stub, is said to be at the
 * next one, as by the JVM itself (forte.cpp).
 *
 * Memory may have been freed, and be anything: an nmethod is known by its compile id, a Method by that its class's constants are
 * those that it names.
 */
#include "abi.h"
#include "lang/hotspot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	PCS_MAX = 1 << 17,
	PCS_AT_ONCE = 32,
	METHODS_MAX = 1 << 16,
	CONST_MAX = 128,
	CODE_MAX = 65535,
	NO_BCI = -1,
};

#define SCOPES_MAX (64u << 20)

struct decoder {
	const struct hotspot_rt *rt;
	const struct lang_memory *mem;
	uint64_t at; /* the CodeBlob */
	uint8_t blob[MS_HOTSPOT_BYTES];
};

static uint16_t half(const uint8_t *bytes, size_t at)
{
	uint16_t n;

	memcpy(&n, bytes + at, sizeof(n));
	return n;
}

static uint64_t word(const uint8_t *bytes, size_t at)
{
	uint64_t n;

	memcpy(&n, bytes + at, sizeof(n));
	return n;
}

static uint64_t raw(const struct decoder *d, const struct ms_field *f)
{
	uint64_t n = 0;

	if (f->bytes)
		memcpy(&n, d->blob + f->at, f->bytes);
	return n;
}

/* Offsets are ints, and sizes. */
static uint64_t from(const struct decoder *d, const struct ms_field *f, uint8_t base)
{
	uint64_t n = raw(d, f);

	switch (base) {
	case HOTSPOT_FROM_HEADER:
		return d->at + n;
	case HOTSPOT_FROM_DATA:
		return d->at + raw(d, &d->rt->data) + n;
	case HOTSPOT_FROM_IMMUTABLE:
		return raw(d, &d->rt->immutable) + n;
	case HOTSPOT_FROM_MUTABLE:
		return raw(d, &d->rt->mutable_data) + raw(d, &d->rt->relocation);
	default:
		return n;
	}
}

static enum lang_decoded why(int r)
{
	return r == -EIO ? LANG_GONE : LANG_DAMAGED;
}

/* --- a Method --- */

struct method {
	uint64_t at, constant, pool, klass;
	uint8_t bytes[CONST_MAX]; /* of the ConstMethod */
	uint32_t pool_length, code;
};

static bool read_word(const struct decoder *d, uint64_t at, uint64_t *ret_word)
{
	return at >= 4096 && !(at & 7) && lang_read(d->mem, at, ret_word, sizeof(*ret_word));
}

static int read_method(const struct decoder *d, uint64_t at, struct method *m)
{
	const struct hotspot_rt *rt = d->rt;
	uint64_t constants;

	m->at = at;
	if (rt->const_bytes > sizeof(m->bytes) || rt->const_code + 2 > rt->const_bytes ||
	    rt->const_name + 2 > rt->const_bytes || rt->const_constants + 8 > rt->const_bytes ||
	    rt->const_words + 4 > rt->const_bytes)
		return -EBADMSG;
	if (!read_word(d, at + rt->method_const, &m->constant) || m->constant & 7 ||
	    m->constant < 4096 || !lang_read(d->mem, m->constant, m->bytes, rt->const_bytes))
		return -EIO;
	m->pool = word(m->bytes, rt->const_constants);
	m->code = half(m->bytes, rt->const_code);
	if (!read_word(d, m->pool + rt->pool_holder, &m->klass) ||
	    !lang_read(d->mem, m->pool + rt->pool_length, &m->pool_length, 4) ||
	    !read_word(d, m->klass + rt->klass_constants, &constants))
		return -EIO;
	return constants == m->pool ? 0 : -EIO;
}

/* A Symbol that the constants have at `index`. */
static int pool_symbol(const struct decoder *d, const struct method *m, uint16_t index, char *text,
		       size_t room, bool *ret_cut)
{
	uint64_t at;

	if (!index || index >= m->pool_length)
		return -EBADMSG;
	if (!read_word(d, m->pool + d->rt->pool_bytes + 8 * (uint64_t)index, &at))
		return -EIO;
	return hotspot_symbol(d->rt, d->mem, at, false, text, room, ret_cut);
}

static int read_file(const struct decoder *d, const struct method *m, struct lang_frame *f)
{
	uint64_t at =
		d->rt->klass_has_file ? m->klass + d->rt->klass_file : m->pool + d->rt->pool_file;
	uint16_t index;
	bool cut = false;
	int r;

	f->file[0] = '\0';
	if (!lang_read(d->mem, at, &index, sizeof(index)))
		return -EIO;
	r = index ? pool_symbol(d, m, index, f->file, sizeof(f->file), &cut) : 0;
	f->cut |= cut;
	return r;
}

static int read_name(const struct decoder *d, const struct method *m, struct lang_frame *f)
{
	bool cut, cut_too;
	uint64_t symbol;
	size_t n;
	int r;

	if (!read_word(d, m->klass + d->rt->klass_name, &symbol))
		return -EIO;
	r = hotspot_symbol(d->rt, d->mem, symbol, true, f->function, sizeof(f->function) - 64,
			   &cut);
	if (r < 0)
		return r;
	n = strlen(f->function);
	f->function[n++] = '.';
	r = pool_symbol(d, m, half(m->bytes, d->rt->const_name), f->function + n,
			sizeof(f->function) - n, &cut_too);
	f->cut = cut || cut_too;
	return r;
}

static uint32_t line_of(const struct decoder *d, const struct method *m, int bci)
{
	const struct hotspot_rt *rt = d->rt;
	uint64_t begin = m->constant + rt->const_bytes + m->code, end;
	struct hotspot_stream table;
	uint32_t words;

	memcpy(&words, m->bytes + rt->const_words, sizeof(words));
	end = m->constant + 8 * (uint64_t)words;
	if (bci < 0 || bci >= (int)m->code || end <= begin || words > 1 << 20)
		return 0;
	/* Without a table, other things follow the bytecodes, and its flag is not looked at: a method that has none has no
	 * file either, as compilers write both or neither. */
	hotspot_stream_open(&table, d->mem, begin, end, rt->no_zeros);
	return hotspot_line(&table, (uint32_t)bci);
}

static int name_method(const struct decoder *d, uint64_t at, int bci, struct lang_frame *f)
{
	struct method m, again;
	int r = read_method(d, at, &m);

	if (r == 0)
		r = read_name(d, &m, f);
	if (r == 0)
		r = read_file(d, &m, f);
	if (r < 0)
		return r;
	f->stub = false;
	f->line = *f->file ? line_of(d, &m, bci) : 0;
	f->first_line = 0;
	r = read_method(d, at, &again);
	if (r == 0 && (again.constant != m.constant || again.pool != m.pool))
		r = -EIO;
	return r;
}

/* --- compiled code --- */

static int32_t number(const uint8_t *bytes, size_t at)
{
	int32_t n;

	memcpy(&n, bytes + at, sizeof(n));
	return n;
}

/*
 * Where the scopes are described of what is at `off` in the code: there, if that is a return address, or the next ones.
 * 0: nowhere.
 */
static int find_scope(const struct decoder *d, uint32_t off, bool exact, uint32_t *ret_scope)
{
	const struct hotspot_rt *rt = d->rt;
	uint64_t at = from(d, &rt->pcs, rt->pcs_from), end = from(d, &rt->pcs_end, rt->pcs_from);
	uint8_t bytes[64 * PCS_AT_ONCE];

	*ret_scope = 0;
	if (end < at || (end - at) / rt->pc_bytes > PCS_MAX)
		return -EBADMSG;
	for (uint64_t n = (end - at) / rt->pc_bytes; n;) {
		uint32_t some = n < PCS_AT_ONCE ? (uint32_t)n : PCS_AT_ONCE;

		if (!lang_read(d->mem, at, bytes, some * rt->pc_bytes))
			return -EIO;
		for (uint32_t i = 0; i < some; i++) {
			const uint8_t *pc = bytes + i * rt->pc_bytes;
			int32_t pc_off = number(pc, rt->pc_offset);

			/* The first and the last are no places. */
			if (pc_off < 0 || (uint32_t)pc_off < off + (exact ? 1 : 0))
				continue;
			if (number(pc, rt->pc_scope) > 0)
				*ret_scope = (uint32_t)number(pc, rt->pc_scope);
			return 0;
		}
		at += some * rt->pc_bytes;
		n -= some;
	}
	return 0;
}

static int read_scopes(const struct decoder *d, uint32_t scope, struct lang_frames *all)
{
	const struct hotspot_rt *rt = d->rt;
	uint64_t begin = from(d, &rt->scopes, rt->scopes_from), end;
	uint64_t methods = from(d, &rt->metadata, rt->metadata_from), method;
	int r;

	end = rt->pcs_from == HOTSPOT_FROM_IMMUTABLE
		      ? raw(d, &rt->immutable) + (uint32_t)raw(d, &rt->immutable_bytes)
		      : from(d, &rt->pcs, rt->pcs_from);
	if (end <= begin || end - begin > SCOPES_MAX)
		return -EBADMSG;
	while (scope) {
		struct hotspot_stream s;
		uint32_t sender, index, bci;

		if (scope >= end - begin)
			return -EBADMSG;
		hotspot_stream_open(&s, d->mem, begin + scope, end, rt->no_zeros);
		sender = hotspot_stream_number(&s);
		index = hotspot_stream_number(&s);
		bci = hotspot_stream_number(&s);
		if (s.lost || !index || index > METHODS_MAX)
			return -EBADMSG;
		if (sender >= scope)
			return -EBADMSG; /* an outer scope is described before */
		if (!read_word(d, methods + 8 * (uint64_t)(index - 1), &method))
			return -EIO;
		/* Of too many, the outermost ones count as one. */
		if (all->n == LANG_INLINED_MAX)
			all->n--;
		r = name_method(d, method, (int)bci - 1, &all->frame[all->n]);
		if (r < 0)
			return r;
		all->n++;
		scope = sender;
	}
	return 0;
}

static enum lang_decoded decode_compiled(const struct decoder *d, const uint64_t words[2],
					 struct lang_frames *all)
{
	uint64_t method = raw(d, &d->rt->method);
	uint32_t scope = 0, off = (uint32_t)words[1] & MS_HOTSPOT_AT;
	int r = 0;

	if ((raw(d, &d->rt->compile_id) & MS_LANG_COOKIE_MASK) !=
	    (words[1] >> 32 & MS_LANG_COOKIE_MASK))
		return LANG_GONE;
	all->n = 0;
	if (off != MS_HOTSPOT_AT)
		r = find_scope(d, off, words[1] & MS_HOTSPOT_EXACT, &scope);
	if (r == 0 && scope)
		r = read_scopes(d, scope, all);
	/* Not described: a call of native code, an instruction of the prologue. */
	if (r == 0 && !scope) {
		r = name_method(d, method, NO_BCI, &all->frame[0]);
		all->n = 1;
	}
	return r < 0 ? why(r) : LANG_DECODED;
}

/* --- stubs --- */

static enum lang_decoded decode_stub(const char *name, struct lang_frames *all)
{
	struct lang_frame *f = &all->frame[0];
	size_t n = strlen(name);

	if (!n)
		return LANG_DAMAGED;
	for (size_t i = 0; i < n; i++)
		if (name[i] < 0x20 || name[i] > 0x7e)
			return LANG_DAMAGED;
	snprintf(f->function, sizeof(f->function), "[%s]", name);
	f->file[0] = '\0';
	f->line = f->first_line = 0;
	f->cut = false;
	f->stub = true;
	all->n = 1;
	return LANG_DECODED;
}

static bool read_blob(struct decoder *d)
{
	const struct hotspot_rt *rt = d->rt;

	memset(d->blob, 0, sizeof(d->blob));
	return (rt->blob_bytes <= sizeof(d->blob) &&
		lang_read(d->mem, d->at, d->blob, rt->blob_bytes)) ||
	       (rt->runtime_bytes <= sizeof(d->blob) &&
		lang_read(d->mem, d->at, d->blob, rt->runtime_bytes));
}

/* At the end of what is mapped, less is read. */
static bool read_stub_name(const struct decoder *d, char name[64])
{
	uint64_t at = raw(d, &d->rt->name);

	memset(name, 0, 64);
	for (size_t i = 0; i < 63; i += 8) {
		size_t n = i + 8 < 64 ? 8 : 7;

		if (!lang_read(d->mem, at + i, name + i, n))
			return i;
		if (memchr(name + i, 0, n))
			return true;
	}
	return true;
}

enum lang_decoded hotspot_decode(const struct lang_runtime *runtime, const struct lang_memory *mem,
				 const uint64_t words[2], struct lang_frames *ret_frames)
{
	static struct lang_frames all;
	struct decoder d = { .rt = &runtime->hotspot, .mem = mem };
	uint64_t at = words[0] & MS_FRAME_ADDR_MASK;
	enum lang_decoded r;
	char name[64];
	int rc;

	if (!at)
		return LANG_GONE;
	if (words[1] & MS_HOTSPOT_INTERPRETED) {
		uint32_t bci = (uint32_t)words[1] & MS_HOTSPOT_AT;

		rc = name_method(&d, at, bci < CODE_MAX ? (int)bci : NO_BCI, &all.frame[0]);
		if (rc < 0)
			return why(rc);
		all.n = 1;
	} else {
		uint64_t id;

		d.at = at;
		if (!read_blob(&d) || !read_stub_name(&d, name))
			return LANG_GONE;
		id = raw(&d, &d.rt->compile_id);
		if (!strcmp(name, "nmethod") || !strcmp(name, "native nmethod"))
			r = decode_compiled(&d, words, &all);
		else
			r = words[1] >> 32 & MS_LANG_COOKIE_MASK ? LANG_GONE
								 : decode_stub(name, &all);
		if (r != LANG_DECODED)
			return r;
		if (!read_blob(&d) || raw(&d, &d.rt->compile_id) != id)
			return LANG_GONE;
	}
	ret_frames->n = all.n;
	memcpy(ret_frames->frame, all.frame, all.n * sizeof(all.frame[0]));
	return LANG_DECODED;
}
