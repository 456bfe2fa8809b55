#include "base/opt.h"

#include "base/cleanup.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

enum { KEY_LONG = 0x100, KEY_HELP = 0x10000, WORD_MAX = 63 };

struct parse {
	const struct opt_command *cmd;
	void *args;
	bool *given; /* by rows of cmd->opts; NULL: nobody asks              */
	struct err *e;
	bool told; /* the sentence is in `e`                             */
	int next;  /* where in argv argp stopped when it found a mistake */
};

static size_t n_rows(const struct opt *opts)
{
	size_t n = 0;

	while (opts[n].name)
		n++;
	return n;
}

/* --- did you mean --- */

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

/* Edits (insert, delete, replace, swap neighbours) from `a` to `b`; both at most WORD_MAX. */
static unsigned distance(const char *a, size_t na, const char *b, size_t nb)
{
	unsigned rows[3][WORD_MAX + 1], *prev2 = rows[0], *prev = rows[1], *cur = rows[2];

	for (size_t j = 0; j <= nb; j++)
		prev[j] = j;
	for (size_t i = 1; i <= na; i++) {
		unsigned *old = prev2;

		cur[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			cur[j] = min3(prev[j] + 1, cur[j - 1] + 1,
				      prev[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    prev2[j - 2] + 1 < cur[j])
				cur[j] = prev2[j - 2] + 1;
		}
		prev2 = prev;
		prev = cur;
		cur = old;
	}
	return prev[nb];
}

const char *opt_nearest(const char *word, const char *const *words, size_t n)
{
	size_t len = strlen(word);
	unsigned best = (len + 2) / 3 + 1;
	const char *found = NULL;

	if (!len || len > WORD_MAX)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t other = strlen(words[i]);
		unsigned d;

		if (other > WORD_MAX)
			continue;
		d = distance(word, len, words[i], other);
		if (d < best) {
			best = d;
			found = words[i];
		}
	}
	return found;
}

/* The long option nearest to the `len` bytes at `word`, NULL when none is near. */
static const char *nearest_option(const struct opt *opts, const char *word, size_t len)
{
	_cleanup_(freep) const char **names = calloc(n_rows(opts) + 1, sizeof(*names));
	char copy[WORD_MAX + 1];
	size_t n = 0;

	if (!names || len > WORD_MAX)
		return NULL;
	memcpy(copy, word, len);
	copy[len] = 0;
	for (const struct opt *o = opts; o->name; o++)
		if (o->kind != OPT_HEADING)
			names[n++] = o->name;
	names[n++] = "help";
	return opt_nearest(copy, names, n);
}

/* --- values --- */

