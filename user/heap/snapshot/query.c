#include "heap/snapshot/query.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

struct parser {
	const char *text, *at;
	uint32_t depth;
	struct err *e;
	int error;
};

static struct query *parse_or(struct parser *p);

static struct query *fail(struct parser *p, const char *what)
{
	if (p->error == 0)
		p->error =
			*p->at ? err_set(p->e, -EINVAL, "\"%.200s\": %s at \"%.40s\"", p->text,
					 what, p->at)
			       : err_set(p->e, -EINVAL, "\"%.200s\": %s at its end", p->text, what);
	return NULL;
}

/* Takes over both sides. */
static struct query *node(struct parser *p, enum query_kind kind, struct query *left,
			  struct query *right)
{
	struct query *q = p->error ? NULL : calloc(1, sizeof(*q));

	if (q) {
		*q = (struct query){ .kind = kind, .left = left, .right = right };
		return q;
	}
	query_free(left);
	query_free(right);
	if (p->error == 0)
		p->error = err_set(p->e, -ENOMEM, "out of memory");
	return NULL;
}

/* --- words --- */

static void skip_space(struct parser *p)
{
	while (isspace((unsigned char)*p->at))
		p->at++;
}

static bool ends_word(char c)
{
	return !c || isspace((unsigned char)c) || strchr("()=!~\"'", c);
}

/* Between < and > a name has what it likes; a < that closes nowhere is an operator. */
static size_t word_length(const char *s)
{
	size_t n = 0, depth = 0;

	for (; s[n]; n++) {
		if (s[n] == '<' && n && (depth || (strchr(s + n, '>') && s[n + 1] != '=')))
			depth++;
		else if (s[n] == '>' && depth)
			depth--;
		else if (!depth && (ends_word(s[n]) || s[n] == '<' || s[n] == '>'))
			break;
	}
	return n;
}

static bool take(struct parser *p, const char *symbol)
{
	size_t n = strlen(symbol);

	skip_space(p);
	if (strncmp(p->at, symbol, n) != 0)
		return false;
	p->at += n;
	return true;
}

static bool take_word(struct parser *p, const char *word)
{
	size_t n = strlen(word);

	skip_space(p);
	if (strncmp(p->at, word, n) != 0 || !(ends_word(p->at[n]) || strchr("<>", p->at[n])))
		return false;
	p->at += n;
	return true;
}

/* A quoted text or a word; NULL: there is none. The caller's. */
static char *take_text(struct parser *p)
{
	const char *end;
	size_t n;
	char *text;

	skip_space(p);
	if (*p->at == '"' || *p->at == '\'') {
		end = strchr(p->at + 1, *p->at);
		if (!end) {
			fail(p, "a quote without its end");
			return NULL;
		}
		text = strndup(p->at + 1, (size_t)(end - p->at - 1));
		p->at = end + 1;
	} else {
		n = word_length(p->at);
		text = n ? strndup(p->at, n) : NULL;
		if (!n) {
			fail(p, "a name, a number or a condition is missing");
			return NULL;
		}
		p->at += n;
	}
	if (!text && p->error == 0)
		p->error = err_set(p->e, -ENOMEM, "out of memory");
	return text;
}

static bool read_number(const char *text, uint64_t *ret)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
	if (errno || end == text || !isdigit((unsigned char)*text))
		return false;
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		uint32_t shift = 10 * (uint32_t)(unit - units + 1);

		if (*ret > UINT64_MAX >> shift)
			return false;
		*ret <<= shift;
		end++;
	}
	return !*end;
}

/* In milliseconds, as ages are known. */
static bool read_age(const char *text, uint64_t *ret)
{
	static const struct {
		const char *unit;
		uint64_t ms;
	} units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 } };
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || end == text || !isdigit((unsigned char)*text))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (strcmp(end, units[i].unit) == 0 && n <= UINT64_MAX / units[i].ms) {
			*ret = n * units[i].ms;
			return true;
		}
	return false;
}

/* --- comparisons --- */

