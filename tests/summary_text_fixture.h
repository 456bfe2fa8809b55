/*
 * The summary as text, for tests: of a run as summary_fixture.h has it, and what is in it.
 */
#ifndef MEMSCOPE_TESTS_SUMMARY_TEXT_FIXTURE_H
#define MEMSCOPE_TESTS_SUMMARY_TEXT_FIXTURE_H

#include "render/summary/summary_text.h"
#include "summary_fixture.h"

#include <string.h>

/* The text of `s`; the caller's for the length of the test. */
static inline const char *text_of(const struct run_summary *s)
{
	static char text[32768];
	_cleanup_(sink_closep) struct sink *out = NULL;
	const char *written;
	size_t len;

	assert_int_equal(sink_open_memory(&out, NULL), 0);
	summary_text_write(s, false, out);
	written = sink_memory(out, &len);
	assert_non_null(written);
	assert_true(len < sizeof(text));
	assert_int_equal(strlen(written), len);
	memcpy(text, written, len + 1);
	return text;
}

/* The screen, as text_of(). */
static inline const char *screen_of(const struct run_summary *s, bool colour)
{
	static char text[32768];
	_cleanup_(sink_closep) struct sink *out = NULL;
	size_t len;

	assert_int_equal(sink_open_memory(&out, NULL), 0);
	summary_screen_write(s, colour, out);
	assert_true(strlen(sink_memory(out, &len)) < sizeof(text));
	strcpy(text, sink_memory(out, &len));
	return text;
}

/* Without regard to where lines are broken and how wide columns are. */
static inline void squeeze(const char *text, char *ret_text, size_t size)
{
	size_t n = 0;

	for (; *text && n + 1 < size; text++) {
		char c = *text == '\n' ? ' ' : *text;

		if (c != ' ' || (n > 0 && ret_text[n - 1] != ' '))
			ret_text[n++] = c;
	}
	ret_text[n] = '\0';
}

static inline void assert_has(const char *text, const char *part)
{
	static char all[32768], wanted[1024];

	squeeze(text, all, sizeof(all));
	squeeze(part, wanted, sizeof(wanted));
	if (!strstr(all, wanted))
		fail_msg("\"%s\" is not in\n%s", part, text);
}

static inline void assert_has_not(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("\"%s\" is in\n%s", part, text);
}

#endif
