#include "run/trigger.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FALSE_BELOW 0.95 /* of its bound a condition is false again */
#define OOM_PART    0.95 /* of a limit of memory that is in use and cannot be dropped */
#define CPU_SPAN_S  5

static const struct {
	const char *name;
	bool may_add; /* "+=" */
	bool is_rate;
} whats[N_TRIGGERS] = {
	[TRIGGER_RSS] = { "rss", true, false },
	[TRIGGER_GROWTH] = { "growth", false, true },
	[TRIGGER_ALLOCATED] = { "allocated", true, false },
	[TRIGGER_CPU] = { "cpu", false, false },
	[TRIGGER_OOM] = { "oom", false, false },
};

static const struct {
	const char *name;
	double s, span_s;
} per[] = { { "s", 1, 10 }, { "min", 60, 60 }, { "h", 3600, 600 } };

static const char *skip(const char *s)
{
	return s + strspn(s, " ");
}

static bool takes(const char **s, const char *word)
{
	size_t n = strlen(word);

	if (strncasecmp(*s, word, n) != 0)
		return false;
	*s += n;
	return true;
}

static const char *parse_name(const char *s, struct trigger *t)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz");

	for (int i = 0; i < N_TRIGGERS; i++)
		if (strlen(whats[i].name) == n && strncmp(s, whats[i].name, n) == 0) {
			t->what = (enum trigger_what)i;
			return skip(s + n);
		}
	return NULL;
}

static void parse_unit(const char **s, double *value)
{
	const char *units = "KMGT", *u = **s ? strchr(units, toupper((unsigned char)**s)) : NULL;

	if (u) {
		*value *= ldexp(1, 10 * (int)(u - units + 1));
		++*s;
		takes(s, "i");
	}
	takes(s, "B");
}

/* "100M/min" and nothing behind it; its unit is part of it. */
static bool parse_amount(const char *s, struct trigger *t)
{
	char *end;

	if (*s < '0' || *s > '9' || s[strspn(s, "0123456789.")] == 'x')
		return false;
	t->bound = strtod(s, &end);
	if (end != s + strspn(s, "0123456789."))
		return false; /* "1e9", "0x10" */
	s = skip(end);
	if (t->what == TRIGGER_CPU) {
		t->span_s = CPU_SPAN_S;
		return takes(&s, "%") && !*skip(s) && t->bound > 0;
	}
	parse_unit(&s, &t->bound);
	s = skip(s);
	if (whats[t->what].is_rate) {
		size_t i = 0, n = sizeof(per) / sizeof(*per);

		if (*s != '/')
			return false;
		s = skip(s + 1);
		while (i < n && (strncmp(s, per[i].name, strlen(per[i].name)) != 0 ||
				 isalpha((unsigned char)s[strlen(per[i].name)])))
			i++;
		if (i == n)
			return false;
		s += strlen(per[i].name);
		t->bound /= per[i].s;
		t->span_s = per[i].span_s;
	}
	return !*skip(s) && t->bound > 0;
}

/* "rss>1.5G" → "rss_1_5G" */
static void make_word(const char *text, char *out, size_t cap)
{
	size_t n = 0;

	for (const char *s = text; *s && n < cap - 1; s++) {
		if (isalnum((unsigned char)*s))
			out[n++] = *s;
		else if (n && out[n - 1] != '_' && *s != ' ' && *s != '%')
			out[n++] = '_';
	}
	out[n] = '\0';
}

int trigger_parse(const char *text, struct trigger *ret, struct err *e)
{
	struct trigger t = { .text = text };
	const char *s = parse_name(skip(text), &t);

	if (!s)
		return err_set(e, -EINVAL,
			       "--when takes rss, growth, allocated, cpu or oom, like 'rss>4G' or "
			       "'allocated+=1G': not \"%s\"",
			       text);
	make_word(skip(text), t.word, sizeof(t.word));
	if (t.what == TRIGGER_OOM) {
		t.bound = OOM_PART;
		if (*s)
			return err_set(e, -EINVAL, "--when oom takes no bound: not \"%s\"", text);
		*ret = t;
		return 0;
	}
	t.each = s[0] == '+' && s[1] == '=';
	if ((*s != '>' && !t.each) || (t.each && !whats[t.what].may_add))
		return err_set(
			e, -EINVAL,
			whats[t.what].may_add
				? "--when %s needs a bound, '%s>4G', or a step, '%s+=1G': not \"%s\""
			: t.what == TRIGGER_CPU
				? "--when %s needs a bound, '%s>80%%': not \"%s%s\""
				: "--when %s needs a bound, '%s>100M/min': not \"%s%s\"",
			whats[t.what].name, whats[t.what].name,
			whats[t.what].may_add ? whats[t.what].name : "", text);
	if (!parse_amount(skip(s + (t.each ? 2 : 1)), &t))
		return err_set(e, -EINVAL, "--when %s takes %s: not \"%s\"", whats[t.what].name,
			       t.what == TRIGGER_CPU ? "percent of one CPU, like 'cpu>80%'"
			       : whats[t.what].is_rate
				       ? "bytes per time (/s, /min, /h), like 'growth>100M/min'"
			       : t.each ? "bytes (K, M, G, T), like '+=1G'"
					: "bytes (K, M, G, T), like '>4G'",
			       text);
	*ret = t;
	return 0;
}

/* --- when it is met --- */

static bool fire(struct trigger_state *state, uint64_t now_ns, uint64_t rearm_ns)
{
	if (state->has_fired && now_ns < state->last_ns + rearm_ns) {
		state->suppressed++;
		return false;
	}
	state->has_fired = true;
	state->last_ns = now_ns;
	state->fired++;
	return true;
}

bool trigger_step(const struct trigger *t, struct trigger_state *state, double value,
		  uint64_t now_ns, uint64_t rearm_ns)
{
	bool was = state->met;

	if (isnan(value))
		return false;
	if (t->each) {
		if (!state->has_next)
			state->next = t->what == TRIGGER_ALLOCATED ? t->bound : value + t->bound;
		state->has_next = true;
		if (value < state->next)
			return false;
		state->next += t->bound * (floor((value - state->next) / t->bound) + 1);
		return fire(state, now_ns, rearm_ns);
	}
	if (value < t->bound * FALSE_BELOW)
		state->met = false;
	else if (value > t->bound)
		state->met = true;
	return !was && state->met && fire(state, now_ns, rearm_ns);
}

double trigger_rise(struct trigger_rise *r, double value, uint64_t now_ns, double span_s)
{
	uint64_t span_ns = (uint64_t)(span_s * 1e9),
		 from_ns = now_ns > span_ns ? now_ns - span_ns : 0;
	uint32_t old = 0;
	double rise;

	if (isnan(value))
		return NAN;
	/* The last point that is old enough is where the span begins. */
	while (old + 1 < r->n && r->points[old + 1].ns <= from_ns)
		old++;
	memmove(r->points, r->points + old, (r->n - old) * sizeof(*r->points));
	r->n -= old;
	rise = r->n ? (value - r->points[0].value) / span_s : 0;
	if (r->n && r->points[0].ns < from_ns)
		rise *= span_s / ((double)(now_ns - r->points[0].ns) / 1e9);
	if (r->n < TRIGGER_POINTS &&
	    (!r->n || now_ns - r->points[r->n - 1].ns >= span_ns / (TRIGGER_POINTS - 4))) {
		r->points[r->n].ns = now_ns;
		r->points[r->n++].value = value;
	}
	return rise;
}
