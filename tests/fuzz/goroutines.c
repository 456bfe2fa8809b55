/*
 * A Go program's memory as anyone may have written it: what is found in it ends, and stays within its bounds.
 *
 *   bytes of the memory at GO_BASE; what is missing is as in goroutines_image.h
 */
#include "unit/lang/goroutines_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct go_process *found;

static void check(void *ctx, const struct goroutine *g)
{
	(void)ctx;
	if (g->n > GO_FRAMES_MAX || (g->whole && !g->n) || g->reason >= found->n_reasons ||
	    g->fds[0] < -1 || g->fds[0] >= 1 << 24 || g->fds[1] < -1 || g->fds[1] >= 1 << 24)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct go_memory_image im;
	const struct go_memory mem = { go_image_read, &im };
	const struct go_tables tables = { go_image_place, NULL };
	_cleanup_(go_program_freep) struct go_program *p = go_image_program();
	_cleanup_(go_look_freep) struct go_look *l = go_look_new();
	static struct go_process process;
	struct goroutines_stats st;
	uint64_t n;
	int r;

	if (!p || !l)
		return 0;
	go_image_fill(&im, 16);
	memcpy(im.bytes, data, len < GO_SIZE ? len : GO_SIZE);
	r = go_process_find(p, 0, &mem, &process, NULL);
	if (r < 0 && r != -EAGAIN && r != -EOPNOTSUPP)
		abort();
	if (r < 0)
		return 0;
	for (uint32_t i = 0; i < process.n_reasons; i++)
		if (strnlen(process.reasons[i], GO_REASON_BYTES) == GO_REASON_BYTES)
			abort();
	found = &process;
	r = go_look(l, &process, &mem, &tables, 0, 1, check, NULL, &st);
	if (r != 0 && r != -EIO)
		abort();
	if (r == 0 && (st.dead > st.looked || st.moved > st.looked))
		abort();
	go_process_size(&process, &mem, &n);
	return 0;
}
