#include "collect/events/event_spec.h"

#include "collect/events/event_names.h"
#include "collect/events/pmu.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITEM_MAX 1024

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

bool event_matches(const char *pattern, const char *text)
{
	return fnmatch(pattern, text, 0) == 0;
}

bool event_is_pattern(const char *text)
{
	return text[strcspn(text, "*?[")] != '\0';
}

enum event_unit event_unit(const struct event_spec *spec)
{
	if (spec->kind != EVENT_PERF)
		return EVENT_UNIT_COUNT;
	if (spec->type != PERF_TYPE_SOFTWARE)
		return EVENT_UNIT_OF_HARDWARE;
	return spec->config == PERF_COUNT_SW_CPU_CLOCK || spec->config == PERF_COUNT_SW_TASK_CLOCK
		       ? EVENT_UNIT_NS
		       : EVENT_UNIT_COUNT;
}

/* --- an item --- */

/* Of a file: its slashes do not hold terms. */
static bool names_a_file(const char *item)
{
	return begins(item, "usdt:") || begins(item, "uprobe:") || begins(item, "uretprobe:") ||
	       begins(item, "p:") || begins(item, "r:") || begins(item, "u:");
}

/* Where the terms of an item begin: behind the slash; NULL: it has none. `end`: of the item. */
static const char *terms_of(const char *item, const char *end)
{
	const char *slash;

	if (!names_a_file(item)) {
		slash = memchr(item, '/', (size_t)(end - item));
		return slash ? slash + 1 : NULL;
	}
	slash = end > item && end[-1] == '/' ? memrchr(item, '/', (size_t)(end - 1 - item)) : NULL;
	return slash && memchr(slash, '=', (size_t)(end - slash)) ? slash + 1 : NULL;
}

/* The comma behind the item, or the end of the list. */
static const char *end_of(const char *item)
{
	const char *end = item + strcspn(item, ","), *slash;

	if (!names_a_file(item)) {
		slash = memchr(item, '/', (size_t)(end - item));
		slash = slash ? strchr(slash + 1, '/') : NULL;
		return slash && slash > end ? slash + strcspn(slash, ",") : end;
	}
	/* A comma within terms: "…/period=10,name=x/". */
	slash = *end ? memrchr(item, '/', (size_t)(end - item)) : NULL;
	if (!slash || !memchr(slash, '=', (size_t)(end - slash)) || !strchr(end, '/'))
		return end;
	end = strchr(end, '/') + 1;
	return end + strcspn(end, ",");
}

static bool take_number(const char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 0);
	return isdigit((unsigned char)*text) && !*end && !errno;
}

struct item {
	char text[ITEM_MAX]; /* terms cut off */
	char terms[ITEM_MAX];
	char pmu[64]; /* "cpu" of cpu/…/, else "" */
	bool has_terms;
	struct event_spec *spec;
};

/* Of a profile: of letters that files, and windows of them, can have. */
static bool is_name(const char *text)
{
	size_t len = 0;

	while (isalnum((unsigned char)text[len]) || text[len] == '_' ||
	       (text[len] == '-' && !isdigit((unsigned char)text[len + 1])))
		len++;
	return (isalpha((unsigned char)*text) || *text == '_') && !text[len] &&
	       len < sizeof(((struct event_spec *)NULL)->name);
}

static int set_pmu_term(struct item *it, const char *term, const char *text, struct err *e)
{
	struct event_spec *s = it->spec;
	struct pmu_event event = { s->type, { s->config, s->config1, s->config2 } };
	uint64_t value = 0;
	int r;

	if (text && !take_number(text, &value))
		return err_set(e, -EINVAL, "-e %.200s: %.64s takes a number, not \"%.64s\"",
			       it->text, term, text);
	r = pmu_term(PMU_DIR, it->pmu, term, text ? &value : NULL, &event);
	if (r == -ERANGE)
		return err_set(e, -EINVAL, "-e %.200s: %.64s=%.64s has more bits than the field",
			       it->text, term, text);
	if (r < 0)
		return err_set(e, -EINVAL,
			       "-e %.200s: %.64s has no term or event \"%.64s\" (see " PMU_DIR
			       "/%.64s)",
			       it->text, it->pmu, term, it->pmu);
	s->config = event.config[0];
	s->config1 = event.config[1];
	s->config2 = event.config[2];
	return 0;
}

