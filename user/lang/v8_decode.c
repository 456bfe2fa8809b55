/*
 * A frame of V8's as the walk recorded it, to functions, files and lines.
 *
 *   interpreted  SharedFunctionInfo ─► ScopeInfo, Script      name, file
 *                                   ─► BytecodeArray ─► positions, of the offset in bytecode
 *   Sparkplug    the same; its Code has the offsets in bytecode of its instructions
 *   optimized    pc ─► Code ─► DeoptimizationData ─► SharedFunctionInfo, and those of functions that were inlined
 *                           ─► of a call: which functions are active there, and where in their bytecode (v8_deopt.c)
 *                           ─► positions, of the pc: character and inlined function; where each was inlined
 *
 * Calls are as Error.stack has them. Elsewhere, and where a call cannot go back to the interpreter, positions say it: node's
 * V8 has those of all instructions. Where there are those of calls alone, a thread that was interrupted between two of them
 * is said to be in those inlined functions that both places are in.
 *
 * Objects move, and are freed. The cookie of a function is made of numbers that stay the same while it moves, and is
 * compared again when all has been read.
 */
#include "abi.h"
#include "lang/v8.h"

#include <stdio.h>
#include <string.h>

enum {
	SCOPE_SLOTS = 6, /* behind a ScopeInfo's locals, in which its name may be */
	LOCALS_MAX = 1 << 16,
	LOCALS_INLINE = 75, /* of more locals, the names are in a table (scope-info.h) */
	INLINING_BYTES =
		16, /* of InliningPosition: the position, 8 bytes; the function's number, 4 */
	INLINED_MAX = 1 << 12,
	DEOPTS_TRIED = 512,
};

/* Of a SharedFunctionInfo (a pointer). false: it is none, or not that one. */
static bool has_cookie(const struct v8_reader *r, uint64_t shared, uint64_t cookie)
{
	uint64_t numbers[2];

	return v8_is_pointer(shared) && v8_is(r, shared, r->rt->type_shared) &&
	       lang_read(r->mem, shared - 1 + r->rt->shared_numbers, numbers, sizeof(numbers)) &&
	       ms_v8_cookie((uint16_t)(numbers[0] >> 16), (uint32_t)(numbers[1] >> 32)) == cookie;
}

/* --- names --- */

static bool take_name(const struct v8_reader *r, uint64_t word, struct lang_frame *f)
{
	int type = v8_is_pointer(word) ? v8_type(r, word) : -1;
	bool cut;

	if (type < 0 || type >= V8_FIRST_NONSTRING)
		return false;
	if (v8_text(r, word, f->function, sizeof(f->function), &cut) < 0 || !*f->function) {
		f->function[0] = '\0';
		return false;
	}
	f->cut |= cut;
	return true;
}

/*
 * Behind the locals of a ScopeInfo: the name of the function itself and its slot, and what it was assigned to where it
 * has none. What follows is no string.
 */
static void scope_name(const struct v8_reader *r, uint64_t scope, struct lang_frame *f)
{
	uint64_t word, n;
	uint32_t at;

	if (!v8_word(r, scope, r->rt->scope_locals, &word) || word & 0xffffffff)
		return;
	n = word >> 32;
	if (n > LOCALS_MAX)
		return;
	at = r->rt->scope_first + 8 * (uint32_t)(n + (n < LOCALS_INLINE ? n : 1));
	for (int i = 0; i < SCOPE_SLOTS; i++, at += 8) {
		if (!v8_word(r, scope, at, &word) || take_name(r, word, f))
			return;
		/* Numbers, and values that are no text, such as undefined; an outer scope is the end. */
		if (v8_is_pointer(word) && v8_is(r, word, r->rt->type_scope))
			return;
	}
}

