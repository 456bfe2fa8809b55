#include "import/work_series.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A finite number and nothing behind it but blanks. */
static bool take_number(const char *s, double *ret_value, const char **ret_end)
{
	char *end;

	s += strspn(s, " \t");
	if (!*s || isspace((unsigned char)*s))
		return false;
	*ret_value = strtod(s, &end);
	*ret_end = end + strspn(end, " \t\r");
	return end != s && isfinite(*ret_value);
}

static bool take_time(const char *s, double *ret_s, const char **ret_end)
{
	struct tm tm = { .tm_isdst = -1 };
	int n = 0;
	char sep;

	if (sscanf(s, "%4d-%2d-%2d%c%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &sep,
		   &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &n) == 7 &&
	    n && (sep == ' ' || sep == 'T') && tm.tm_year >= 1970 && tm.tm_year < 3000) {
		tm.tm_year -= 1900;
		tm.tm_mon -= 1;
		s += n;
		if (*s == '.')
			s += 1 + strspn(s + 1, "0123456789");
		*ret_s = (double)(*s == 'Z' ? timegm(&tm) : mktime(&tm));
		*ret_end = s + (*s == 'Z');
		return *ret_s > 0;
	}
	/* In ms, where seconds would be thousands of years away. */
	if (!take_number(s, ret_s, ret_end))
		return false;
	if (*ret_s > 1e11)
		*ret_s /= 1000;
	return *ret_s > 0;
}

static bool take_name(const char **s, char *out)
{
	bool quoted = **s == '"';
	size_t n = 0;

	*s += quoted;
	while (**s && (quoted ? **s != '"' : **s != ',')) {
		if (n == WORK_NAME - 1 || iscntrl((unsigned char)**s))
			return false;
		out[n++] = *(*s)++;
	}
	out[n] = '\0';
	if (quoted && *(*s)++ != '"')
		return false;
	return n > 0;
}

bool work_csv_line(const char *line, struct work_value *ret)
{
	struct work_value v = { 0 };
	const char *s = line;

	if (!take_time(s, &v.time_s, &s) || *s++ != ',' || !take_name(&s, v.name) || *s++ != ',' ||
	    !take_number(s, &v.value, &s) || *s)
		return false;
	*ret = v;
	return true;
}

/* Behind the labels, whose values may hold anything within quotes. */
static const char *skip_labels(const char *s)
{
	bool quoted = false;

	for (; *s; s++) {
		if (quoted && *s == '\\' && s[1])
			s++;
		else if (*s == '"')
			quoted = !quoted;
		else if (*s == '}' && !quoted)
			return s + 1;
	}
	return NULL;
}

static bool ends_with(const char *name, const char *tail)
{
	size_t n = strlen(name), k = strlen(tail);

	return n > k && strcmp(name + n - k, tail) == 0;
}

bool work_prometheus_line(const char *line, struct work_value *ret)
{
	struct work_value v = { 0 };
	const char *s = line + strspn(line, " \t");
	size_t n = 0;
	double ms;

	while (isalnum((unsigned char)s[n]) || s[n] == '_' || s[n] == ':')
		n++;
	if (!n || n >= WORK_NAME || isdigit((unsigned char)*s))
		return false;
	memcpy(v.name, s, n);
	s += n;
	s += strspn(s, " \t");
	if (*s == '{')
		s = skip_labels(s + 1);
	if (!s || !take_number(s, &v.value, &s) || ends_with(v.name, "_bucket"))
		return false;
	if (*s && (!take_number(s, &ms, &s) || *s))
		return false;
	*ret = v;
	return true;
}

bool work_is_counter(const char *name)
{
	return ends_with(name, "_total") || ends_with(name, "_count") || ends_with(name, "_sum");
}
