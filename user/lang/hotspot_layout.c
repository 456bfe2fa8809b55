/*
 * The tables in which libjvm describes its structs (runtime/vmStructs.cpp), read from the process: rows of pointers to
 * strings and of numbers, up to a row without a name. What is looked for is checked: a field lies in its struct.
 */
#include "lang/hotspot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	PAGE = 4096,
	PAGES = 64,      /* that are kept: most strings lie together       */
	ROWS_MAX = 8192, /* JDK 17 has 788                                   */
	STRIDE_MAX = 256,
	STRING_MAX = 96,
	STRUCT_MAX = 4096, /* bytes of a struct of which something is looked for */
};

struct reader {
	const struct lang_memory *mem;
	uint64_t page[PAGES]; /* its address; 0: none */
	uint8_t bytes[PAGES][PAGE];
};

/* Of the tables' rows. */
struct rows {
	uint64_t at, stride;
	uint64_t column[6];
};

static bool read_at(struct reader *r, uint64_t addr, void *buf, size_t len)
{
	uint8_t *out = buf;

	while (len) {
		uint64_t page = addr & ~(uint64_t)(PAGE - 1), off = addr - page;
		size_t slot = page / PAGE % PAGES, n = PAGE - off < len ? PAGE - off : len;

		if (!page)
			return false;
		if (r->page[slot] != page) {
			r->page[slot] = 0;
			if (!lang_read(r->mem, page, r->bytes[slot], PAGE))
				return false;
			r->page[slot] = page;
		}
		memcpy(out, r->bytes[slot] + off, n);
		out += n;
		addr += n;
		len -= n;
	}
	return true;
}

static bool word_at(struct reader *r, uint64_t addr, uint64_t *ret_word)
{
	return read_at(r, addr, ret_word, sizeof(*ret_word));
}

/* A string of at most STRING_MAX - 1 bytes; of a longer one that much. */
static bool string_at(struct reader *r, uint64_t addr, char text[STRING_MAX])
{
	for (size_t i = 0; i < STRING_MAX; i++) {
		if (!read_at(r, addr + i, text + i, 1))
			return false;
		if (!text[i])
			return true;
	}
	text[STRING_MAX - 1] = '\0';
	return true;
}

static const struct {
	const char *type, *field;
} names[HS_N_FIELDS] = {
#define X(type, field) { #type, #field },
	HOTSPOT_FIELDS(X)
#undef X
};

static const char *const type_names[HS_N_TYPES] = {
	[HS_HeapBlock] = "HeapBlock",     [HS_CodeBlob] = "CodeBlob",
	[HS_ConstMethod] = "ConstMethod", [HS_ConstantPool] = "ConstantPool",
	[HS_PcDesc] = "PcDesc",           [HS_nmethod] = "nmethod",
};

/* Bytes of a number or pointer of that type; of anything else 1, and nobody reads it. */
static uint8_t bytes_of(const char *type)
{
	static const struct {
		const char *type;
		uint8_t bytes;
	} known[] = {
		{ "int", 4 },
		{ "u2", 2 },
		{ "u4", 4 },
		{ "u1", 1 },
		{ "int16_t", 2 },
		{ "uint16_t", 2 },
		{ "address", 8 },
		{ "size_t", 8 },
		{ "unsigned short", 2 },
		{ "short", 2 },
		{ "jint", 4 },
		{ "uint32_t", 4 },
		{ "int32_t", 4 },
		{ "u_char*", 8 },
		{ "intptr_t", 8 },
		{ "unsigned int", 4 },
		{ "jushort", 2 },
		{ "jshort", 2 },
		{ "jlong", 8 },
		{ "int64_t", 8 },
		{ "const uint", 4 },
		{ "pid_t", 4 },
		{ "OSThread::thread_id_t", 4 },
		{ "JavaThread *const *const", 8 },
	};
	size_t n = strlen(type);

	if (n && type[n - 1] == '*')
		return 8;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(type, known[i].type))
			return known[i].bytes;
	return 1;
}

