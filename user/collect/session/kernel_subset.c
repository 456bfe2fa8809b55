#include "collect/session/kernel_subset.h"

#include "base/boot_file.h"
#include "base/cleanup.h"
#include "base/whole_file.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KEPT_FILE "kernel-types"
#define TRACE     "btf_trace_"

/* kernel_types.c and session_open() ask for these; programs need not refer to them. */
static const char *const asked[] = { "vm_area_struct", "sched_entity",  "cfs_rq",     "rq",
				     "sched_info",     "bpf_mem_alloc", "bpf_func_id" };

struct names {
	const char **at;
	uint32_t n;
};

struct subset {
	const struct btf *kernel;
	uint32_t n;      /* types of the kernel                    */
	uint32_t *to;    /* 0: not in it; else its id there, from 1 */
	uint32_t *queue; /* in it, but what it consists of is not yet */
	uint32_t n_queue;
};

/* --- names --- */

/* libbpf's rule: NAME___FLAVOUR stands for the kernel's NAME. */
static size_t essential(const char *name)
{
	const char *flavour = strstr(name, "___");

	return flavour && flavour != name ? (size_t)(flavour - name) : strlen(name);
}

static int by_name(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	size_t nx = essential(x), ny = essential(y);
	int r = memcmp(x, y, nx < ny ? nx : ny);

	return r ? r : (nx > ny) - (nx < ny);
}

static bool has_name(const struct btf_type *t)
{
	switch (btf_kind(t)) {
	case BTF_KIND_INT:
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPEDEF:
		return t->name_off;
	default:
		return false;
	}
}

static bool read_names(const struct btf *programs, struct names *ret_names)
{
	uint32_t n = btf__type_cnt(programs), n_asked = sizeof(asked) / sizeof(*asked);

	ret_names->at = calloc(n + n_asked, sizeof(*ret_names->at));
	for (uint32_t i = 1; ret_names->at && i < n; i++) {
		const struct btf_type *t = btf__type_by_id(programs, i);

		if (has_name(t))
			ret_names->at[ret_names->n++] = btf__name_by_offset(programs, t->name_off);
	}
	for (uint32_t i = 0; ret_names->at && i < n_asked; i++)
		ret_names->at[ret_names->n++] = asked[i];
	if (ret_names->at)
		qsort(ret_names->at, ret_names->n, sizeof(*ret_names->at), by_name);
	return ret_names->at;
}

/* --- choosing --- */

static void take(struct subset *s, uint32_t id)
{
	if (!id || id >= s->n || s->to[id])
		return;
	s->to[id] = 1;
	s->queue[s->n_queue++] = id;
}

/* A tracepoint is a typedef of a pointer to a function, of which the number of arguments matters. */
static void take_trace(struct subset *s, uint32_t id)
{
	const struct btf_type *t = btf__type_by_id(s->kernel, id);

	take(s, id);
	t = btf__type_by_id(s->kernel, t->type);
	if (!t || !btf_is_ptr(t))
		return;
	take(s, btf__type_by_id(s->kernel, id)->type);
	take(s, t->type);
}

static void take_parts(struct subset *s, const struct btf_type *t)
{
	switch (btf_kind(t)) {
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_CONST:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		take(s, t->type);
		break;
	case BTF_KIND_ARRAY:
		take(s, btf_array(t)->type);
		take(s, btf_array(t)->index_type);
		break;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		for (uint32_t i = 0; i < btf_vlen(t); i++)
			take(s, btf_members(t)[i].type);
		break;
	default:
		break;
	}
}

static void choose(struct subset *s, const struct names *names)
{
	for (uint32_t id = 1; id < s->n; id++) {
		const struct btf_type *t = btf__type_by_id(s->kernel, id);
		const char *name = has_name(t) ? btf__name_by_offset(s->kernel, t->name_off) : NULL;

		if (!name)
			continue;
		if (btf_is_typedef(t) && strncmp(name, TRACE, sizeof(TRACE) - 1) == 0)
			take_trace(s, id);
		else if (bsearch(&name, names->at, names->n, sizeof(name), by_name))
			take(s, id);
	}
	while (s->n_queue)
		take_parts(s, btf__type_by_id(s->kernel, s->queue[--s->n_queue]));
}

/* --- writing --- */