static const char *const fields[QUERY_FIELDS] = {
	[QUERY_TYPE] = "type",           [QUERY_SIZE] = "size",
	[QUERY_RETAINED] = "retained",   [QUERY_REFERENCES] = "references",
	[QUERY_REFERRERS] = "referrers", [QUERY_ADDRESS] = "address",
	[QUERY_ARENA] = "arena",         [QUERY_SITE] = "site",
	[QUERY_STACK] = "stack",         [QUERY_AGE] = "age",
};

/* Longer ones before those that they begin with. */
static const struct {
	const char *symbol;
	enum query_op op;
} ops[] = {
	{ "!=", QUERY_NE }, { "<=", QUERY_LE }, { ">=", QUERY_GE },  { "=", QUERY_EQ },
	{ "<", QUERY_LT },  { ">", QUERY_GT },  { "~", QUERY_LIKE },
};

static bool take_op(struct parser *p, enum query_op *ret_op)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
		if (take(p, ops[i].symbol)) {
			*ret_op = ops[i].op;
			return true;
		}
	return false;
}

static struct query *compare(struct parser *p, enum query_field field, enum query_op op)
{
	const char *from = p->at;
	_cleanup_(freep) char *text = take_text(p);
	struct query *q;
	uint64_t number = 0;
	bool is_text = field == QUERY_TYPE || field == QUERY_ARENA || field == QUERY_SITE ||
		       field == QUERY_STACK;

	if (!text)
		return NULL;
	if (is_text && op != QUERY_EQ && op != QUERY_NE && op != QUERY_LIKE)
		return fail(p, "a name is neither larger nor smaller");
	if (!is_text && op == QUERY_LIKE)
		return fail(p, "a number is like nothing");
	if (field == QUERY_AGE && !read_age(text, &number)) {
		p->at = from;
		return fail(p, "not a time, as 500ms, 10s, 5m or 2h,");
	}
	if (!is_text && field != QUERY_AGE && !read_number(text, &number)) {
		p->at = from;
		return fail(p, "not a number");
	}
	q = node(p, QUERY_COMPARE, NULL, NULL);
	if (!q)
		return NULL;
	q->field = field;
	q->op = op;
	q->number = number;
	q->text = is_text ? TAKE_PTR(text) : NULL;
	return q;
}

static struct query *parse_field(struct parser *p)
{
	const char *from = p->at;
	enum query_op op;

	for (int f = 0; f < QUERY_FIELDS; f++) {
		if (take_word(p, fields[f]) && take_op(p, &op))
			return compare(p, (enum query_field)f, op);
		p->at = from;
	}
	return NULL;
}

/* --- */

static const struct {
	const char *name;
	enum query_kind kind;
} functions[] = {
	{ "refers_to", QUERY_REFERS_TO },
	{ "referred_by", QUERY_REFERRED_BY },
	{ "reachable", QUERY_REACHABLE },
	{ "retained_by", QUERY_RETAINED_BY },
};

static struct query *parenthesized(struct parser *p)
{
	struct query *q = parse_or(p);

	if (q && take(p, ")"))
		return q;
	query_free(q);
	return fail(p, "a parenthesis is not closed");
}

static struct query *parse_function(struct parser *p)
{
	const char *from = p->at;

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		if (take_word(p, functions[i].name) && take(p, "(")) {
			struct query *of = parenthesized(p);

			return of ? node(p, functions[i].kind, of, NULL) : NULL;
		}
		p->at = from;
	}
	return NULL;
}

static struct query *parse_text(struct parser *p)
{
	struct query *q = compare(p, QUERY_TYPE, QUERY_EQ);

	if (q)
		q->kind = QUERY_HAS_TEXT;
	return q;
}

/* A word and an operator behind it, or a parenthesis: it was meant to be a field or a function. */
static struct query *refuse_unknown(struct parser *p)
{
	const char *from = p->at, *end = from + word_length(from);
	enum query_op op;

