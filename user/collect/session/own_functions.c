#include "collect/session/own_functions.h"

#include "collect/session/session_parts.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>

enum { FUNCTIONS_MAX = 256 }; /* of a program, which may have as many (BPF_MAX_SUBPROGS) */

/* Of one program: its functions are in the order of their addresses in the program, in all three lists. */
struct functions {
	uint64_t addr[FUNCTIONS_MAX];
	uint32_t len[FUNCTIONS_MAX];
	struct bpf_func_info info[FUNCTIONS_MAX];
};

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t read_functions(int fd, struct functions *f)
{
	struct bpf_prog_info info = {
		.nr_jited_ksyms = FUNCTIONS_MAX,
		.jited_ksyms = (uint64_t)(uintptr_t)f->addr,
		.nr_jited_func_lens = FUNCTIONS_MAX,
		.jited_func_lens = (uint64_t)(uintptr_t)f->len,
		.nr_func_info = FUNCTIONS_MAX,
		.func_info_rec_size = sizeof(f->info[0]),
		.func_info = (uint64_t)(uintptr_t)f->info,
	};
	uint32_t size = sizeof(info);

	memset(f, 0, sizeof(*f));
	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return 0;
	return least(least(info.nr_jited_ksyms, info.nr_jited_func_lens), FUNCTIONS_MAX);
}

/* NULL: the kernel has no such information about it. */
static const char *name_of(const struct btf *btf, uint32_t type)
{
	const struct btf_type *t = type ? btf__type_by_id(btf, type) : NULL;

	return t && btf_is_func(t) ? btf__name_by_offset(btf, t->name_off) : NULL;
}

void own_functions_each(const struct session *s, own_function_fn fn, void *ctx)
{
	const struct btf *btf = bpf_object__btf(s->skel->obj);
	static struct functions f;
	const char *program;

	for (uint32_t i = 0; i < SESSION_PROGRAMS_MAX; i++) {
		int fd = session_program(s, i, &program);
		uint32_t n = fd >= 0 ? read_functions(fd, &f) : 0;

		for (uint32_t k = 0; k < n; k++) {
			const char *name = name_of(btf, f.info[k].type_id);
			char text[160];

			if (!f.addr[k])
				continue;
			snprintf(text, sizeof(text), "bpf_prog_%s", name ? name : program);
			fn(ctx, f.addr[k], f.len[k], text);
		}
	}
}
