#include "base/moment.h"

#include "base/window_name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS        1000000000LL
#define DAY_S     86400
#define WORD_MAX  64
#define EPOCH_MAX 9000000000LL /* s: in ns it is an int64_t still */

static struct tm local(int64_t ns)
{
	time_t s = (time_t)(ns / NS);
	struct tm tm = { 0 };

	localtime_r(&s, &tm);
	return tm;
}

/* The day of `tm`, and the time of day, or -1: there is none, as on the 31st of a shorter month. */
static int64_t to_time(struct tm tm)
{
	int day = tm.tm_mday;
	time_t s;

	tm.tm_isdst = -1;
	s = mktime(&tm);
	return tm.tm_mday == day ? (int64_t)s : -1;
}

/* "Z", "+01:00" or nothing, behind a time of that zone. */
static int64_t in_zone(struct tm tm, const char *zone)
{
	struct tm offset = { 0 };
	const char *end;

	if (!*zone)
		return to_time(tm);
	end = strptime(zone, "%z", &offset);
	if (!end || *end)
		return -1;
	return (int64_t)timegm(&tm) - offset.tm_gmtoff;
}

static int64_t parse_date(const char *word)
{
	static const char *const forms[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S",
					     "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d" };

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		struct tm tm = { 0 };
		const char *rest = strptime(word, forms[i], &tm);
		int64_t s = rest && *rest != ':' ? in_zone(tm, rest) : -1;

		if (s >= 0)
			return s;
	}
	return -1;
}

/* The time of day in `word`, on the day of `on_ns` and `days` after it. */
static int64_t parse_time_of_day(const char *word, int64_t on_ns, int days)
{
	static const char *const forms[] = { "%H:%M:%S", "%H:%M" };

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		struct tm tm = local(on_ns), at = { 0 };
		const char *rest = strptime(word, forms[i], &at);

		if (!rest || *rest)
			continue;
		tm.tm_hour = at.tm_hour;
		tm.tm_min = at.tm_min;
		tm.tm_sec = at.tm_sec;
		tm.tm_mday += days;
		tm.tm_isdst = -1;
		return (int64_t)mktime(&tm);
	}
	return -1;
}

static int64_t parse_epoch(const char *word)
{
	char *end;
	long long s = strtoll(word + 1, &end, 10);

	return *word == '@' && word[1] >= '0' && word[1] <= '9' && !*end && s < EPOCH_MAX ? s : -1;
}

int stretch_parse(const char *text, size_t len, int64_t *ret_ns)
{
	static const struct {
		char unit;
		int64_t seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', DAY_S } };
	char *end;
	long long n;

	if (!len || *text < '0' || *text > '9')
		return -EINVAL;
	n = strtoll(text, &end, 10);
	for (size_t i = 0; end + 1 == text + len && i < sizeof(units) / sizeof(*units); i++)
		if (*end == units[i].unit && n > 0 && n < EPOCH_MAX / units[i].seconds) {
			*ret_ns = n * units[i].seconds * NS;
			return 0;
		}
	return -EINVAL;
}

/* What is no time of day. Seconds since the Epoch, -1: it is none. */
static int64_t parse_fixed(const char *word, int64_t now_ns)
{
	int64_t ago_ns;

	if (strcmp(word, "now") == 0)
		return now_ns / NS;
	if (*word == '@')
		return parse_epoch(word);
	if (*word == '-' && stretch_parse(word + 1, strlen(word + 1), &ago_ns) == 0)
		return (now_ns - ago_ns) / NS;
	if (is_stamp(word, strlen(word)))
		return stamp_time(word);
	return parse_date(word);
}

static bool copy_word(const char *text, size_t len, char word[WORD_MAX])
{
	if (!len || len >= WORD_MAX)
		return false;
	memcpy(word, text, len);
	word[len] = '\0';
	return true;
}

int moment_parse(const char *text, size_t len, int64_t now_ns, int64_t *ret_ns)
{
	char word[WORD_MAX];
	int64_t s;

	if (!copy_word(text, len, word))
		return -EINVAL;
	s = parse_fixed(word, now_ns);
	if (s < 0) {
		s = parse_time_of_day(word, now_ns, 0);
		if (s > now_ns / NS)
			s = parse_time_of_day(word, now_ns, -1);
	}
	if (s < 0 || s >= EPOCH_MAX)
		return -EINVAL;
	*ret_ns = s * NS;
	return 0;
}

int moment_parse_end(const char *text, size_t len, int64_t now_ns, int64_t from_ns, int64_t *ret_ns)
{
	char word[WORD_MAX];
	int64_t s;

	if (!copy_word(text, len, word))
		return -EINVAL;
	s = parse_fixed(word, now_ns);
	for (int days = 0; s < 0 && days < 2; days++) {
		s = parse_time_of_day(word, from_ns, days);
		if (s >= 0 && s <= from_ns / NS && !days)
			s = -1;
	}
	if (s < 0 || s >= EPOCH_MAX)
		return -EINVAL;
	*ret_ns = s * NS;
	return 0;
}

static struct moment_text print(int64_t ns, const char *form)
{
	struct tm tm = local(ns);
	struct moment_text t;

	if (!strftime(t.s, sizeof(t.s), form, &tm))
		snprintf(t.s, sizeof(t.s), "?");
	return t;
}

struct moment_text moment_text(int64_t ns)
{
	return print(ns, "%Y-%m-%dT%H:%M:%S");
}

struct moment_text moment_short(int64_t ns, int64_t now_ns)
{
	struct tm then = local(ns), now = local(now_ns);
	bool today = then.tm_year == now.tm_year && then.tm_yday == now.tm_yday;

	return print(ns, today ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S");
}
