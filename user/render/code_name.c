#include "render/code_name.h"

#include <ctype.h>
#include <string.h>

enum { PARAMETERS = 1, ARGUMENTS = 2 };

#define ANONYMOUS "(anonymous namespace)"

static size_t count_chars(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* The length of "operator" and its sign at `at`, whose brackets open and close nothing; 0. */
static size_t operator_length(const char *name, size_t at)
{
	size_t n = 8;

	if (strncmp(name + at, "operator", 8) != 0 || (at && in_word(name[at - 1])))
		return 0;
	if (!strncmp(name + at + n, "()", 2) || !strncmp(name + at + n, "[]", 2))
		return n + 2;
	return n + strspn(name + at + n, "<>=-!+*/%&|^~,");
}

/* One past the bracket that closes the one at `open`; 0 when none does. */
static size_t group_end(const char *name, size_t open)
{
	size_t depth = 0, skip;

	for (size_t i = open; name[i]; i++) {
		skip = operator_length(name, i);
		if (skip) {
			i += skip - 1;
		} else if (strchr("(<[{", name[i])) {
			depth++;
		} else if (strchr(")>]}", name[i])) {
			/* An arrow closes nothing. */
			if (name[i] == '>' && name[i - 1] == '-')
				continue;
			if (!--depth)
				return i + 1;
		}
	}
	return 0;
}

/* Parameters are behind a name, and end it or a part of its path: not so in Go's main.(*Tree).add. */
static bool are_parameters(const char *name, size_t open, size_t end)
{
	return open && strncmp(name + open, ANONYMOUS, strlen(ANONYMOUS)) != 0 &&
	       (!name[end] || strchr(" [@", name[end]) || !strncmp(name + end, "::", 2));
}

/* `name` without what `left_out` says. False: its brackets do not add up. */
static bool without(struct strbuf *b, const char *name, unsigned left_out)
{
	for (size_t i = 0; name[i];) {
		size_t end = operator_length(name, i);
		bool drop = false;

		if (!end && (name[i] == '(' || name[i] == '<')) {
			end = group_end(name, i);
			if (!end)
				return false;
			/* A Rust name may begin with <Type as Trait>, which says what it is. */
			drop = name[i] == '(' ? are_parameters(name, i, end)
					      : i && (left_out & ARGUMENTS);
			drop = drop && end - i > 2;
			end -= i;
		}
		if (drop) {
			strbuf_add(b, name + i, 1);
			strbuf_puts(b, "…");
			strbuf_add(b, name + i + end - 1, 1);
		} else {
			strbuf_add(b, name + i, end ? end : 1);
		}
		i += end ? end : 1;
	}
	return true;
}

/* A Python function and its file: main.<locals>.run (server.py). Its brackets are no parameters. */
static bool has_file_behind(const char *name)
{
	const char *open = strrchr(name, '(');
	size_t len = strlen(name);

	return open && open - name > 1 && open[-1] == ' ' && name[len - 1] == ')' &&
	       strchr(open, '.') && !strpbrk(open, " ,:*&<");
}

void code_name_shorten(struct strbuf *b, const char *name, size_t width)
{
	_cleanup_(strbuf_free) struct strbuf less = { 0 }, least = { 0 };
	const char *chosen = name;

	if (count_chars(name) > width && !has_file_behind(name) &&
	    without(&less, name, PARAMETERS) && less.s) {
		chosen = less.s;
		if (count_chars(chosen) > width && without(&least, name, PARAMETERS | ARGUMENTS) &&
		    least.s)
			chosen = least.s;
	}
	strbuf_puts(b, chosen);
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* Behind the namespace that it begins with; NULL: with none. */
static const char *behind_namespace(const char *name)
{
	const char *c = name;

	while (is_word(*c))
		c++;
	if (c == name)
		return NULL;
	return *c == '\\' ? c + 1 : c[0] == ':' && c[1] == ':' ? c + 2 : NULL;
}

/* Behind the packages before a class, which begin with small letters. */
static const char *behind_packages(const char *name)
{
	const char *c = name;

	while (islower((unsigned char)*c) || *c == '_') {
		while (is_word(*c))
			c++;
		if (*c++ != '.')
			return name;
	}
	return isupper((unsigned char)*c) ? c : name;
}

const char *code_name_begin(const char *name, size_t width)
{
	const char *next;

	if (strlen(name) <= width)
		return name;
	name = behind_packages(name);
	while (strlen(name) > width && (next = behind_namespace(name)) && behind_namespace(next))
		name = next;
	return name;
}
