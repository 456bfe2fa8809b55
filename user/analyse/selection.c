#include "analyse/selection.h"

#include "analyse/frame.h"
#include "analyse/function_find.h"
#include "model/about.h"
#include "model/sample_times.h"

#include <errno.h>
#include <regex.h>
#include <string.h>

#define MODULE_PREFIX "module:"

enum match { NOT_ASKED, MATCHES, DIFFERS };

struct pattern {
	const char *text;
	regex_t regex;
	bool module, is_regex;
	uint8_t *known; /* enum match, by string; of modules nothing: there are few */
	uint32_t n_known;
};

struct selection {
	const struct selection_args *args;
	struct pattern *patterns; /* args->filter's, then args->ignore's */
	uint32_t n;               /* compiled */
	struct frame_path path;
	location_id *locations; /* of a stack that is cut, leaf first */
	uint32_t cap;
};

bool selection_wanted(const struct selection_args *args)
{
	return args->filter.n || args->ignore.n || args->focus;
}

static int pattern_init(struct pattern *p, const char *option, const char *text, struct err *e)
{
	p->module = strncmp(text, MODULE_PREFIX, strlen(MODULE_PREFIX)) == 0;
	p->text = text + (p->module ? strlen(MODULE_PREFIX) : 0);
	if (!*p->text)
		return err_set(e, -EINVAL, "%s: an empty pattern is in every name", option);
	/* operator[](int) is none, and is in names. */
	p->is_regex = regcomp(&p->regex, p->text, REG_EXTENDED | REG_NOSUB) == 0;
	return 0;
}

void selection_free(struct selection *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n; i++) {
		if (s->patterns[i].is_regex)
			regfree(&s->patterns[i].regex);
		free(s->patterns[i].known);
	}
	free(s->patterns);
	free(s->locations);
	frame_path_fini(&s->path);
	free(s);
}

int selection_new(const struct selection_args *args, struct selection **ret_selection,
		  struct err *e)
{
	_cleanup_(selection_freep) struct selection *s = calloc(1, sizeof(*s));
	uint32_t n = args->filter.n + args->ignore.n;

	if (s)
		s->patterns = calloc(n + 1ul, sizeof(*s->patterns));
	if (!s || !s->patterns)
		return err_set(e, -ENOMEM, "out of memory");
	s->args = args;
	for (; s->n < n; s->n++) {
		bool filter = s->n < args->filter.n;
		int r = pattern_init(&s->patterns[s->n], filter ? "--filter" : "--ignore",
				     filter ? args->filter.items[s->n]
					    : args->ignore.items[s->n - args->filter.n],
				     e);

		if (r < 0)
			return r;
	}
	if (args->focus && !*args->focus)
		return err_set(e, -EINVAL, "--focus: which function?");
	*ret_selection = TAKE_PTR(s);
	return 0;
}

static void describe_list(struct strbuf *out, const struct opt_list *list, const char *word,
			  const char *join)
{
	for (uint32_t i = 0; i < list->n; i++) {
		strbuf_puts(out, i ? join : word);
		strbuf_add_clean(out, list->items[i], strnlen(list->items[i], 100));
	}
}

void selection_describe(const struct selection_args *args, struct strbuf *out)
{
	strbuf_puts(out, "stacks");
	describe_list(out, &args->filter, " with ", " and ");
	describe_list(out, &args->ignore, args->filter.n ? ", without " : " without ", " and ");
	if (!args->focus)
		return;
	strbuf_puts(out, args->filter.n || args->ignore.n ? ", from " : " from ");
	strbuf_add_clean(out, args->focus, strnlen(args->focus, 100));
	strbuf_puts(out, " on");
}

/* --- which stacks --- */

static bool matches_text(const struct pattern *p, const char *text)
{
	return strstr(text, p->text) || (p->is_regex && regexec(&p->regex, text, 0, NULL, 0) == 0);
}

/* A name is looked at once, however many stacks it is in. -ENOMEM. */
static int matches_name(struct pattern *p, const struct dict *d, string_id name)
{
	if (name.ix >= p->n_known) {
		uint32_t n = 2 * (dict_string_count(d) + 1);
		uint8_t *grown = realloc(p->known, n);

		if (!grown)
			return -ENOMEM;
		memset(grown + p->n_known, NOT_ASKED, n - p->n_known);
		p->known = grown;
		p->n_known = n;
	}
	if (p->known[name.ix] == NOT_ASKED)
		p->known[name.ix] = matches_text(p, dict_str(d, name)) ? MATCHES : DIFFERS;
	return p->known[name.ix] == MATCHES;
}

static int has_frame(struct pattern *p, const struct dict *d, const struct frame_path *path)
{
	for (uint32_t i = 0; i < path->n; i++) {
		const struct frame *f = &path->frames[i];
		int r = p->module ? matches_text(p, f->module) : matches_name(p, d, f->name);

		if (r)
			return r;
	}
	return 0;
}

static int is_wanted(struct selection *s, struct dict *d, stack_id stack)
{
	int r = frame_path_set(&s->path, d, stack);

	for (uint32_t i = 0; i < s->n && r == 0; i++) {
		int has = has_frame(&s->patterns[i], d, &s->path);

		if (has < 0)
			return has;
		if (has != (i < s->args->filter.n))
			return 0;
	}
	return r < 0 ? r : 1;
}

/* --- from a function on --- */