static int field_of(const char *type, const char *field)
{
	for (int i = 0; i < HS_N_FIELDS; i++)
		if (!strcmp(field, names[i].field) && !strcmp(type, names[i].type))
			return i;
	return -1;
}

/* The variables that say what the rows look like. */
static bool rows_open(struct reader *r, const uint64_t *symbols, int first, int n,
		      struct rows *ret_rows)
{
	if (!word_at(r, symbols[first], &ret_rows->at) || !ret_rows->at ||
	    !word_at(r, symbols[first + n + 1], &ret_rows->stride) || ret_rows->stride < 8 ||
	    ret_rows->stride > STRIDE_MAX)
		return false;
	for (int i = 0; i < n; i++)
		if (!word_at(r, symbols[first + 1 + i], &ret_rows->column[i]) ||
		    ret_rows->column[i] > ret_rows->stride - 4)
			return false;
	return true;
}

/* 1: a row, 0: the end, -EAGAIN: unreadable. */
static int text_in(struct reader *r, const struct rows *rows, int column, char text[STRING_MAX])
{
	uint64_t at;

	if (!word_at(r, rows->at + rows->column[column], &at))
		return -EAGAIN;
	if (!at)
		return 0;
	return string_at(r, at, text) ? 1 : -EAGAIN;
}

static int read_fields(struct reader *r, const uint64_t *symbols, struct hotspot_layout *l)
{
	enum { TYPE, FIELD, TYPE_STRING, STATIC, OFFSET, ADDRESS };
	char type[STRING_MAX], field[STRING_MAX], is[STRING_MAX];
	struct rows rows;

	if (!rows_open(r, symbols, HS_STRUCTS, 6, &rows))
		return -EAGAIN;
	for (int n = 0; n < ROWS_MAX; n++, rows.at += rows.stride) {
		struct hotspot_field_at f = { 0 };
		uint32_t is_static;
		int i, rc = text_in(r, &rows, TYPE, type);

		if (rc <= 0)
			return rc;
		rc = text_in(r, &rows, FIELD, field);
		if (rc < 0)
			return rc;
		/* All of them are alike. */
		if (!strcmp(type, "GrowableArray<int>"))
			type[strlen("GrowableArray")] = '\0';
		i = rc ? field_of(type, field) : -1;
		if (i < 0)
			continue;
		rc = text_in(r, &rows, TYPE_STRING, is);
		if (rc < 0 ||
		    !read_at(r, rows.at + rows.column[STATIC], &is_static, sizeof(is_static)) ||
		    !word_at(r, rows.at + rows.column[is_static ? ADDRESS : OFFSET], &f.at))
			return -EAGAIN;
		f.is_static = is_static;
		f.bytes = rc ? bytes_of(is) : 1;
		l->field[i] = f;
	}
	return 0;
}

static int read_types(struct reader *r, const uint64_t *symbols, struct hotspot_layout *l)
{
	enum { NAME, SIZE };
	char name[STRING_MAX];
	struct rows rows;

	if (!rows_open(r, symbols, HS_TYPES, 2, &rows))
		return -EAGAIN;
	for (int n = 0; n < ROWS_MAX; n++, rows.at += rows.stride) {
		uint64_t size;
		int rc = text_in(r, &rows, NAME, name);

		if (rc <= 0)
			return rc;
		for (int i = 0; i < HS_N_TYPES; i++)
			if (!strcmp(name, type_names[i])) {
				if (!word_at(r, rows.at + rows.column[SIZE], &size))
					return -EAGAIN;
				l->size[i] = size < STRUCT_MAX ? (uint32_t)size : 0;
			}
	}
	return 0;
}

static bool has(const struct hotspot_layout *l, enum hotspot_field f)
{
	return l->field[f].bytes;
}