	if (*end == '(')
		return fail(p, "there is no such function");
	p->at = end;
	if (end == from || !take_op(p, &op)) {
		p->at = from;
		return NULL;
	}
	p->at = from;
	return fail(
		p,
		"there is no such field (type, size, retained, references, referrers, address, arena, site, stack, age)");
}

/* A word that can hardly be meant as a type's name (type:size can): half of a condition. */
static void refuse_half(struct parser *p)
{
	static const char *const operators[] = { "and", "or" };
	const char *from = p->at;

	for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++) {
		if (take_word(p, operators[i])) {
			p->at = from;
			fail(p, "a condition is missing");
		}
		p->at = from;
	}
	for (int f = 0; f < QUERY_FIELDS; f++) {
		bool is_name = f == QUERY_TYPE || f == QUERY_SITE || f == QUERY_STACK;

		if (!is_name && take_word(p, fields[f]))
			fail(p, "a comparison is missing, as in size > 4K,");
		p->at = from;
	}
}

static struct query *parse_name(struct parser *p)
{
	struct query *q;
	uint64_t number;

	if (take(p, "type:"))
		return compare(p, QUERY_TYPE, QUERY_EQ);
	if (take(p, "size:"))
		return compare(p, QUERY_SIZE, QUERY_EQ);
	if (take(p, "text:"))
		return parse_text(p);
	if (take(p, "site:"))
		return compare(p, QUERY_SITE, QUERY_EQ);
	if (take(p, "stack:"))
		return compare(p, QUERY_STACK, QUERY_EQ);
	refuse_unknown(p);
	if (!p->error)
		refuse_half(p);
	if (p->error)
		return NULL;
	if (strncmp(p->at, "0x", 2) != 0)
		return compare(p, QUERY_TYPE, QUERY_EQ);
	q = compare(p, QUERY_ADDRESS, QUERY_EQ);
	if (!q)
		return NULL;
	number = q->number;
	*q = (struct query){ .kind = QUERY_CONTAINS, .number = number };
	return q;
}

static struct query *parse_atom(struct parser *p)
{
	struct query *q;

	skip_space(p);
	if (take(p, "("))
		return parenthesized(p);
	if (take_word(p, "lost"))
		return node(p, QUERY_LOST, NULL, NULL);
	q = parse_function(p);
	if (!q && p->error == 0)
		q = parse_field(p);
	return q || p->error ? q : parse_name(p);
}

static struct query *parse_not(struct parser *p)
{
	struct query *q;

	if (p->depth >= DEPTH_MAX)
		return fail(p, "too many in one another");
	p->depth++;
	if (take_word(p, "not")) {
		q = parse_not(p);
		q = q ? node(p, QUERY_NOT, q, NULL) : NULL;
	} else {
		q = parse_atom(p);
	}
	p->depth--;
	return q;
}

static struct query *parse_and(struct parser *p)
{
	struct query *q = parse_not(p), *right;

	while (q && take_word(p, "and")) {
		right = parse_not(p);
		q = node(p, QUERY_AND, q, right);
	}
	return q;
}

static struct query *parse_or(struct parser *p)
{
	struct query *q = parse_and(p), *right;

	while (q && take_word(p, "or")) {
		right = parse_and(p);
		q = node(p, QUERY_OR, q, right);
	}
	return q;
}

int query_parse(const char *text, struct query **ret_query, struct err *e)
{
	struct parser p = { .text = text, .at = text, .e = e };
	struct query *q = parse_or(&p);

	skip_space(&p);
	if (q && *p.at) {
		query_free(q);
		q = fail(&p, "\"and\" or \"or\" is missing");
	}
	if (!q)
		return p.error;
	*ret_query = q;
	return 0;
}

void query_free(struct query *q)
{
	if (!q)
		return;
	query_free(q->left);
	query_free(q->right);
	free(q->text);
	free(q);
}

bool query_is_named(const char *name, const char *wanted)
{
	size_t n = strlen(name), len = strlen(wanted);
	char before;

	if (len > n || strcmp(name + n - len, wanted) != 0)
		return false;
	before = len < n ? name[n - len - 1] : '.';
	return before == '.' || before == ':';
}