/* The location as far as its line `line`, to which the ones before it are inlined. */
static location_id cut_location(struct dict *d, location_id loc, uint32_t line)
{
	const struct location *l = dict_location_get(d, loc);

	if (line + 1 >= l->n_lines)
		return loc;
	return dict_location_lines(d, l->module, l->vaddr, l->lines, line + 1);
}

/* 1: *ret_stack is what it called; 0: it is not in this stack. */
static int cut_stack(struct selection *s, struct dict *d, const char *function, stack_id stack,
		     stack_id *ret_stack)
{
	uint32_t n = dict_stack_depth(d, stack);

	if (n > s->cap) {
		location_id *grown = reallocarray(s->locations, n, 2 * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		s->locations = grown;
		s->cap = 2 * n;
	}
	n = 0;
	for (stack_id at = stack; at.ix; at = dict_stack_parent(d, at))
		s->locations[n++] = dict_stack_leaf(d, at);
	while (n-- > 0) {
		for (uint32_t k = frame_count(d, s->locations[n]); k-- > 0;) {
			if (strcmp(dict_str(d, frame_get(d, s->locations[n], k).name), function) !=
			    0)
				continue;
			s->locations[n] = cut_location(d, s->locations[n], k);
			*ret_stack = dict_stack(d, s->locations, n + 1);
			return 1;
		}
	}
	return 0;
}

/* --- a profile of them --- */

static int add_times(const struct sample_times *from, uint32_t sample, struct profile *part,
		     stack_id stack, labels_id labels)
{
	uint32_t to;
	int r = from ? profile_find_sample(part, stack, labels, &to) : 1;

	return r ? r < 0 ? r : 0
		 : sample_times_copy(from, sample, 0, UINT32_MAX, profile_times(part), to);
}

static int set_comment(const struct selection *s, const struct profile *p, struct profile *part)
{
	_cleanup_(strbuf_free) struct strbuf text = { 0 };
	_cleanup_(freep) const char **comments = NULL;
	struct profile_meta meta = *profile_get_meta(p);
	uint32_t n = 0;

	strbuf_puts(&text, about_prefix(ABOUT_SELECTED));
	selection_describe(s->args, &text);
	while (meta.comments && meta.comments[n])
		n++;
	comments = calloc(n + 2ul, sizeof(*comments));
	if (!comments || strbuf_oom(&text))
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		comments[i] = meta.comments[i];
	comments[n] = text.s;
	meta.comments = comments;
	return profile_set_meta(part, &meta);
}

static int copy_times_begin(const struct sample_times *t, struct profile *part)
{
	uint32_t types[SAMPLE_TIMES_TYPES];
	struct sample_times *times;

	if (!t)
		return 0;
	for (uint32_t i = 0; i < sample_times_n_types(t); i++)
		types[i] = sample_times_type(t, i);
	times = sample_times_new(types, sample_times_n_types(t), sample_times_bin_ns(t),
				 UINT32_MAX);
	if (!times)
		return -ENOMEM;
	profile_set_times(part, times);
	return 0;
}

static int copy_samples(struct selection *s, const struct profile *p, const char *focus,
			struct profile *part)
{
	struct dict *d = profile_dict(p);
	int r = copy_times_begin(profile_times(p), part);

	for (uint32_t i = 0; i < profile_n_samples(p) && r >= 0; i++) {
		struct profile_sample sample = profile_sample(p, i);
		stack_id stack = sample.stack;

		r = is_wanted(s, d, stack);
		if (r == 1 && focus)
			r = cut_stack(s, d, focus, stack, &stack);
		if (r <= 0)
			continue;
		r = profile_add_sample(part, stack, sample.labels, &sample, NULL, 1);
		if (r == 0)
			r = add_times(profile_times(p), i, part, stack, sample.labels);
	}
	return dict_oom(d) ? -ENOMEM : r < 0 ? r : 0;
}

static int types_of(const struct profile *p, struct value_type types[PROFILE_MAX_TYPES])
{
	for (uint32_t i = 0; i < profile_n_types(p); i++)
		types[i] = *profile_type(p, i);
	return (int)profile_n_types(p);
}

int selection_apply(struct selection *s, const struct profile *p, struct profile **ret_part,
		    struct err *e)
{
	struct value_type types[PROFILE_MAX_TYPES];
	uint32_t n = (uint32_t)types_of(p, types);
	_cleanup_(profile_freep) struct profile *part = profile_new(profile_dict(p), types, n);
	const char *focus = NULL;
	int r = part ? 0 : -ENOMEM;

	if (r == 0 && s->args->focus && (r = function_find(p, s->args->focus, &focus, e)) < 0)
		return r;
	if (r == 0)
		r = copy_samples(s, p, focus, part);
	if (r == 0)
		r = set_comment(s, p, part);
	if (r < 0)
		return err_set(e, r, "out of memory");
	if (!profile_n_samples(part)) {
		_cleanup_(strbuf_free) struct strbuf text = { 0 };

		selection_describe(s->args, &text);
		return err_set(e, -ENODATA, "no stack is left: there are no %.300s",
			       text.s ? text.s : "stacks");
	}
	*ret_part = TAKE_PTR(part);
	return 0;
}

int64_t profile_positive_total(const struct profile *p, uint32_t type)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		int64_t v = profile_sample(p, i).values[type];

		if (v > 0 && __builtin_add_overflow(sum, v, &sum))
			return INT64_MAX;
	}
	return sum;
}