/* false: it has none. */
static bool read_name(const struct v8_reader *r, uint64_t shared, struct lang_frame *f)
{
	uint64_t word;

	f->function[0] = '\0';
	f->cut = false;
	if (v8_word(r, shared, r->rt->shared_name, &word) && v8_is_pointer(word)) {
		if (v8_is(r, word, r->rt->type_scope))
			scope_name(r, word, f);
		else
			take_name(r, word, f);
	}
	if (*f->function)
		return true;
	snprintf(f->function, sizeof(f->function), "(anonymous)");
	return false;
}

/* Its Script; 0: it has none, as functions of V8's own. */
static uint64_t script_of(const struct v8_reader *r, uint64_t shared)
{
	uint64_t word;

	if (!v8_word(r, shared, r->rt->shared_script, &word) || !v8_is_pointer(word))
		return 0;
	if (v8_is(r, word, r->rt->type_script))
		return word;
	/* A DebugInfo, while a debugger is attached: its first field is the function, the script is elsewhere. */
	return 0;
}

static void read_file(const struct v8_reader *r, uint64_t script, struct lang_frame *f)
{
	static const char scheme[] = "file://";
	uint64_t name;
	bool cut = false;

	f->file[0] = '\0';
	if (!script || !v8_word(r, script, r->rt->script_name, &name) || !v8_is_pointer(name) ||
	    v8_text(r, name, f->file, sizeof(f->file), &cut) < 0)
		f->file[0] = '\0';
	if (!strncmp(f->file, scheme, sizeof(scheme) - 1))
		memmove(f->file, f->file + sizeof(scheme) - 1,
			strlen(f->file) - sizeof(scheme) + 2);
	f->cut |= cut;
}

static bool name_function(const struct v8_reader *r, uint64_t shared, int64_t offset,
			  struct lang_frame *f)
{
	uint64_t script;
	bool has_name;

	if (!v8_is(r, shared, r->rt->type_shared))
		return false;
	has_name = read_name(r, shared, f);
	script = script_of(r, shared);
	/* V8's own between functions of the program, such as what goes on with an async one: Error.stack leaves it out, too. */
	f->stub = !script && !has_name;
	read_file(r, script, f);
	f->line = script && offset >= 0 ? v8_line(r, script, offset) : 0;
	f->first_line = 0;
	return true;
}

/* --- bytecode --- */

/* The BytecodeArray of what a function, or Sparkplug's code, has; 0: none. */
static uint64_t bytecodes_of(const struct v8_reader *r, uint64_t data)
{
	struct v8_code code;
	uint64_t word;

	for (int i = 0; i < 4; i++) {
		int type = v8_is_pointer(data) ? v8_type(r, data) : -1;

		if (type < 0)
			return 0;
		if (type == r->rt->type_bytecodes)
			return data;
		if (type == r->rt->type_code) {
			if (!v8_code_read(r, data, &code))
				return 0;
			data = code.deopt;
			continue;
		}
		/* InterpreterData, which has it first; BaselineData (V8 9), in which it is behind the Code. */
		if (!v8_word(r, data, 8, &word) ||
		    (v8_is(r, word, r->rt->type_code) && !v8_word(r, data, 16, &word)))
			return 0;
		data = word;
	}
	return 0;
}

/* The place in source text of an offset in bytecode; -1: unknown. */
static int64_t place_in(const struct v8_reader *r, uint64_t bytecodes, int64_t offset)
{
	struct v8_position before, after;
	uint64_t table;

	if (!bytecodes || offset < V8_ENTRY ||
	    !v8_word(r, bytecodes, r->rt->bytecodes_positions, &table) || !v8_is_pointer(table) ||
	    v8_positions(r, table, offset, &before, &after) < 0)
		return -1;
	return before.offset;
}

static int64_t interpreted_offset(const struct v8_reader *r, uint32_t at)
{
	/* Frames have it from the pointer to the array on. */
	return at == MS_V8_AT || at + 2 < r->rt->bytecodes_data
		       ? V8_NOWHERE
		       : (int64_t)at + 1 - r->rt->bytecodes_data;
}