/* What no version is without. */
static const enum hotspot_field needed[] = {
	HS_CodeHeap_memory,
	HS_CodeHeap_segmap,
	HS_CodeHeap_log2_segment_size,
	HS_VirtualSpace_low_boundary,
	HS_VirtualSpace_high_boundary,
	HS_AbstractInterpreter_code,
	HS_StubQueue_stub_buffer,
	HS_StubQueue_buffer_limit,
	HS_StubQueue_queue_end,
	HS_InterpreterCodelet_size,
	HS_InterpreterCodelet_description,
	HS_StubRoutines_call_stub_return_address,
	HS_CodeBlob_name,
	HS_CodeBlob_frame_size,
	HS_nmethod_orig_pc_offset,
	HS_nmethod_compile_id,
	HS_nmethod_scopes_pcs_offset,
	HS_PcDesc_pc_offset,
	HS_PcDesc_scope_decode_offset,
	HS_Method_constMethod,
	HS_ConstMethod_constants,
	HS_ConstMethod_constMethod_size,
	HS_ConstMethod_code_size,
	HS_ConstMethod_name_index,
	HS_ConstantPool_pool_holder,
	HS_ConstantPool_length,
	HS_InstanceKlass_constants,
	HS_Klass_name,
	HS_Symbol_length,
	HS_Symbol_body,
};

/* Of these one is there. */
static const enum hotspot_field one_of[][3] = {
	{ HS_CodeCache_heaps, HS_CodeCache_heap, HS_CodeCache_heap },
	{ HS_CodeBlob_code_begin, HS_CodeBlob_code_offset, HS_CodeBlob_code_offset },
	{ HS_nmethod_method, HS_CompiledMethod_method, HS_CompiledMethod_method },
	{ HS_nmethod_verified_entry_point, HS_nmethod_verified_entry_offset,
	  HS_nmethod_verified_entry_offset },
	{ HS_nmethod_metadata_offset, HS_CodeBlob_mutable_data, HS_CodeBlob_mutable_data },
	{ HS_CompiledMethod_scopes_data_begin, HS_nmethod_scopes_data_begin,
	  HS_nmethod_scopes_data_offset },
	{ HS_ConstantPool_source_file_name_index, HS_InstanceKlass_source_file_name_index,
	  HS_InstanceKlass_source_file_name_index },
};

static int lacks(const char *name, enum hotspot_field f, struct err *e)
{
	return err_set(e, -EOPNOTSUPP, "%s: its description has no %s::%s", name, names[f].type,
		       names[f].field);
}

static int check(const struct hotspot_layout *l, const char *name, struct err *e)
{
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!has(l, needed[i]))
			return lacks(name, needed[i], e);
	for (size_t i = 0; i < sizeof(one_of) / sizeof(one_of[0]); i++)
		if (!has(l, one_of[i][0]) && !has(l, one_of[i][1]) && !has(l, one_of[i][2]))
			return lacks(name, one_of[i][0], e);
	for (int i = 0; i < HS_N_TYPES; i++)
		if (!l->size[i])
			return err_set(e, -EOPNOTSUPP, "%s: its description has no size of %s",
				       name, type_names[i]);
	for (int i = 0; i < HS_N_FIELDS; i++) {
		const struct hotspot_field_at *f = &l->field[i];

		if (f->bytes && !f->is_static && (f->at >= STRUCT_MAX || f->at % f->bytes))
			return err_set(e, -EOPNOTSUPP, "%s: describes no layout of %s::%s", name,
				       names[i].type, names[i].field);
	}
	return 0;
}

int hotspot_layout_read(const uint64_t symbols[HS_N_SYMBOLS], const struct lang_memory *mem,
			const char *name, struct hotspot_layout *ret_layout, struct err *e)
{
	struct hotspot_layout l = { 0 };
	struct reader *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return err_set(e, -ENOMEM, "%s: out of memory for its description", name);
	r->mem = mem;
	rc = read_fields(r, symbols, &l);
	if (rc == 0)
		rc = read_types(r, symbols, &l);
	free(r);
	if (rc < 0)
		return err_set(e, rc, "%s has not been initialized", name);
	rc = check(&l, name, e);
	if (rc < 0)
		return rc;
	l.has_heaps = has(&l, HS_CodeCache_heaps);
	*ret_layout = l;
	return 0;
}
