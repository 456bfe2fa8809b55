/* The summary of somebody's run as a finding: six headings below the title, whatever is in it, or it is refused. */
#include "render/finding.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct finding f = { .summary = bytes_of(data, len), .of = "x" };
	struct err e = { 0 };
	struct sink *out;
	uint32_t headings = 0;
	const char *text;
	size_t n;
	int r;

	if (!len || sink_open_memory(&out, &e) < 0)
		return 0;
	r = finding_write(&f, out, &e);
	if ((r < 0) != (e.msg[0] != '\0'))
		abort();
	if (r == 0 && sink_commit(out, &e) == 0) {
		text = sink_memory(out, &n);
		for (size_t i = 0; i < n; i++)
			headings += text[i] == '#' && (!i || text[i - 1] == '\n');
		if (headings != 7)
			abort();
	}
	sink_close(out);
	return 0;
}
