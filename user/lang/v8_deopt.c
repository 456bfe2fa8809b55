/*
 * What optimized code knows of its functions: for the case that it has to go back to the interpreter, V8 keeps for
 * each call, and for each check, which functions are active there, and where each of them is in its bytecode.
 *
 *   safepoints, behind the instructions: of each call, where it returns to ─► number of a deoptimization
 *   DeoptimizationData: of each number ─► where its translation begins
 *   translation: BEGIN, how many frames; then for each, outermost first, its kind, the offset in bytecode, which literal
 *                the function is, and what its variables are, which is skipped. Numbers of 7 bits a byte
 *
 * Error.stack is made of the same, so it has functions of V8 itself that were inlined (Array.prototype.map), which
 * tables of source positions leave out. Sources: src/codegen/safepoint-table.h, maglev-safepoint-table.h,
 * src/deoptimizer/translation-opcode.h, frame-translation-builder.cc, src/objects/deoptimization-data.h.
 */
#include "lang/v8.h"

#include <string.h>

enum {
	SAFEPOINTS_MAX = 1 << 16,
	ENTRY_MAX = 24, /* bytes of a safepoint */
	OLD_ENTRY = 12,
	PER_READ = 64,
	OPS_MAX = 1 << 14,
	DEOPTS_MAX = 1 << 16,
	/* Elements of DeoptimizationData, from the inlining positions on: deoptimizations, of three words each. */
	FIRST_DEOPT = 4,
	DEOPT_WORDS = 3,
	DEOPT_TRANSLATION = 1,
};

struct v8_deopt_layout {
	uint32_t version;       /* this and later ones */
	const char *operands;   /* of each operation of a translation, a digit each */
	uint8_t begin[2];       /* these operations begin one; they say as their operand … */
	uint8_t begin_frames;   /* … of this number how many frames of JavaScript there are */
	uint8_t interpreted[2]; /* frames of functions, … */
	uint8_t builtin[2];     /* … and of V8's own      */
	bool shares; /* a translation may use operations of an earlier one: the last operation, and what is above */
	bool signed_ops; /* operations have a sign */
	uint8_t safepoints_at; /* where their number is in their table; then what the sizes of the fields of one are, … */
	uint8_t safepoints_head; /* … and after so many bytes they begin; 0: 3 words each */
	uint8_t maglev_head;     /* … of Maglev's code, whose safepoints have a byte more */
};

static const struct v8_deopt_layout layouts[] = {
	{ 13 << 16 | 6,
	  "643321343331003311101111111111111111101111121",
	  { 14, 15 },
	  2,
	  { 0, 1 },
	  { 2, 3 },
	  true,
	  false,
	  4,
	  12,
	  16 },
	{ 12 << 16 | 4,
	  "5333213432103311111111111111111101111121",
	  { 12, 13 },
	  2,
	  { 0, 1 },
	  { 2, 3 },
	  true,
	  false,
	  0,
	  8,
	  16 },
	{ 11 << 16 | 3,
	  "103311313111112111111115333401111121",
	  { 2, 3 },
	  2,
	  { 23, 24 },
	  { 25, 26 },
	  true,
	  false,
	  0,
	  8,
	  16 },
	{ 10 << 16 | 2,
	  "2103113131111111115334111112",
	  { 3, 3 },
	  1,
	  { 18, 18 },
	  { 19, 20 },
	  false,
	  true,
	  0,
	  8,
	  16 },
	{ 9 << 16 | 4,
	  "2103113131111111115334111112",
	  { 3, 3 },
	  1,
	  { 18, 18 },
	  { 19, 20 },
	  false,
	  true,
	  0,
	  0,
	  0 },
};

const struct v8_deopt_layout *v8_deopt_layout(uint32_t version)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (version >= layouts[i].version)
			return &layouts[i];
	return NULL;
}

/* --- safepoints --- */

struct safepoints {
	uint64_t at; /* of the first */
	uint32_t n, bytes;
	uint32_t pc_bytes, deopt_bytes; /* deopt_bytes 0: none has a deoptimization */
	bool old;
};

static bool open_safepoints(const struct v8_reader *r, const struct v8_code *code,
			    struct safepoints *s)
{
	const struct v8_deopt_layout *l = r->rt->deopts;
	bool maglev = code->kind == r->rt->kind_baseline + 1u;
	uint64_t table = code->start + code->size;
	uint32_t head[2];