static int set_term(struct item *it, char *term, struct err *e)
{
	char *text = strchr(term, '=');
	struct event_spec *s = it->spec;
	uint64_t *number;

	if (text)
		*text++ = '\0';
	if (strcmp(term, "name") == 0 && text && *text) {
		if (!is_name(text))
			return err_set(
				e, -EINVAL,
				"-e %.200s: \"%.64s\" cannot be a name: letters, digits, _ "
				"and - can, with no digit or - first and none behind a -, and 63 "
				"of them at most",
				it->text, text);
		snprintf(s->name, sizeof(s->name), "%s", text);
		return 0;
	}
	number = strcmp(term, "period") == 0 ? &s->period
		 : strcmp(term, "freq") == 0 ? &s->freq
					     : NULL;
	if (number) {
		if (!text || !take_number(text, number) || !*number || *number > 1ULL << 62)
			return err_set(e, -EINVAL, "-e %.200s: %s takes a number above 0", it->text,
				       term);
		return 0;
	}
	if (*it->pmu)
		return set_pmu_term(it, term, text, e);
	return err_set(e, -EINVAL,
		       "-e %.200s: the term \"%.64s\" is not understood: period=N, freq=N and "
		       "name=TEXT are",
		       it->text, term);
}

static int set_terms(struct item *it, struct err *e)
{
	char *save = NULL;
	int r = 0;

	for (char *t = strtok_r(it->terms, ",", &save); t && r == 0; t = strtok_r(NULL, ",", &save))
		r = set_term(it, t, e);
	return r;
}

/* Behind a colon. */
static int set_modifiers(struct item *it, const char *text, struct err *e)
{
	bool user = strchr(text, 'u'), kernel = strchr(text, 'k');
	struct event_spec *s = it->spec;

	for (const char *c = text; *c; c++)
		s->precise += *c == 'p';
	if (!*text || text[strspn(text, "ukp")] || s->precise > 3)
		return err_set(
			e, -EINVAL,
			"-e %.200s: the modifier \"%.64s\" is not understood: u and k are, and "
			"p up to three times",
			it->text, text);
	s->no_user = kernel && !user;
	s->no_kernel = user && !kernel;
	return 0;
}

/* --- kinds --- */

static int copy(char *to, size_t size, const char *from, size_t len)
{
	if (!len || len >= size)
		return -EINVAL;
	memcpy(to, from, len);
	to[len] = '\0';
	return 0;
}

/* "SYSTEM:NAME" */
static int set_tracepoint(struct item *it, const char *text, struct err *e)
{
	const char *colon = strchr(text, ':');
	struct event_spec *s = it->spec;

	s->kind = EVENT_TRACEPOINT;
	if (!colon || copy(s->group, sizeof(s->group), text, (size_t)(colon - text)) < 0 ||
	    copy(s->event, sizeof(s->event), colon + 1, strlen(colon + 1)) < 0 ||
	    strchr(s->event, ':') || strchr(s->event, '/') || strchr(s->group, '/'))
		return err_set(e, -EINVAL,
			       "-e %.200s: a tracepoint is SYSTEM:NAME, like "
			       "sched:sched_process_fork",
			       it->text);
	return 0;
}

/* "FILE:PROVIDER:NAME", "FILE:NAME", "PROVIDER:NAME": only a file has a slash, or something behind it that has a colon. */
static int set_site(struct item *it, const char *text, bool of_file, struct err *e)
{
	const char *last = strrchr(text, ':'), *first = strchr(text, ':');
	struct event_spec *s = it->spec;
	int r = 0;

	s->kind = EVENT_USDT;
	if (!last)
		r = -EINVAL;
	else if (last != first || of_file || memchr(text, '/', (size_t)(last - text)))
		r = copy(s->file, sizeof(s->file), text, (size_t)(first - text));
	if (r == 0 && last != first)
		r = copy(s->group, sizeof(s->group), first + 1, (size_t)(last - first - 1));
	else if (r == 0 && !*s->file)
		r = copy(s->group, sizeof(s->group), text, (size_t)(last - text));
	if (r == 0 && !*s->group)
		strcpy(s->group, "*");
	if (r == 0)
		r = copy(s->event, sizeof(s->event), last + 1, strlen(last + 1));
	return r == 0 ? 0
		      : err_set(e, -EINVAL,
				"-e %.200s: a site of USDT is usdt:FILE:PROVIDER:NAME, or "
				"usdt:PROVIDER:NAME in whatever the target maps",
				it->text);
}

/* "FILE:FUNCTION" */
static int set_function(struct item *it, const char *text, struct err *e)
{
	const char *colon = strrchr(text, ':');
	struct event_spec *s = it->spec;

	s->kind = EVENT_UPROBE;
	if (colon == text)
		return err_set(
			e, -EINVAL,
			"-e %.200s: functions of the kernel have no probe here: p:FILE:FUNCTION "
			"is one of a program or library",
			it->text);
	if (!colon || copy(s->file, sizeof(s->file), text, (size_t)(colon - text)) < 0 ||
	    copy(s->event, sizeof(s->event), colon + 1, strlen(colon + 1)) < 0)
		return err_set(e, -EINVAL, "-e %.200s: a function is uprobe:FILE:FUNCTION",
			       it->text);
	return 0;
}