static int mistake(struct parse *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Sets the sentence; returns what argp wants to hear. */
static int mistake(struct parse *p, const char *fmt, ...)
{
	char msg[sizeof(p->e->msg)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	err_set(p->e, -EINVAL, "%s", msg);
	p->told = true;
	return EINVAL;
}

static bool in_range(const struct opt *o, double v)
{
	return v >= o->min && (o->max <= 0 || v <= o->max);
}

static int out_of_range(struct parse *p, const struct opt *o, const char *arg)
{
	if (o->max > 0)
		return mistake(p, "--%s: %.64s is out of range (%.15g to %.15g)", o->name, arg,
			       o->min, o->max);
	return mistake(p, "--%s: %.64s is out of range (at least %.15g)", o->name, arg, o->min);
}

/* "-5": a number, and none of ours takes one below 0. */
static bool is_negative(const char *arg)
{
	return arg[0] == '-' && arg[1] && !arg[1 + strspn(arg + 1, "0123456789.")];
}

static int parse_u32(struct parse *p, const struct opt *o, const char *arg, uint32_t *ret)
{
	uint64_t v = 0;

	if (is_negative(arg))
		return out_of_range(p, o, arg);
	if (!*arg || arg[strspn(arg, "0123456789")])
		return mistake(p, "--%s: \"%.64s\" is not a whole number", o->name, arg);
	for (const char *c = arg; *c; c++) {
		v = v * 10 + (uint64_t)(*c - '0');
		if (v > UINT32_MAX)
			return mistake(p, "--%s: %.64s is too large (at most %.15g)", o->name, arg,
				       o->max > 0 ? o->max : (double)UINT32_MAX);
	}
	if (!in_range(o, (double)v))
		return out_of_range(p, o, arg);
	*ret = (uint32_t)v;
	return 0;
}

static int parse_double(struct parse *p, const struct opt *o, const char *arg, double *ret)
{
	char *end;
	double v;

	if (is_negative(arg))
		return out_of_range(p, o, arg);
	/* Plain decimals only: strtod() alone would take "nan", "inf", "0x10" and leading space. */
	if (!*arg || arg[strspn(arg, "0123456789.")])
		return mistake(p, "--%s: \"%.64s\" is not a number", o->name, arg);
	v = strtod(arg, &end);
	if (*end || end == arg || !isfinite(v))
		return mistake(p, "--%s: \"%.64s\" is not a number", o->name, arg);
	if (!in_range(o, v))
		return out_of_range(p, o, arg);
	*ret = v;
	return 0;
}

/* "slices" by "slices=bursts|…" → "bursts", in `buf`; any other word is left as it is. */
static const char *current_choice(const char *synonyms, const char *arg, char *buf, size_t cap)
{
	size_t arg_len = strlen(arg);

	for (const char *item = synonyms; item; item = strchr(item, '|')) {
		item += *item == '|';
		if (strncmp(item, arg, arg_len) == 0 && item[arg_len] == '=') {
			item += arg_len + 1;
			snprintf(buf, cap, "%.*s", (int)strcspn(item, "|"), item);
			return buf;
		}
	}
	return arg;
}

static int parse_choice(struct parse *p, const struct opt *o, const char *arg, int *ret)
{
	char copy[256], list[320] = "", current[64], *save = NULL;
	const char *words[32], *near;
	size_t n = 0, used = 0;

	arg = current_choice(o->choice_synonyms, arg, current, sizeof(current));
	snprintf(copy, sizeof(copy), "%s", o->choices);
	for (char *w = strtok_r(copy, "|", &save); w && n < 32; w = strtok_r(NULL, "|", &save)) {
		if (strcmp(w, arg) == 0) {
			*ret = (int)n;
			return 0;
		}
		words[n++] = w;
		if (used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
						 used ? ", " : "", w);
	}
	near = opt_nearest(arg, words, n);
	return mistake(p, "--%s: \"%.64s\" is not one of %s%s%s%s", o->name, arg, list,
		       near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static int add_item(struct parse *p, const struct opt *o, const char *arg, struct opt_list *list)
{
	uint32_t max = sizeof(list->items) / sizeof(list->items[0]);

	if (list->n == max)
		return mistake(p, "--%s is given more than %u times", o->name, max);
	list->items[list->n++] = arg;
	return 0;
}

static int store(struct parse *p, const struct opt *o, const char *arg)
{
	void *field = (char *)p->args + o->offset;

	switch (o->kind) {
	case OPT_FLAG:
		*(bool *)field = true;
		return 0;
	case OPT_STRING:
		/* The first of two lists would be forgotten without a word. */
		if (o->arg && strstr(o->arg, ",…") && *(const char **)field)
			return mistake(p, "--%s is given twice; give all in one: --%s=%.64s,%.64s",
				       o->name, o->name, *(const char **)field, arg);
		*(const char **)field = arg;
		return 0;
	case OPT_LIST:
		return add_item(p, o, arg, field);
	case OPT_U32:
		return parse_u32(p, o, arg, field);
	case OPT_DOUBLE:
		return parse_double(p, o, arg, field);
	case OPT_CHOICE:
		return parse_choice(p, o, arg, field);
	case OPT_HEADING:
		break;
	}
	return EINVAL;
}

int opt_set(const struct opt *o, const char *value, void *args, struct err *e)
{
	struct err own;
	struct parse p = { .args = args, .e = e ? e : &own };

	return store(&p, o, value) ? -EINVAL : 0;
}

/* --- which word was wrong --- */

/* Are the `len` bytes at `name` a former name of the option, in full? */
static bool is_synonym(const struct opt *o, const char *name, size_t len)
{
	for (int i = 0; i < OPT_SYNONYMS && o->synonyms[i]; i++)
		if (strlen(o->synonyms[i]) == len && strncmp(o->synonyms[i], name, len) == 0)
			return true;
	return false;
}

const struct opt *opt_named(const struct opt *opts, const char *name, const char **ret_near)
{
	*ret_near = NULL;
	for (const struct opt *o = opts; o->name; o++)
		if (o->kind != OPT_HEADING &&
		    (strcmp(o->name, name) == 0 || is_synonym(o, name, strlen(name))))
			return o;
	*ret_near = nearest_option(opts, name, strlen(name));
	return NULL;
}

/* argp only says that it met a mistake; find it in `word` and say what it is. */
static void explain_long(struct parse *p, const char *word)
{
	const char *name = word + 2, *eq = strchrnul(name, '='), *near;
	size_t len = (size_t)(eq - name), n_hits = 0, used = 0;
	const struct opt *hit = NULL;
	char list[256] = "";

	for (const struct opt *o = p->cmd->opts; o->name; o++) {
		bool is_former = o->kind != OPT_HEADING && is_synonym(o, name, len);

		if (o->kind == OPT_HEADING || (!is_former && strncmp(o->name, name, len) != 0))
			continue;
		hit = o;
		if (is_former || !o->name[len]) {
			n_hits = 1;
			break;
		}
		n_hits++;
		if (used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s--%s",
						 used ? ", " : "", o->name);
	}
	if (n_hits > 1)
		mistake(p, "%.64s could be any of %s", word, list);
	else if (n_hits == 1 && hit->kind == OPT_FLAG && *eq)
		mistake(p, "--%s takes no value", hit->name);
	else if (n_hits == 1 && hit->kind != OPT_FLAG && !*eq)
		mistake(p, "--%s needs a value (--%s=%s)", hit->name, hit->name,
			hit->arg ? hit->arg : "VALUE");
	else if (n_hits == 0 && (near = nearest_option(p->cmd->opts, name, len)))
		mistake(p, "there is no option --%.*s; did you mean --%s?",
			(int)(len > 64 ? 64 : len), name, near);
	else if (n_hits == 0)
		mistake(p, "there is no option --%.*s (memscope %s --help lists them)",
			(int)(len > 64 ? 64 : len), name, p->cmd->name);
}

static const struct opt *row_of_key(const struct opt *opts, int key)
{
	for (const struct opt *o = opts; o->name; o++)
		if (o->kind != OPT_HEADING && o->key == key)
			return o;
	return NULL;
}

static void explain_short(struct parse *p, const char *word)
{
	for (const char *c = word + 1; *c; c++) {
		const struct opt *o = row_of_key(p->cmd->opts, *c);
		const char *near;

		if (!o && *c == 'h')
			continue;
		if (o && o->kind == OPT_FLAG)
			continue;
		if (o && c[1])
			return;
		if (o) {
			mistake(p, "-%c needs a value (-%c %s)", *c, *c, o->arg ? o->arg : "VALUE");
			return;
		}
		near = word[2] ? nearest_option(p->cmd->opts, word + 1, strlen(word + 1)) : NULL;
		if (near)
			mistake(p, "there is no option %.64s; did you mean --%s?", word, near);
		else if (word[2])
			mistake(p,
				"there is no option -%c (in %.64s; memscope %s --help lists them)",
				*c, word, p->cmd->name);
		else
			mistake(p, "there is no option -%c (memscope %s --help lists them)", *c,
				p->cmd->name);
		return;
	}
}

static void explain(struct parse *p, int argc, char **argv)
{
	/* getopt steps over a wrong word, except in the middle of a cluster of short options. */
	for (int i = p->next - 1; i <= p->next && i < argc && !p->told; i++) {
		if (i < 1 || argv[i][0] != '-' || !argv[i][1] || strcmp(argv[i], "--") == 0)
			continue;
		if (argv[i][1] == '-')
			explain_long(p, argv[i]);
		else
			explain_short(p, argv[i]);
	}
	if (!p->told)
		mistake(p, "the options cannot be understood (memscope %s --help lists them)",
			p->cmd->name);
}

/* --- argp --- */

static int help_key(const struct opt *opts)
{
	return row_of_key(opts, 'h') ? KEY_HELP : 'h';
}

static error_t on_option(int key, char *arg, struct argp_state *state)
{
	struct parse *p = state->input;

	if (key == ARGP_KEY_ERROR)
		p->next = state->next;
	if (key == help_key(p->cmd->opts)) {
		opt_print_help(p->cmd, stdout);
		exit(err_flush_stdout() < 0 ? 1 : 0);
	}
	for (size_t i = 0; p->cmd->opts[i].name; i++) {
		const struct opt *o = &p->cmd->opts[i];

		if (o->kind == OPT_HEADING || key != (o->key ? o->key : KEY_LONG + (int)i))
			continue;
		if (p->given)
			p->given[i] = true;
		return store(p, o, arg);
	}
	return ARGP_ERR_UNKNOWN;
}

static void argp_row(struct argp_option *row, const char *name, int key, const struct opt *o)
{
	row->name = name;
	row->key = key;
	row->arg = o->kind == OPT_FLAG ? NULL : "VALUE";
}

static struct argp_option *argp_rows(const struct opt *opts)
{
	size_t n = n_rows(opts), used = 0;
	struct argp_option *rows = calloc(n * (1 + OPT_SYNONYMS) + 2, sizeof(*rows));

	if (!rows)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		const struct opt *o = &opts[i];
		int key = o->key ? o->key : KEY_LONG + (int)i;

		if (o->kind == OPT_HEADING)
			continue;
		argp_row(&rows[used++], o->name, key, o);
		for (int j = 0; j < OPT_SYNONYMS && o->synonyms[j]; j++)
			argp_row(&rows[used++], o->synonyms[j], key, o);
	}
	rows[used].name = "help";
	rows[used].key = help_key(opts);
	return rows;
}

/* "-30m..", "-2h..-1h": a range of time before now, and no option. argp takes this for it. */
static char time_range[] = "..";

enum { RANGES_MAX = 4 };

static void hide_ranges(int argc, char **argv, char *hidden[RANGES_MAX])
{
	size_t n = 0;

	for (int i = 1; i < argc && n < RANGES_MAX; i++) {
		if (argv[i][0] != '-' || argv[i][1] < '0' || argv[i][1] > '9' ||
		    !strstr(argv[i], ".."))
			continue;
		hidden[n++] = argv[i];
		argv[i] = time_range;
	}
}

/* Operands keep their order. */
static void show_ranges(int argc, char **argv, char *const *hidden)
{
	for (int i = 1; i < argc; i++)
		if (argv[i] == time_range)
			argv[i] = *hidden++;
}

int opt_parse(const struct opt_command *cmd, int argc, char **argv, void *args, int *ret_operand,
	      struct err *e)
{
	return opt_parse_given(cmd, argc, argv, args, NULL, ret_operand, e);
}

int opt_parse_given(const struct opt_command *cmd, int argc, char **argv, void *args, bool *given,
		    int *ret_operand, struct err *e)
{
	_cleanup_(freep) struct argp_option *rows = argp_rows(cmd->opts);
	struct err own;
	struct parse p = { .cmd = cmd, .args = args, .given = given, .e = e ? e : &own };
	struct argp argp = { .options = rows, .parser = on_option };
	char *hidden[RANGES_MAX];
	int operand = argc, r;

	if (!rows)
		return err_set(e, -ENOMEM, "out of memory");
	if (argc < 1) {
		*ret_operand = argc;
		return 0;
	}
	hide_ranges(argc, argv, hidden);
	r = argp_parse(&argp, argc, argv, ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_NO_EXIT, &operand, &p);
	show_ranges(argc, argv, hidden);
	if (r == ENOMEM)
		return err_set(e, -ENOMEM, "out of memory");
	if (r) {
		if (!p.told)
			explain(&p, argc, argv);
		return -EINVAL;
	}
	*ret_operand = operand;
	return 0;
}
