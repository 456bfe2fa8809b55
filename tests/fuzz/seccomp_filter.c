/* A seccomp filter, as the kernel hands out that of a process. */
#include "inject/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t n = (uint32_t)(size / sizeof(struct sock_filter)), action = 0;
	struct sock_filter *insns = malloc(n * sizeof(*insns) + 1);
	struct filter_program program = { insns, n };
	struct filters filters = { &program, 1 };
	const struct seccomp_data call = { .nr = 9, .args = { 0, 4096, 3 } };

	if (!insns)
		return 0;
	memcpy(insns, data, n * sizeof(*insns));
	if (filter_run(insns, n, &call, ~0ULL, &action) == 0 &&
	    filter_run(insns, n, &call, 0xff, &action) == -EBADMSG)
		abort(); /* what is not known does not make a program a bad one */
	filters_check(&filters, 1, true, true, NULL);
	filters_allow_skipping(&filters);
	free(insns);
	return 0;
}