	if (!l || !lang_read(r->mem, table + l->safepoints_at, head, sizeof(head)) ||
	    head[0] > SAFEPOINTS_MAX)
		return false;
	s->n = head[0];
	s->old = !l->safepoints_head;
	if (s->old) {
		s->at = table + sizeof(head);
		s->bytes = OLD_ENTRY;
		s->pc_bytes = s->deopt_bytes = 4;
		return true;
	}
	/* Whether there are deoptimizations; bytes of registers, of a pc, of a deoptimization's number. */
	s->at = table + (maglev ? l->maglev_head : l->safepoints_head);
	s->pc_bytes = head[1] >> 4 & 7;
	s->deopt_bytes = head[1] & 1 ? head[1] >> 7 & 7 : 0;
	s->bytes = s->pc_bytes + (head[1] >> 1 & 7) + maglev;
	if (head[1] & 1)
		s->bytes += s->deopt_bytes + s->pc_bytes;
	return s->pc_bytes > 0 && s->pc_bytes <= 4 && s->deopt_bytes <= 4 && s->bytes <= ENTRY_MAX;
}

static uint32_t number(const uint8_t *bytes, uint32_t n)
{
	uint32_t value = 0;

	for (uint32_t i = 0; i < n; i++)
		value |= (uint32_t)bytes[i] << 8 * i;
	return value;
}

/* Does it return to `off`? Or would it, had the code not been given up meanwhile: to the code that goes back. */
static bool returns_to(const struct safepoints *s, const uint8_t *entry, uint32_t off,
		       int32_t *ret_deopt)
{
	const uint8_t *deopt = entry + s->pc_bytes, *given_up = deopt + s->deopt_bytes;
	uint32_t none = s->old ? 0 : 1; /* a number is one more than what it says */

	if (!s->deopt_bytes) {
		*ret_deopt = -1;
		return number(entry, s->pc_bytes) == off;
	}
	if (number(entry, s->pc_bytes) != off && number(given_up, s->pc_bytes) - none != off)
		return false;
	*ret_deopt = (int32_t)(number(deopt, s->deopt_bytes) - none);
	return true;
}

int32_t v8_deopt_of_call(const struct v8_reader *r, const struct v8_code *code, uint32_t off)
{
	uint8_t part[PER_READ * ENTRY_MAX];
	struct safepoints s;
	int32_t deopt;

	if (!open_safepoints(r, code, &s))
		return -1;
	for (uint32_t done = 0; done < s.n;) {
		uint32_t n = s.n - done < PER_READ ? s.n - done : PER_READ;

		if (!lang_read(r->mem, s.at + (uint64_t)done * s.bytes, part, (size_t)n * s.bytes))
			return -1;
		for (uint32_t i = 0; i < n; i++)
			if (returns_to(&s, part + (size_t)i * s.bytes, off, &deopt))
				return deopt < 0 ? -1 : deopt;
		done += n;
	}
	return -1;
}

bool v8_positions_of_all(const struct v8_reader *r, const struct v8_code *code)
{
	struct safepoints s;
	struct v8_stream table;
	uint32_t n = 0;

	if (!open_safepoints(r, code, &s) || !v8_stream_open(r, code->positions, &table))
		return false;
	/* Two numbers each; one of the function's entry. */
	while (!v8_stream_ended(&table) && n <= 2 * (s.n + 1)) {
		v8_stream_number(&table);
		n++;
	}
	return n > 2 * (s.n + 1);
}

/* --- translations --- */

/* One that is read; operations may come from another one, the last that was written out. */
struct translation {
	const struct v8_deopt_layout *l;
	struct v8_stream own, basis;
	uint32_t n_ops;      /* kinds of operations */
	uint32_t from_basis; /* so many more, and one, come from there */
	uint32_t behind;     /* so many were read since it was last looked at */
	bool has_basis;
};

static struct v8_stream *source(struct translation *t)
{
	return t->from_basis ? &t->basis : &t->own;
}

static int64_t signed_number(struct v8_stream *s)
{
	uint64_t n = v8_stream_number(s);

	return n & 1 ? -(int64_t)(n >> 1) : (int64_t)(n >> 1);
}

static uint32_t operands(struct translation *t, uint32_t op)
{
	return op < t->n_ops ? (uint32_t)(t->l->operands[op] - '0') : 0;
}

/* The next operation of a stream. -1: none. */
static int32_t op_of(struct translation *t, struct v8_stream *s)
{
	uint64_t op = t->l->signed_ops ? v8_stream_number(s) >> 1 : v8_stream_byte(s);

	return s->lost || op > UINT8_MAX ? -1 : (int32_t)op;
}

static void skip(struct v8_stream *s, uint32_t n)
{
	while (n--)
		v8_stream_number(s);
}

static int32_t next_shared(struct translation *t)
{
	int32_t op;

	if (!t->has_basis || !t->from_basis)
		return -1;
	for (; t->behind; t->behind--) {
		op = op_of(t, &t->basis);
		if (op < 0)
			return -1;
		skip(&t->basis, operands(t, (uint32_t)op));
	}
	return op_of(t, &t->basis);
}

