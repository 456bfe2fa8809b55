#include "analyse/frame.h"

#include "base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

const char *frame_kind_name(enum frame_kind kind)
{
	static const char *const names[N_FRAME_KINDS] = {
		[FRAME_USER] = "user",       [FRAME_KERNEL] = "kernel",
		[FRAME_INLINED] = "inlined", [FRAME_PROCESS] = "process",
		[FRAME_UNKNOWN] = "unknown", [FRAME_LANG] = "interpreted",
	};

	return names[kind];
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static const char *module_name(const struct dict *d, const struct module *m)
{
	if (!m || m->kind == MODULE_NONE)
		return "";
	return m->kind == MODULE_ANON ? "[anon]" : base_name(dict_str(d, m->path));
}

static const struct module *module_of(const struct dict *d, const struct location *l)
{
	return l->module.ix ? dict_module_get(d, l->module) : NULL;
}

uint32_t frame_count(const struct dict *d, location_id loc)
{
	const struct location *l = dict_location_get(d, loc);

	return l->n_lines ? l->n_lines : 1;
}

static string_id made_up_name(struct dict *d, const struct module *m, uint64_t vaddr)
{
	char name[512];

	if (!m || m->kind == MODULE_NONE)
		return dict_string(d, "[unknown]");
	if (m->kind == MODULE_ANON)
		return dict_string(d, "[anon]");
	snprintf(name, sizeof(name), "%.480s+0x%" PRIx64, module_name(d, m), vaddr);
	return dict_string(d, name);
}

/* symbolize/ gives every location a line; these say that there was nothing to say. */
static bool is_no_name(const char *name)
{
	return strcmp(name, "[unknown]") == 0 || strcmp(name, "[anon]") == 0;
}

struct frame frame_get(struct dict *d, location_id loc, uint32_t i)
{
	const struct location *l = dict_location_get(d, loc);
	const struct module *m = module_of(d, l);
	struct frame f = {
		.module = module_name(d, m), .kind = FRAME_USER, .location = loc, .line = i
	};

	if (i < l->n_lines)
		f.name = l->lines[i].function;
	if (!f.name.ix)
		f.name = made_up_name(d, m, l->vaddr);

	if (m && m->kind == MODULE_LANG) {
		f.kind = FRAME_LANG;
		if (i < l->n_lines)
			f.file = l->lines[i].file;
	} else if (i + 1 < l->n_lines)
		f.kind = FRAME_INLINED;
	else if (m && m->kind == MODULE_KERNEL)
		f.kind = FRAME_KERNEL;
	else if ((!m || m->kind == MODULE_NONE || m->kind == MODULE_ANON) &&
		 is_no_name(dict_str(d, f.name)))
		f.kind = FRAME_UNKNOWN;
	return f;
}

int frame_path_set(struct frame_path *path, struct dict *d, stack_id stack)
{
	uint32_t n = 0;

	for (stack_id s = stack; s.ix; s = dict_stack_parent(d, s))
		n += frame_count(d, dict_stack_leaf(d, s));
	if (n > path->cap) {
		struct frame *grown = realloc(path->frames, n * 2ul * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		path->frames = grown;
		path->cap = n * 2;
	}
	path->n = n;
	for (stack_id s = stack; s.ix; s = dict_stack_parent(d, s)) {
		location_id leaf = dict_stack_leaf(d, s);
		uint32_t here = frame_count(d, leaf);

		for (uint32_t i = 0; i < here; i++)
			path->frames[--n] = frame_get(d, leaf, i);
	}
	return 0;
}

void frame_path_fini(struct frame_path *path)
{
	free(path->frames);
	*path = (struct frame_path){ 0 };
}

bool frame_in_kernel(const struct frame *f)
{
	return f->kind == FRAME_KERNEL || strcmp(f->module, "[kernel]") == 0;
}

bool frame_is_user(const struct frame *f)
{
	return f->kind != FRAME_PROCESS && !frame_in_kernel(f);
}

int frame_path_sum(const struct profile *p, uint32_t type,
		   bool (*is)(const struct dict *d, const struct frame_path *path),
		   int64_t *ret_value)
{
	_cleanup_(frame_path_fini) struct frame_path path = { 0 };
	int64_t value = 0;

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);

		if (s.values[type] <= 0)
			continue;
		if (frame_path_set(&path, profile_dict(p), s.stack) < 0)
			return -ENOMEM;
		if (is(profile_dict(p), &path) &&
		    __builtin_add_overflow(value, s.values[type], &value))
			value = INT64_MAX;
	}
	*ret_value = value;
	return 0;
}
