#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return code;
	e->code = code;
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	return code;
}

bool err_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, inode;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &inode) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == inode;
}

void err_put(FILE *to, const char *sentence)
{
	unsigned more = 0; /* bytes that are still to come of a character */

	for (const unsigned char *c = (const unsigned char *)sentence; *c; c++) {
		bool continues = (*c & 0xc0) == 0x80;
		bool bad = *c < 0x20 || *c == 0x7f || (continues && !more);

		if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) { /* C1 */
			bad = true;
			c++;
			more = 0;
		} else if (continues) {
			more -= more > 0;
		} else {
			more = *c >= 0xf0 ? 3 : *c >= 0xe0 ? 2 : *c >= 0xc2 ? 1 : 0;
		}
		fputc(bad ? '?' : *c, to);
	}
}

/* `priority`: as in sd-daemon(3). */
static void print(int priority, const char *sentence)
{
	if (err_is_journal())
		fprintf(stderr, "<%d>", priority);
	fputs("memscope: ", stderr);
	err_put(stderr, sentence);
	fputc('\n', stderr);
}

void err_print(const char *sentence)
{
	print(3, sentence);
}

void err_warn(const char *sentence)
{
	print(4, sentence);
}

void err_notice(const char *sentence)
{
	print(5, sentence);
}

int err_flush_stdout(void)
{
	int error;

	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	/* Of a buffer that was written earlier, it is still the last thing that went wrong. */
	error = errno ? errno : EIO;
	if (error != EPIPE) {
		char sentence[128];

		snprintf(sentence, sizeof(sentence),
			 "standard output: %s; not all of it was printed", strerror(error));
		err_print(sentence);
	}
	return -error;
}