/* The next operation, whose operands are source()'s next numbers. -1: none. */
static int32_t next_op(struct translation *t)
{
	int32_t op;

	if (t->from_basis && --t->from_basis)
		return op_of(t, &t->basis);
	op = op_of(t, &t->own);
	if (t->l->shares && op >= (int32_t)t->n_ops - 1) {
		t->from_basis = op == (int32_t)t->n_ops - 1 ? (uint32_t)v8_stream_number(&t->own)
							    : (uint32_t)op - t->n_ops;
		return next_shared(t);
	}
	t->behind++;
	return op < (int32_t)t->n_ops ? op : -1;
}

static bool stream_at(const struct v8_reader *r, uint64_t array, uint64_t at, struct v8_stream *s)
{
	if (!v8_stream_open(r, array, s) || at > s->end - s->at)
		return false;
	s->at += at;
	return true;
}

/* Its begin, at byte `at` of the array. The number of frames; 0: that is none. */
static uint32_t begin(const struct v8_reader *r, uint64_t array, uint64_t at, struct translation *t)
{
	uint64_t back = 0, n = 0;
	int32_t op;

	memset(t, 0, sizeof(*t));
	t->l = r->rt->deopts;
	t->n_ops = (uint32_t)strlen(t->l->operands);
	if (!stream_at(r, array, at, &t->own))
		return 0;
	op = op_of(t, &t->own);
	if (op != t->l->begin[0] && op != t->l->begin[1])
		return 0;
	for (uint32_t i = 0; i < operands(t, (uint32_t)op); i++) {
		uint64_t word = v8_stream_number(&t->own);

		if (!i && t->l->shares)
			back = word;
		if (i == t->l->begin_frames)
			n = word >> 1;
	}
	t->has_basis = back && back <= at && stream_at(r, array, at - back, &t->basis);
	t->behind = 1;
	return t->own.lost || n > LANG_INLINED_MAX ? 0 : (uint32_t)n;
}

static bool is_one(const uint8_t ops[2], int32_t op)
{
	return op == ops[0] || op == ops[1];
}

static bool function_of(const struct v8_reader *r, const struct v8_code *code, int64_t literal,
			uint64_t *ret_shared)
{
	uint64_t literals, word;

	if (literal < 0 || literal > INT32_MAX ||
	    !v8_element(r, code->deopt, r->rt->deopt_literals, &literals) ||
	    !v8_element(r, literals, (uint32_t)literal, &word))
		return false;
	*ret_shared = (word & ~3ULL) | 1; /* it may be a weak pointer */
	return v8_is(r, *ret_shared, r->rt->type_shared);
}

/* Those of one translation, the innermost first. */
static uint32_t frames_at(const struct v8_reader *r, const struct v8_code *code, uint64_t array,
			  uint64_t at, struct v8_active frames[LANG_INLINED_MAX])
{
	struct translation t;
	uint32_t n = begin(r, array, at, &t), left = n;

	for (uint32_t i = 0; left && i < OPS_MAX; i++) {
		int32_t op = next_op(&t);
		uint32_t rest;
		bool builtin;

		if (op < 0 || is_one(t.l->begin, op))
			return 0;
		rest = operands(&t, (uint32_t)op);
		builtin = is_one(t.l->builtin, op);
		if (builtin || is_one(t.l->interpreted, op)) {
			struct v8_active *f = &frames[--left];

			f->bytecode = signed_number(source(&t));
			f->builtin = builtin;
			if (!function_of(r, code, signed_number(source(&t)), &f->shared))
				return 0;
			rest -= 2;
		}
		skip(source(&t), rest);
		if (source(&t)->lost)
			return 0;
	}
	return left ? 0 : n;
}

uint32_t v8_deopts(const struct v8_reader *r, const struct v8_code *code)
{
	int64_t n = v8_length(r, code->deopt) - r->rt->deopt_positions - FIRST_DEOPT;

	return !r->rt->deopts || n < 0        ? 0
	       : n / DEOPT_WORDS > DEOPTS_MAX ? DEOPTS_MAX
					      : (uint32_t)n / DEOPT_WORDS;
}

uint32_t v8_deopt_frames(const struct v8_reader *r, const struct v8_code *code, uint32_t deopt,
			 struct v8_active frames[LANG_INLINED_MAX])
{
	uint64_t array, at;

	if (deopt >= v8_deopts(r, code) || !v8_element(r, code->deopt, 0, &array) ||
	    !v8_element(r, code->deopt,
			r->rt->deopt_positions + FIRST_DEOPT + DEOPT_WORDS * deopt +
				DEOPT_TRANSLATION,
			&at) ||
	    at & 0xffffffff || at >> 63)
		return 0;
	return frames_at(r, code, array, at >> 32, frames);
}
