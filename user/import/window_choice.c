#include "import/window_choice.h"

#include "base/cleanup.h"
#include "base/moment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT            "at:"
#define LAST          "last:"
#define BETWEEN       ".."
#define STAMP_NS      1000000000LL
#define BEFORE_MAX_NS (3601LL * 1000000000) /* --before, and the second that stamps leave open */
#define TIMES_ARE                                                                                      \
	"2026-11-22T19:50, 19:50 (the last time it was so), -30m (before now), now, or a stamp as in " \
	"names of files"

/* --- words --- */

/* The stamp that ends it; NULL: it is no name of a window. */
static const char *stamp_in(const char *word)
{
	const char *dash = word - 1;

	do {
		if (is_stamp(dash + 1, strlen(dash + 1)))
			return dash + 1;
		dash = strchr(dash + 1, '-');
	} while (dash);
	return NULL;
}

/* Both its ends have the form of a time, or one has and the other is left out. */
static bool is_range(const char *word)
{
	const char *dots = strstr(word, BETWEEN), *to = dots ? dots + strlen(BETWEEN) : NULL;
	static const char first[] = "0123456789@-n";

	if (!dots || strchr(word, '/') || (dots == word && !*to))
		return false;
	return (dots == word || strchr(first, *word)) && (!*to || strchr(first, *to));
}

static bool all_digits(const char *s)
{
	return *s && s[strspn(s, "0123456789")] == 0;
}

bool is_window_choice(const char *word)
{
	if (strncmp(word, LAST, strlen(LAST)) == 0)
		return !all_digits(word + strlen(LAST));
	return strncmp(word, AT, strlen(AT)) == 0 || is_range(word) || stamp_in(word);
}

static int parse_range(struct window_choice *c, struct err *e)
{
	const char *dots = strstr(c->text, BETWEEN), *to = dots + strlen(BETWEEN);
	int r = 0;

	c->kind = CHOOSE_RANGE;
	c->from_ns = INT64_MIN;
	c->to_ns = INT64_MAX;
	if (dots > c->text)
		r = moment_parse(c->text, (size_t)(dots - c->text), c->now_ns, &c->from_ns);
	if (r == 0 && *to)
		r = dots > c->text
			    ? moment_parse_end(to, strlen(to), c->now_ns, c->from_ns, &c->to_ns)
			    : moment_parse(to, strlen(to), c->now_ns, &c->to_ns);
	if (r < 0)
		return err_set(e, r, "\"%.80s\": the ends of a range are times: " TIMES_ARE,
			       c->text);
	if (c->from_ns >= c->to_ns)
		return err_set(e, -EINVAL, "\"%.80s\": its end, %s, is not after its begin, %s",
			       c->text, moment_text(c->to_ns).s, moment_text(c->from_ns).s);
	return 0;
}

static int parse_last(struct window_choice *c, struct err *e)
{
	const char *word = c->text + strlen(LAST);
	int64_t ns;

	if (all_digits(word)) {
		unsigned long n = strtoul(word, NULL, 10);

		c->kind = CHOOSE_LAST;
		c->last = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
		return n ? 0 : err_set(e, -EINVAL, "%.80s: how many? (last:3, last:30m)", c->text);
	}
	if (stretch_parse(word, strlen(word), &ns) < 0)
		return err_set(e, -EINVAL, "%.80s: how many? (last:3, last:30m)", c->text);
	c->kind = CHOOSE_RANGE;
	c->from_ns = c->now_ns - ns;
	c->to_ns = INT64_MAX;
	return 0;
}

int window_choice_parse(const char *word, int64_t now_ns, struct window_choice *ret_choice,
			struct err *e)
{
	struct window_choice c = { .text = word, .now_ns = now_ns, .kind = CHOOSE_NAMED };
	int r = 0;

	if (strncmp(word, AT, strlen(AT)) == 0) {
		const char *when = word + strlen(AT);

		c.kind = CHOOSE_AT;
		r = moment_parse(when, strlen(when), now_ns, &c.from_ns);
		c.to_ns = c.from_ns;
		if (r < 0)
			err_set(e, r, "%.80s: when? " TIMES_ARE, word);
	} else if (strncmp(word, LAST, strlen(LAST)) == 0) {
		r = parse_last(&c, e);
	} else if (is_range(word)) {
		r = parse_range(&c, e);
	} else if (!stamp_in(word)) {
		r = err_set(e, -EINVAL, "\"%.80s\" names no windows", word);
	}
	if (r == 0)
		*ret_choice = c;
	return r;
}

/* --- windows --- */

struct chosen {
	uint32_t *list, n;
};

static void take(struct chosen *to, uint32_t i)
{
	to->list[to->n++] = i;
}

/* "20:01:00 (oom-20261122-200100)" is how an operand would name it. */
static void name_window(const struct window *w, char *out, size_t cap)
{
	if (*w->word)
		snprintf(out, cap, "%s-%s", w->word, w->stamp);
	else
		snprintf(out, cap, "at:%s", moment_text(w->begin_ns).s);
}

