#include "run/notes.h"
#include "run/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void run_note(struct run *r, bool missing, const char *fmt, ...)
{
	struct notes *n = &r->notes;
	va_list ap;

	n->partial |= missing;
	if (n->n == NOTES_MAX)
		return;
	va_start(ap, fmt);
	if (vasprintf(&n->text[n->n], fmt, ap) >= 0)
		n->missing[n->n++] = missing;
	va_end(ap);
}

void run_progress(const struct run *r, const char *doing)
{
	if (r->cfg->quiet || !isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[K%s%s%s", doing ? "memscope: " : "", doing ? doing : "",
		doing ? "…" : "");
	fflush(stderr);
}

void run_say(const struct run *r, const char *fmt, ...)
{
	char *sentence;
	va_list ap;
	int n;

	if (!r->cfg->verbose)
		return;
	va_start(ap, fmt);
	n = vasprintf(&sentence, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	fputs("memscope: ", stderr);
	err_put(stderr, sentence); /* names of others may be in it */
	fputc('\n', stderr);
	free(sentence);
}

void notes_fini(struct notes *n)
{
	for (uint32_t i = 0; i < n->n; i++)
		free(n->text[i]);
}