static int64_t baseline_place(const struct v8_reader *r, uint64_t shared, uint64_t *bytecodes,
			      uint32_t low, bool exact)
{
	struct v8_code code;
	uint64_t data, in;
	uint32_t end;

	if (!v8_word(r, shared, r->rt->shared_data, &data))
		return V8_NOWHERE;
	*bytecodes = bytecodes_of(r, data);
	if (!v8_is(r, data, r->rt->type_code) && v8_word(r, data, 8, &in))
		data = in;
	if (!v8_code_read(r, data, &code) || code.kind != r->rt->kind_baseline)
		return V8_NOWHERE;
	end = (low - (uint32_t)code.start) & MS_V8_AT;
	if (!*bytecodes || end > code.size)
		return V8_NOWHERE;
	return v8_baseline_offset(r, &code, *bytecodes, end + exact);
}

static enum lang_decoded decode_function(const struct v8_reader *r, const uint64_t words[2],
					 struct lang_frames *all)
{
	uint64_t shared = (words[0] & MS_FRAME_ADDR_MASK) | 1,
		 cookie = words[1] >> 32 & MS_LANG_COOKIE_MASK;
	uint64_t data = 0, bytecodes = 0;
	uint32_t low = (uint32_t)words[1];
	int64_t offset;

	if (!has_cookie(r, shared, cookie))
		return LANG_GONE;
	if ((low & MS_V8_KIND) == MS_V8_BASELINE) {
		offset = baseline_place(r, shared, &bytecodes, low & MS_V8_AT, low & MS_V8_EXACT);
	} else {
		offset = interpreted_offset(r, low & MS_V8_AT);
		if (offset >= V8_ENTRY && v8_word(r, shared, r->rt->shared_data, &data))
			bytecodes = bytecodes_of(r, data);
	}
	if (!name_function(r, shared, place_in(r, bytecodes, offset), &all->frame[0]))
		return LANG_GONE;
	v8_pages_forget(r->pages);
	if (!has_cookie(r, shared, cookie))
		return LANG_GONE;
	all->n = 1;
	return LANG_DECODED;
}

/* --- optimized code --- */

struct inlined {
	uint64_t shared;
	int64_t offset; /* characters; -1: unknown */
	int32_t id;     /* of the table of inlined functions */
};

/* The functions at a position, innermost first. 0: it cannot be read. */
static uint32_t chain_of(const struct v8_reader *r, const struct v8_code *code,
			 struct v8_position pos, struct inlined chain[LANG_INLINED_MAX])
{
	const struct v8_rt *rt = r->rt;
	uint64_t positions, literals, word, raw;
	int32_t function;
	uint32_t n = 0;

	if (pos.inlined >= 0 && (!v8_element(r, code->deopt, rt->deopt_positions, &positions) ||
				 !v8_element(r, code->deopt, rt->deopt_literals, &literals)))
		return 0;
	while (pos.inlined >= 0 && n < LANG_INLINED_MAX - 1) {
		uint32_t at = rt->array_data + INLINING_BYTES * (uint32_t)pos.inlined;

		if (pos.inlined >= INLINED_MAX || !v8_word(r, positions, at, &raw) ||
		    !lang_read(r->mem, positions - 1 + at + 8, &function, sizeof(function)))
			return 0;
		if (function < 0 || !v8_element(r, literals, (uint32_t)function, &word))
			return 0;
		chain[n].shared = (word & ~3ULL) | 1; /* it may be a weak pointer */
		chain[n].offset = pos.offset;
		chain[n++].id = pos.inlined;
		/* It is inlined into an earlier one. */
		if (v8_position_of(raw).inlined >= pos.inlined)
			return 0;
		pos = v8_position_of(raw);
	}
	chain[n].offset = pos.offset;
	chain[n++].id = -1;
	return n;
}