static void renumber(const struct subset *s, struct btf_type *t)
{
	switch (btf_kind(t)) {
	case BTF_KIND_PTR:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_CONST:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		t->type = s->to[t->type];
		break;
	case BTF_KIND_ARRAY:
		btf_array(t)->type = s->to[btf_array(t)->type];
		btf_array(t)->index_type = s->to[btf_array(t)->index_type];
		break;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		for (uint32_t i = 0; i < btf_vlen(t); i++)
			btf_members(t)[i].type = s->to[btf_members(t)[i].type];
		break;
	case BTF_KIND_FUNC_PROTO:
		t->type = s->to[t->type];
		for (uint32_t i = 0; i < btf_vlen(t); i++)
			btf_params(t)[i].type = s->to[btf_params(t)[i].type];
		break;
	default:
		break;
	}
}

static struct btf *written(const struct subset *s)
{
	struct btf *to = btf__new_empty();

	for (uint32_t id = 1; to && id < s->n; id++) {
		int at = s->to[id] ? btf__add_type(to, s->kernel, btf__type_by_id(s->kernel, id))
				   : 0;

		if (at < 0) {
			btf__free(to);
			return NULL;
		}
		s->to[id] = (uint32_t)at;
	}
	for (uint32_t i = 1; to && i < btf__type_cnt(to); i++)
		renumber(s, (struct btf_type *)(uintptr_t)btf__type_by_id(to, i));
	return to;
}

struct btf *kernel_subset_of(const struct btf *kernel, const struct btf *programs)
{
	struct subset s = { .kernel = kernel, .n = btf__type_cnt(kernel) };
	_cleanup_(freep) uint32_t *to = s.to = calloc(s.n, sizeof(*s.to));
	_cleanup_(freep) uint32_t *queue = s.queue = calloc(s.n, sizeof(*s.queue));
	struct names names = { 0 };
	struct btf *made = NULL;

	if (to && queue && read_names(programs, &names)) {
		choose(&s, &names);
		made = written(&s);
	}
	free(names.at);
	return made;
}

/* --- as a file --- */

static int as_file(struct btf *btf, struct kernel_subset *ret_subset)
{
	uint32_t size;
	int r;
	const char *raw = btf__raw_data(btf, &size);
	_cleanup_(closep) int fd = raw ? memfd_create("memscope-types", MFD_CLOEXEC) : -1;

	if (fd < 0)
		return raw ? -errno : -ENOMEM;
	r = whole_file_write(fd, raw, size);
	if (r < 0)
		return r;
	*ret_subset = (struct kernel_subset){ .btf = btf, .fd = TAKE_FD(fd) };
	snprintf(ret_subset->path, sizeof(ret_subset->path), "/proc/self/fd/%d", ret_subset->fd);
	return 0;
}

int kernel_subset_kept(uint64_t of, struct kernel_subset *ret_subset)
{
	struct boot_file file;
	struct btf *btf;
	int r = boot_file_open(KEPT_FILE, &file);

	if (r < 0)
		return r;
	if (file.len <= sizeof(of) || memcmp(file.data, &of, sizeof(of)) != 0)
		btf = NULL;
	else
		btf = btf__new((char *)file.data + sizeof(of), (uint32_t)(file.len - sizeof(of)));
	boot_file_close(&file);
	r = btf ? as_file(btf, ret_subset) : -ENOENT;
	if (r < 0)
		btf__free(btf);
	return r;
}

static void keep(uint64_t of, const struct btf *btf)
{
	uint32_t size;
	const void *raw = btf__raw_data(btf, &size);

	if (raw)
		boot_file_write(KEPT_FILE,
				(const struct boot_part[]){ { &of, sizeof(of) }, { raw, size } },
				2);
}

int kernel_subset_make(uint64_t of, const struct btf *kernel, const struct btf *programs,
		       struct kernel_subset *ret_subset)
{
	struct btf *btf = kernel_subset_of(kernel, programs);
	int r = btf ? as_file(btf, ret_subset) : -ENOMEM;

	if (r < 0)
		btf__free(btf);
	else
		keep(of, btf);
	return r;
}

void kernel_subset_close(struct kernel_subset *subset)
{
	btf__free(subset->btf);
	if (*subset->path)
		close(subset->fd);
	*subset = (struct kernel_subset){ 0 };
}
