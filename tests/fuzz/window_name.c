/*
 * Names of files in a directory of windows, whoever put them there: one that is a window's has parts that make the name again, a stamp,
 * and at most one folder; and so has what a template makes of anybody's text, which is one word that is fit for a file's name.
 */
#include "base/window_name.h"
#include "base/name_template.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is)
{
	if (!is)
		abort();
}

static void check_name(const char *name)
{
	const char *slash = strchr(name, '/'), *file = slash ? slash + 1 : name;
	char stamp[32], again[4096];
	struct window_name n;
	bool is = is_window_name(name, stamp, sizeof(stamp)), parses = window_name_parse(file, &n);

	check(!is || (is_part_name(name) && is_stamp(stamp, strlen(stamp)) && strstr(file, stamp)));
	if (!parses)
		return;
	check(!is || strcmp(n.stamp, stamp) == 0);
	/* A word of no characters is none. */
	for (int i = 0; i < 2; i++) {
		snprintf(again, sizeof(again), "%s%s%s-%s%s", n.source, *n.word || i ? "_" : "",
			 n.word, n.stamp, n.ext);
		if (strlen(file) >= sizeof(again) || strcmp(again, file) == 0)
			return;
	}
	abort();
}

static void fill(const char *value)
{
	const struct name_field fields[] = { { "comm", value }, { NULL } };
	struct strbuf out = { 0 };
	struct err e = { 0 };

	if (name_template_fill("{comm}", fields, &out, &e) == 0) {
		check(*value && out.s[0] != '.' && out.len <= strlen(value));
		for (size_t i = 0; i < out.len; i++)
			check(isalnum((unsigned char)out.s[i]) || strchr("._+-@", out.s[i]));
	} else {
		check(e.msg[0] != '\0' && !*value);
	}
	strbuf_free(&out);
}

static void as_template(const char *template)
{
	const struct name_field fields[] = {
		{ "a", "../x" }, { "b", "\n" }, { "c", NULL }, { NULL }
	};
	struct strbuf out = { 0 };
	struct err e = { 0 };
	int r = name_template_fill(template, fields, &out, &e);

	check((r < 0) == (e.msg[0] != '\0'));
	/* Only the template's own slashes and dots lead anywhere. */
	check(r < 0 || strstr(template, "../") || !strstr(out.s, "../"));
	strbuf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);

	check_name(text);
	fill(text);
	as_template(text);
	free(text);
	return 0;
}