static uint64_t code_function(const struct v8_reader *r, const struct v8_code *code)
{
	uint64_t shared;

	if (!v8_element(r, code->deopt, r->rt->deopt_shared, &shared))
		return 0;
	if (!v8_is(r, shared, r->rt->type_shared) && !v8_word(r, shared, 8, &shared))
		return 0; /* in a wrapper */
	return v8_is_pointer(shared) && v8_is(r, shared, r->rt->type_shared) ? shared : 0;
}

/* Of two chains, what they have in common from the outermost function on, with the places of the first. */
static uint32_t common(struct inlined *a, uint32_t n_a, const struct inlined *b, uint32_t n_b)
{
	uint32_t n = 0;

	while (n < n_a && n < n_b && a[n_a - 1 - n].id == b[n_b - 1 - n].id)
		n++;
	memmove(a, a + (n_a - n), n * sizeof(*a));
	return n;
}

/* Where in its source a function that is active is. */
static int64_t place_of(const struct v8_reader *r, const struct v8_active *f)
{
	uint64_t data;

	if (f->builtin || !v8_word(r, f->shared, r->rt->shared_data, &data))
		return -1;
	return place_in(r, bytecodes_of(r, data), f->bytecode);
}

/* The functions at a call, as Error.stack has them. 0: it does not say. */
static uint32_t chain_of_call(const struct v8_reader *r, const struct v8_code *code,
			      uint64_t shared, uint32_t at, struct inlined chain[LANG_INLINED_MAX])
{
	struct v8_active active[LANG_INLINED_MAX];
	int32_t deopt = v8_deopt_of_call(r, code, at);
	uint32_t n = deopt < 0 ? 0 : v8_deopt_frames(r, code, (uint32_t)deopt, active);

	if (!n || active[n - 1].shared != shared)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		chain[i] = (struct inlined){ active[i].shared, place_of(r, &active[i]), -1 };
	return n;
}

/* Are these functions, but for V8's own, those of the chain, called at the same places? */
static bool has_chain(const struct v8_reader *r, const struct v8_active *active, uint32_t n_active,
		      const struct inlined *chain, uint32_t n)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < n_active; i++) {
		if (active[i].builtin)
			continue;
		if (k == n || active[i].shared != chain[k].shared ||
		    (k && place_of(r, &active[i]) != chain[k].offset))
			return false;
		k++;
	}
	return k == n;
}

/* V8's own functions that were inlined have no positions: a call or check among the same functions says where they are. */
static uint32_t add_builtins(const struct v8_reader *r, const struct v8_code *code,
			     struct inlined chain[LANG_INLINED_MAX], uint32_t n)
{
	struct v8_active active[LANG_INLINED_MAX];
	uint32_t n_deopts = n > 1 ? v8_deopts(r, code) : 0;

	for (uint32_t d = 0; d < n_deopts && d < DEOPTS_TRIED; d++) {
		uint32_t m = v8_deopt_frames(r, code, d, active);

		if (m <= n || !has_chain(r, active, m, chain, n))
			continue;
		for (uint32_t i = m, k = n; i-- > 0;)
			chain[i] = active[i].builtin ? (struct inlined){ active[i].shared, -1, -1 }
						     : chain[--k];
		return m;
	}
	return n;
}

/* The functions by the table of positions. 0: it cannot be read. */
static uint32_t chain_of_place(const struct v8_reader *r, const struct v8_code *code,
			       uint64_t shared, uint32_t at, bool exact,
			       struct inlined chain[LANG_INLINED_MAX])
{
	struct v8_position before = { -1, -1 }, after = { -1, -1 };
	struct inlined next[LANG_INLINED_MAX];
	bool has = v8_is_pointer(code->positions) && v8_length(r, code->positions) > 0;
	uint32_t n;