/* No window has the time: those before and after it are named. */
static int none_there(struct windows *w, const struct window_choice *c, struct err *e)
{
	int64_t before = windows_last_begun(w, c->from_ns), after = before + 1;
	char name[2][112] = { "", "" }, end[80] = "";

	while (after < w->n && *w->all[after].word)
		after++;
	if (before >= 0) {
		name_window(&w->all[before], name[0], sizeof(name[0]));
		if (windows_measure(w, (uint32_t)before, NULL) == 0)
			snprintf(end, sizeof(end), ", which ends at %s",
				 moment_short(w->all[before].end_ns, c->now_ns).s);
	}
	if (after < w->n)
		name_window(&w->all[after], name[1], sizeof(name[1]));
	return err_set(e, -ESRCH, "%.300s%s%s: no window has %.80s; %s%s%s%s%s", w->dir,
		       *w->folder ? "/" : "", w->folder, c->text,
		       *name[0] || *name[1] ? "the nearest: " : "there is none", name[0], end,
		       *name[0] && *name[1] ? "; and " : "", name[1]);
}

/* Is some of the window in [from, to)? What its name says is enough where it began in it. */
static int is_within(struct windows *w, uint32_t i, const struct window_choice *c, struct err *e)
{
	const struct window *window = &w->all[i];
	int r;

	if (window->begin_ns >= c->to_ns)
		return 0;
	if (window->begin_ns >= c->from_ns)
		return 1;
	r = windows_measure(w, i, e);
	return r < 0 ? r : window->end_ns > c->from_ns;
}

/* A stamp leaves the second open: until it is measured, a window may have begun up to a second after it says. */
static int64_t last_begun_surely(const struct windows *w, int64_t ns)
{
	return windows_last_begun(w, ns < INT64_MIN + STAMP_NS ? INT64_MIN : ns - STAMP_NS);
}

/* Only the last one that surely began before the range, and those behind it, can reach into it. */
static int choose_range(struct windows *w, const struct window_choice *c, struct chosen *to,
			struct err *e)
{
	int64_t before = last_begun_surely(w, c->from_ns);
	int r = 0;

	for (uint32_t i = before < 0 ? 0 : (uint32_t)before; r >= 0 && i < w->n; i++) {
		r = *w->all[i].word ? 0 : is_within(w, i, c, e);
		if (r > 0)
			take(to, i);
	}
	return r < 0 ? r : 0;
}

/* The windows of triggers are named by their ends, and are not longer than BEFORE_MAX_NS. */
static int choose_triggered(struct windows *w, const struct window_choice *c, struct chosen *to)
{
	for (uint32_t i = 0; i < w->n && !to->n; i++) {
		const struct window *window = &w->all[i];

		if (*window->word && window->begin_ns + BEFORE_MAX_NS > c->from_ns &&
		    window->begin_ns - BEFORE_MAX_NS < c->from_ns &&
		    windows_measure(w, i, NULL) == 0 && window->begin_ns <= c->from_ns &&
		    window->end_ns > c->from_ns)
			take(to, i);
	}
	return 0;
}

static int choose_at(struct windows *w, const struct window_choice *c, struct chosen *to,
		     struct err *e)
{
	int64_t last = windows_last_begun(w, c->from_ns);
	int r = last < 0 ? 0 : windows_measure(w, (uint32_t)last, e);

	if (r < 0)
		return r;
	if (last >= 0 && w->all[last].end_ns > c->from_ns)
		take(to, (uint32_t)last);
	return to->n ? 0 : choose_triggered(w, c, to);
}

static void choose_last(const struct windows *w, const struct window_choice *c, struct chosen *to)
{
	uint32_t ordinary = 0;

	for (uint32_t i = 0; i < w->n; i++)
		ordinary += !*w->all[i].word;
	for (uint32_t i = 0; i < w->n; i++)
		if (!*w->all[i].word && ordinary-- <= c->last)
			take(to, i);
}

/* STAMP is of a window of --every, else of a trigger's; WORD-STAMP of that trigger's. */
static void choose_named(const struct windows *w, const struct window_choice *c, struct chosen *to)
{
	const char *stamp = stamp_in(c->text);
	int word = stamp > c->text ? (int)(stamp - c->text) - 1 : 0;

	for (int pass = 0; pass < 2 && !to->n; pass++)
		for (uint32_t i = 0; i < w->n && !to->n; i++) {
			const struct window *window = &w->all[i];
			bool same = strlen(window->word) == (size_t)word &&
				    strncmp(window->word, c->text, (size_t)word) == 0;

			if (strcmp(window->stamp, stamp) == 0 && (same || (pass && !word)))
				take(to, i);
		}
}

int window_choose(struct windows *w, const struct window_choice *c, uint32_t **ret_chosen,
		  uint32_t *ret_n, struct err *e)
{
	_cleanup_(freep) uint32_t *list = calloc(w->n + 1ul, sizeof(*list));
	struct chosen to = { list, 0 };
	int r = 0;

	if (!list)
		return err_set(e, -ENOMEM, "out of memory");
	if (c->kind == CHOOSE_AT)
		r = choose_at(w, c, &to, e);
	else if (c->kind == CHOOSE_RANGE)
		r = choose_range(w, c, &to, e);
	else if (c->kind == CHOOSE_LAST)
		choose_last(w, c, &to);
	else
		choose_named(w, c, &to);
	if (r < 0)
		return r;
	if (!to.n && c->kind == CHOOSE_NAMED)
		return err_set(e, -ENXIO, "%.300s%s%s: there is no window %.80s", w->dir,
			       *w->folder ? "/" : "", w->folder, c->text);
	if (!to.n)
		return none_there(w, c, e);
	*ret_chosen = TAKE_PTR(list);
	*ret_n = to.n;
	return 0;
}
