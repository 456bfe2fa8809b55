/* Words as a shell reads them back. */
#ifndef MEMSCOPE_BASE_SHELL_WORDS_H
#define MEMSCOPE_BASE_SHELL_WORDS_H

#include "base/strbuf.h"

/* Appends a space and the word, in single quotes where it has to be. */
void shell_word_add(struct strbuf *out, const char *word);
/* "memscope WORD…": how this program was called. `argv[0]` is left out. */
void shell_command_line(int argc, char **argv, struct strbuf *out);

#endif
