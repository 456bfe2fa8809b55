#include "base/shell_words.h"

#include <string.h>

void shell_word_add(struct strbuf *out, const char *word)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,@%+-";

	strbuf_putc(out, ' ');
	if (*word && !word[strspn(word, plain)]) {
		strbuf_puts(out, word);
		return;
	}
	strbuf_putc(out, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			strbuf_puts(out, "'\\''");
		else
			strbuf_putc(out, *word);
	}
	strbuf_putc(out, '\'');
}

void shell_command_line(int argc, char **argv, struct strbuf *out)
{
	strbuf_puts(out, "memscope");
	for (int i = 1; i < argc; i++)
		shell_word_add(out, argv[i]);
}