	if (has && v8_positions(r, code->positions, exact ? at : at - 1, &before, &after) < 0)
		return 0;
	n = chain_of(r, code, before, chain);
	if (exact && !v8_positions_of_all(r, code))
		n = common(chain, n, next, chain_of(r, code, after, next));
	if (!n) {
		chain[0].offset = -1;
		n = 1;
	}
	chain[n - 1].shared = shared;
	return add_builtins(r, code, chain, n);
}

static enum lang_decoded decode_optimized(const struct v8_reader *r, const struct v8_code *code,
					  uint64_t shared, uint32_t at, bool exact,
					  struct lang_frames *all)
{
	struct inlined chain[LANG_INLINED_MAX];
	uint32_t n = exact ? 0 : chain_of_call(r, code, shared, at, chain);

	if (!n)
		n = chain_of_place(r, code, shared, at, exact, chain);
	if (!n)
		return LANG_GONE;
	for (uint32_t i = 0; i < n; i++)
		if (!name_function(r, chain[i].shared, chain[i].offset, &all->frame[i]))
			return LANG_GONE;
	all->n = n;
	return LANG_DECODED;
}

static enum lang_decoded say(struct lang_frames *all, const char *what)
{
	struct lang_frame *f = &all->frame[0];

	snprintf(f->function, sizeof(f->function), "%s", what);
	f->file[0] = '\0';
	f->line = f->first_line = 0;
	f->cut = f->stub = false;
	all->n = 1;
	return LANG_DECODED;
}

static bool has_bytes(const struct v8_reader *r, uint64_t pc, uint64_t cookie)
{
	uint64_t bytes;

	return lang_read(r->mem, pc, &bytes, sizeof(bytes)) && ms_lang_cookie(bytes) == cookie;
}

static enum lang_decoded decode_code(const struct v8_reader *r, const uint64_t words[2],
				     struct lang_frames *all)
{
	uint64_t pc = words[0] & MS_FRAME_ADDR_MASK, cookie = words[1] >> 32 & MS_LANG_COOKIE_MASK,
		 shared;
	bool exact = words[1] & MS_V8_EXACT,
	     by_bytes = ((uint32_t)words[1] & MS_V8_KIND) == MS_V8_BYTES;
	struct v8_code code, again;
	enum lang_decoded d;

	if (by_bytes && !has_bytes(r, pc, cookie))
		return LANG_GONE;
	if (!v8_code_find(r, exact ? pc : pc - 1, &code))
		return LANG_GONE;
	if (code.kind == r->rt->kind_regexp)
		return say(all, "[regular expression]");
	shared = code.kind > r->rt->kind_baseline ? code_function(r, &code) : 0;
	if (!shared || (!by_bytes && !has_cookie(r, shared, cookie)))
		return LANG_GONE;
	d = decode_optimized(r, &code, shared, (uint32_t)(pc - code.start), exact, all);
	if (d != LANG_DECODED)
		return d;
	v8_pages_forget(r->pages);
	return v8_code_read(r, code.object, &again) && again.start == code.start &&
			       again.deopt == code.deopt && v8_is(r, shared, r->rt->type_shared)
		       ? LANG_DECODED
		       : LANG_GONE;
}

enum lang_decoded v8_decode(const struct lang_runtime *runtime, const struct lang_memory *mem,
			    const uint64_t words[2], struct lang_frames *ret_frames)
{
	static struct lang_frames all;
	static struct v8_pages pages;
	struct v8_reader r = { .rt = &runtime->v8, .mem = &pages.mem, .pages = &pages };
	enum lang_decoded d;

	if (!(words[0] & MS_FRAME_ADDR_MASK))
		return LANG_GONE;
	v8_pages_open(&pages, mem);
	d = (uint32_t)words[1] & MS_V8_CODE ? decode_code(&r, words, &all)
					    : decode_function(&r, words, &all);
	if (d != LANG_DECODED)
		return d;
	ret_frames->n = all.n;
	memcpy(ret_frames->frame, all.frame, all.n * sizeof(all.frame[0]));
	return LANG_DECODED;
}
