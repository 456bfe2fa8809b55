/* A condition of --when: what it is read as can be written into a file's name, and is met by something. */
#include "run/trigger.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	struct err e = { 0 };
	struct trigger t;

	if (text && trigger_parse(text, &t, &e) == 0) {
		struct trigger_state s = { 0 };

		if (!*t.word || strlen(t.word) >= sizeof(t.word) || strpbrk(t.word, "/.-") ||
		    !(t.bound > 0) || t.what >= N_TRIGGERS)
			abort();
		trigger_step(&t, &s, 0, 0, 0);
		trigger_step(&t, &s, t.bound * 2, 1, 1000);
		trigger_step(&t, &s, INFINITY, 2, 1000);
	} else if (text && !*e.msg) {
		abort();
	}
	free(text);
	return 0;
}