/* "r1a8": a number of up to 64 bits. */
static bool find_raw(const char *text, size_t len, uint64_t *ret_config)
{
	size_t digits = 1;

	while (digits < len && isxdigit((unsigned char)text[digits]))
		digits++;
	if (len < 2 || *text != 'r' || digits < len || len > 17)
		return false;
	*ret_config = strtoull(text + 1, NULL, 16);
	return true;
}

/* By name, or by number. */
static bool find_event(const char *text, size_t len, struct event_spec *s)
{
	if (event_name_find(text, len, &s->type, &s->config))
		return true;
	if (!find_raw(text, len, &s->config))
		return false;
	s->type = PERF_TYPE_RAW;
	return true;
}

static int not_understood(const struct item *it, struct err *e)
{
	const char *near = event_name_near(it->text);

	if (*it->text == '{')
		return err_set(e, -EINVAL,
			       "-e %.200s: groups of events are not supported: name "
			       "each by itself",
			       it->text);
	if (begins(it->text, "mem:"))
		return err_set(e, -EINVAL, "-e %.200s: breakpoints are not supported", it->text);
	return err_set(
		e, -EINVAL,
		"-e: there is no event \"%.200s\"%s%s%s; memscope record -e list shows those "
		"that are there",
		it->text, near ? ": did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static int set_kind(struct item *it, struct err *e)
{
	const char *text = it->text;
	struct event_spec *s = it->spec;
	size_t len = strcspn(text, ":");

	if (*it->pmu) {
		if (!pmu_type(PMU_DIR, it->pmu, &s->type))
			return err_set(e, -ENODEV,
				       "-e %.200s: there is no PMU \"%.64s\" on this machine", text,
				       it->pmu);
		snprintf(s->pmu, sizeof(s->pmu), "%s", it->pmu);
		return text[len] ? set_modifiers(it, text + len + 1, e) : 0;
	}
	if (begins(text, "usdt:"))
		return set_site(it, text + 5, false, e);
	if (begins(text, "u:"))
		return set_site(it, text + 2, true, e);
	if (begins(text, "sdt_"))
		return set_site(it, text + 4, false, e);
	if (begins(text, "uprobe:"))
		return set_function(it, text + 7, e);
	if (begins(text, "p:"))
		return set_function(it, text + 2, e);
	s->at_return = begins(text, "uretprobe:") || begins(text, "r:");
	if (s->at_return)
		return set_function(it, text + strcspn(text, ":") + 1, e);
	if (begins(text, "tracepoint:"))
		return set_tracepoint(it, text + 11, e);
	if (begins(text, "t:"))
		return set_tracepoint(it, text + 2, e);
	if (find_event(text, len, s))
		return text[len] ? set_modifiers(it, text + len + 1, e) : 0;
	return strchr(text, ':') && !begins(text, "mem:") ? set_tracepoint(it, text, e)
							  : not_understood(it, e);
}

/* --- names --- */

/* What the profile is called: the event's own name, as is_name() has it. */
static void set_name(struct event_spec *s)
{
	const char *from = s->kind == EVENT_PERF ? s->text : s->event;
	char *to = s->name;

	if (*s->name)
		return;
	if (s->kind != EVENT_PERF && strcmp(from, "*") == 0)
		from = s->group;
	for (; *from && to < s->name + sizeof(s->name) - 1; from++) {
		bool ok = isalnum((unsigned char)*from) || *from == '_' ||
			  (*from == '-' && !isdigit((unsigned char)from[1]));

		if (ok)
			*to++ = *from;
		else if (to > s->name && to[-1] != '_')
			*to++ = '_';
	}
	while (to > s->name && to[-1] == '_')
		to--;
	*to = '\0';
	if (s->at_return && to > s->name)
		snprintf(to, sizeof(s->name) - (size_t)(to - s->name), "_return");
	if (!*s->name || isdigit((unsigned char)*s->name))
		snprintf(s->name, sizeof(s->name), "events");
}

/* Names that the rest of a run's files have. */
static bool is_taken(const struct event_spec *specs, uint32_t n, const char *name)
{
	static const char *const files[] = {
		"oncpu",    "offcpu",    "alloc",         "heap",     "peak",        "growth",
		"mappings", "goroutine", "wakers",        "syscalls", "summary",     "trend",
		"report",   "events",    "sites",         "counts",   "live_series", "alloc_series",
		"workload", "census",    "rss_breakdown",
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		if (strcmp(files[i], name) == 0)
			return true;
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(specs[i].name, name) == 0)
			return true;
	return false;
}

static void make_name_unique(const struct event_spec *specs, uint32_t n, struct event_spec *s)
{
	char name[sizeof(s->name)];

	snprintf(name, sizeof(name), "%s", s->name);
	for (int i = 2; is_taken(specs, n, s->name); i++)
		snprintf(s->name, sizeof(s->name), "%.56s_%c", name, 'a' + (i - 1) % 26);
}

/* --- lists --- */

static int parse_item(const char *item, const char *end, struct event_spec *s, struct err *e)
{
	const char *terms = terms_of(item, end), *closed;
	struct item it = { .spec = s };
	size_t len = (size_t)((terms ? terms - 1 : end) - item);
	int r;

	if ((size_t)(end - item) >= ITEM_MAX)
		return err_set(e, -EINVAL, "-e: \"%.64s\" … is too long", item);
	if (begins(item, "/") || begins(item, "./") || begins(item, "../"))
		return err_set(
			e, -EINVAL,
			"-e %.*s: an event in a file says of which kind it is: uprobe:%.*s is a "
			"function, usdt:%.*s a site; --count %.*s counts and times a function's "
			"calls",
			(int)(end - item), item, (int)(end - item), item, (int)(end - item), item,
			(int)(end - item), item);
	memcpy(it.text, item, len);
	if (terms) {
		closed = memrchr(terms, '/', (size_t)(end - terms));
		if (!closed || (closed + 1 < end && closed[1] != ':'))
			return err_set(e, -EINVAL, "-e %.*s: the terms end with a slash",
				       (int)(end - item), item);
		memcpy(it.terms, terms, (size_t)(closed - terms));
		if (closed + 1 < end)
			snprintf(it.text + len, sizeof(it.text) - len, "%.*s",
				 (int)(end - closed - 1), closed + 1);
		if (!names_a_file(item) && !memchr(item, ':', len) && !find_event(item, len, s))
			snprintf(it.pmu, sizeof(it.pmu), "%.*s", (int)len, item);
	}
	snprintf(s->text, sizeof(s->text), "%.*s",
		 *it.pmu ? (int)(end - item) : (int)sizeof(it.text) - 1, *it.pmu ? item : it.text);
	r = set_kind(&it, e);
	if (r == 0)
		r = set_terms(&it, e);
	if (r == 0 && s->freq && event_unit(s) == EVENT_UNIT_COUNT)
		r = err_set(e, -EINVAL,
			    "-e %.200s: freq=N is for clocks and counters of hardware: of others "
			    "each event is taken, or one in period=N",
			    s->text);
	if (r == 0 && s->freq && s->period)
		r = err_set(e, -EINVAL, "-e %.200s: either period=N or freq=N", s->text);
	if (r == 0 && s->kind != EVENT_PERF && s->period > UINT32_MAX)
		r = err_set(e, -EINVAL, "-e %.200s: period=N is below 2^32", s->text);
	return r;
}

int events_parse(const char *list, struct event_spec *specs, uint32_t *n, struct err *e)
{
	while (list) {
		const char *end = end_of(list);
		struct event_spec s = { 0 };
		int r;

		if (end == list)
			return err_set(e, -EINVAL,
				       "-e takes events, with commas between them: one is empty");
		if (*n == EVENT_SPECS_MAX)
			return err_set(e, -EINVAL, "-e takes %d events at most", EVENT_SPECS_MAX);
		r = parse_item(list, end, &s, e);
		if (r < 0)
			return r;
		set_name(&s);
		make_name_unique(specs, *n, &s);
		specs[(*n)++] = s;
		list = *end ? end + 1 : NULL;
	}
	return 0;
}

/* The colon between file and function: not one of "ns::function". NULL: there is none. */
static const char *file_end(const char *text, const char *end)
{
	for (const char *c = text; c < end; c++)
		if (*c == ':' && (c == text || c[-1] != ':') && c[1] != ':')
			return c;
	return NULL;
}

int counts_parse(const char *list, struct event_spec *specs, uint32_t *n, struct err *e)
{
	while (list) {
		const char *end = list + strcspn(list, ","), *colon = file_end(list, end);
		const char *function = colon ? colon + 1 : list;
		struct event_spec s = { .kind = EVENT_UPROBE, .timed = true };

		if (*n == EVENT_SPECS_MAX)
			return err_set(e, -EINVAL, "-e and --count take %d at most, together",
				       EVENT_SPECS_MAX);
		if (end == list)
			return err_set(
				e, -EINVAL,
				"--count takes functions, with commas between them: one is empty");
		if (copy(s.text, sizeof(s.text), list, (size_t)(end - list)) < 0 ||
		    (colon && copy(s.file, sizeof(s.file), list, (size_t)(colon - list)) < 0) ||
		    copy(s.event, sizeof(s.event), function, (size_t)(end - function)) < 0)
			return err_set(e, -EINVAL,
				       "--count %.200s: a function is FUNCTION or FILE:FUNCTION",
				       list);
		set_name(&s);
		make_name_unique(specs, *n, &s);
		specs[(*n)++] = s;
		list = *end ? end + 1 : NULL;
	}
	return 0;
}
