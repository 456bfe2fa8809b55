#include "cmd/inputs.h"

#include "analyse/alloc_frames.h"
#include "analyse/frame_tree.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/inputs_list.h"
#include "import/sample_times.h"
#include "model/time_merge.h"
#include "model/time_part.h"
#include "run/group.h"
#include "symbolize/symbolize.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* The root of a container's first process. */
static int container_root(struct inputs *in, const char *name, struct err *e)
{
	pid_t pid;
	int r = group_first_process(name, &pid, e);

	if (r < 0)
		return r;
	in->root = ns_roots_add(&in->roots, pid);
	if (in->root < 0)
		return err_set(e, in->root, "container \"%.64s\": its root cannot be opened: %s",
			       name, strerror(-in->root));
	return 0;
}

int inputs_init(struct inputs *in, const struct input_args *args, struct err *e)
{
	*in = (struct inputs){
		.root = -1,
		.d = dict_new(),
		.container = args->container,
		.from_s = args->from_s,
		.to_s = args->to_s,
	};
	if (!in->d)
		return err_set(e, -ENOMEM, "out of memory");
	if (args->to_s > 0 && args->to_s <= args->from_s)
		return err_set(e, -EINVAL, "--to %g is not after --from %g", args->to_s,
			       args->from_s);
	if (args->root && args->container)
		return err_set(e, -EINVAL, "--root and -c: choose one");
	if (selection_wanted(&args->select)) {
		int r = selection_new(&args->select, &in->selection, e);

		if (r < 0)
			return r;
	}
	if (!args->root)
		return 0;
	in->root = ns_roots_add_dir(&in->roots, args->root);
	if (in->root < 0)
		return err_set(e, in->root, "--root: %s: %s", args->root, strerror(-in->root));
	return 0;
}

void inputs_fini(struct inputs *in)
{
	selection_free(in->selection);
	dict_free(in->d);
	ns_roots_fini(&in->roots);
}

/* --- files that were mapped --- */

static int open_path(const struct inputs *in, const char *path)
{
	return ns_roots_open(&in->roots, in->root, path);
}

static int open_image(void *ctx, const char *path)
{
	return open_path(ctx, path);
}

static int open_module(void *ctx, module_id m, struct err *e)
{
	const struct inputs *in = ctx;
	const char *path = dict_str(in->d, dict_module_get(in->d, m)->path);
	int fd = *path == '/' ? open_path(in, path) : -ENOENT;

	return fd < 0 ? err_set(e, fd, "%s: %s", path, strerror(-fd)) : fd;
}

static int open_debug(void *ctx, module_id m, const char *path, bool host)
{
	const struct inputs *in = ctx;

	return host ? ns_roots_open(&in->roots, -1, path) : open_path(in, path);
}

void inputs_files(struct inputs *in, struct symbolize_opts *ret_files)
{
	*ret_files = (struct symbolize_opts){ .open_module = open_module,
					      .open_debug = open_debug,
					      .ctx = in };
}

int inputs_open(void *inputs, pid_t pid, const char *path)
{
	return open_path(inputs, path);
}

bool inputs_in_own_root(void *inputs, module_id m, pid_t pid)
{
	const struct inputs *in = inputs;

	return in->root < 0;
}

/* Names for locations that the files gave by their addresses. */
static int name_locations(struct inputs *in, struct err *e)
{
	struct symbolize_opts opts;
	struct symbolize_stats st;
	int r;

	inputs_files(in, &opts);
	r = symbolize(in->d, &opts, &st);
	if (r < 0)
		return err_set(e, r, "out of memory while naming functions");
	in->locations += st.locations;
	in->unnamed += st.locations - st.named;
	if (st.n_worst)
		snprintf(in->why_unnamed, sizeof(in->why_unnamed), "%.160s: %.80s",
			 dict_str(in->d, dict_module_get(in->d, st.worst[0].module)->path),
			 st.worst[0].reason);
	return 0;
}

/* --- reading --- */

static int read_file(struct inputs *in, const char *path, struct profile **ret_profile,
		     struct err *e)
{
	struct import_opts opts = { .open_image = open_image, .ctx = in };
	struct import_info info = { 0 };
	int r = import_read(in->d, path, &opts, ret_profile, &info, e);

	if (r < 0)
		return r;
	in->n_files++;
	in->skipped_lines += info.skipped_lines;
	in->other_events += info.other_events;
	in->no_mappings += info.no_mappings;
	in->cut += info.cut;
	if (info.damage[0] && !in->n_damaged++)
		snprintf(in->damage, sizeof(in->damage), "%.160s: %s", path, info.damage);
	in->addresses |= info.addresses;
	/* Under another root the inodes of a copy say nothing. */
	if (in->root < 0 && info.changed_files > in->changed_files)
		in->changed_files = info.changed_files;
	return 0;
}

/* What a window held at its end is no part of the next one's. */
static void drop_levels(struct profile *p)
{
	for (uint32_t t = 0; t < profile_n_types(p); t++)
		if (value_type_is_level(profile_type(p, t)->name))
			profile_clear_type(p, t);
}

static int read_list(struct inputs *in, const struct input_list *list, enum merge_types types,
		     struct merge_info *info, struct profile **ret_profile, struct err *e)
{
	_cleanup_(profile_freep) struct profile *sum = NULL;

	for (uint32_t i = 0; i < list->n; i++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		int r = read_file(in, list->paths[i], &p, e);

		if (r == 0 && list->windows && i + 1 < list->n)
			drop_levels(p);
		if (r == 0 && list->n > 1)
			r = profile_merge(&sum, p, list->paths[i], types, info, e);
		else if (r == 0)
			sum = TAKE_PTR(p);
		if (r < 0)
			return r;
	}
	*ret_profile = TAKE_PTR(sum);
	return 0;
}

/*
 * When the samples of several windows came that were added up: each is read once more, for its own times. What came before
 * times were known of any is of a source that has none. 0 or -ENOMEM.
 */
static int read_window_times(struct inputs *in, const struct input_list *list, struct profile *sum,
			     struct err *e)
{
	int64_t begin_ns = profile_get_meta(sum)->time_ns;
	uint32_t first = list->n;

	/* Those before the first with times come last, when it is known which value types have any. */
	for (uint32_t i = 0; i < list->n + first; i++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		const char *path = list->paths[i < list->n ? i : i - list->n];
		struct err ignored = { 0 };
		int r = import_read(in->d, path, NULL, &p, NULL, e);

		if (r < 0)
			return r;
		sample_times_read_beside(p, path, &ignored);
		r = time_merge_add(sum, p, begin_ns);
		if (r == -ENOMEM)
			return err_set(e, r, "out of memory");
		if (r == 0 && first == list->n)
			first = i;
		if (r == -EAGAIN && i + 1 == list->n)
			break; /* none has any */
	}
	return 0;
}

static void name_inputs(struct inputs *in, const struct input_list *list)
{
	const char *path = list->paths[0], *slash = strrchr(path, '/');

	memcpy(in->windows, list->windows_text, sizeof(in->windows));
	in->chosen = list->chosen;
	if (*list->what)
		snprintf(in->name, sizeof(in->name), "%s", list->what);
	else if (list->n > 1)
		snprintf(in->name, sizeof(in->name), "%u profiles", list->n);
	else
		snprintf(in->name, sizeof(in->name), "%s",
			 strcmp(path, "-") == 0 ? ""
			 : slash && slash[1]    ? slash + 1
						: path);
}

/* When samples came, and the part that was asked for. */
static int select_time(struct inputs *in, const struct input_list *list, struct profile **p,
		       struct err *e)
{
	uint64_t to_ns = in->to_s > 0 ? (uint64_t)(in->to_s * 1e9) : UINT64_MAX;
	bool part = in->from_s > 0 || in->to_s > 0;
	struct profile *selected;
	struct err why = { 0 };
	int r = 0;

	if (!part && !in->times &&
	    (!(in->times_if_known || in->times_if_whole) || (list->n > 1 && !list->windows)))
		return 0;
	if (list->n > 1 && !list->windows)
		return err_set(e, -EINVAL,
			       "times are of one profile each, and these are %u: name one",
			       list->n);
	if (list->windows)
		r = read_window_times(in, list, *p, e);
	if (r == 0 && !profile_times(*p)) /* some formats have them themselves */
		r = sample_times_read_beside(*p, list->paths[0], e);
	if (((r == -ENOENT && in->times_if_known) || (r != -ENOMEM && in->times_if_whole)) && !part)
		return 0;
	if (r < 0 || !part)
		return r;
	r = profile_time_part(*p, (uint64_t)(in->from_s * 1e9), to_ns, &selected, &why);
	if (r < 0)
		return err_set(e, r, "%s: %s", list->paths[0], why.msg);
	profile_free(*p);
	*p = selected;
	return 0;
}

/* The stacks that were asked for. */
static int select_stacks(struct inputs *in, struct profile **p, struct err *e)
{
	struct profile *selected;
	struct err why = { 0 };
	int r;

	for (uint32_t i = 0; i < profile_n_types(*p); i++)
		in->whole[i] = profile_positive_total(*p, i);
	if (!in->selection || !profile_n_samples(*p))
		return 0;
	r = selection_apply(in->selection, *p, &selected, &why);
	if (r < 0)
		return err_set(e, r, "%s%s%s", in->name, *in->name ? ": " : "", why.msg);
	profile_free(*p);
	*p = selected;
	return 0;
}

int inputs_read(struct inputs *in, char *const *operands, int n, const char *source,
		enum merge_types types, struct merge_info *info, struct profile **ret_profile,
		struct err *e)
{
	_cleanup_(input_list_fini) struct input_list list = { 0 };
	_cleanup_(profile_freep) struct profile *p = NULL;
	int r = input_list_make(operands, n, source, in->container, &list, e);

	in->in_archive |= list.of_container;
	if (r == 0 && in->container && !in->in_archive && in->root < 0)
		r = container_root(in, in->container, e);
	if (r == 0)
		r = read_list(in, &list, types, info, &p, e);
	if (r == 0 && in->addresses)
		r = name_locations(in, e);
	if (r == 0 && in->addresses && alloc_frames_trim(&p) < 0)
		r = err_set(e, -ENOMEM, "out of memory");
	if (r == 0)
		r = select_time(in, &list, &p, e);
	if (r < 0)
		return r;
	in->same_process += list.same_process;
	if (list.from_ns && (!in->begin_ns || list.from_ns < in->begin_ns))
		in->begin_ns = list.from_ns;
	if (list.to_ns > in->end_ns)
		in->end_ns = list.to_ns;
	name_inputs(in, &list);
	r = select_stacks(in, &p, e);
	if (r < 0)
		return r;
	*ret_profile = TAKE_PTR(p);
	return 0;
}

int inputs_first(char *const *operands, int n)
{
	return n > 1 && input_is_directory(operands[0]) && !input_is_directory(operands[1]) &&
			       input_is_choice(operands[1])
		       ? 2
		       : n > 0;
}

/* --- what was left out --- */

int inputs_left_out(const struct inputs *in)
{
	int status = EXIT_DONE;
	struct err e;

	if (in->same_process > 1) {
		err_set(&e, 0,
			"%u dumps of one process at different times were added up: divide by %u for the "
			"average it held",
			in->same_process, in->same_process);
		command_fail(EXIT_DONE, &e);
	}
	if (in->changed_files) {
		err_set(&e, 0,
			"mapped files that changed since the dump was taken (or are another "
			"machine's: --root): %u; their symbols may be wrong",
			in->changed_files);
		command_fail(EXIT_DONE, &e);
	}
	if (in->skipped_lines) {
		err_set(&e, 0, "lines not understood, skipped: %s",
			unit_count((int64_t)in->skipped_lines).s);
		status = command_fail(EXIT_PARTIAL, &e);
	}
	if (in->other_events) {
		err_set(&e, 0, "samples of other events than the first, skipped: %s",
			unit_count((int64_t)in->other_events).s);
		status = command_fail(EXIT_PARTIAL, &e);
	}
	if (in->cut) {
		err_set(&e, 0,
			"truncated perf script output (no empty line ends the last sample, which is "
			"skipped): %u",
			in->cut);
		status = command_fail(EXIT_PARTIAL, &e);
	}
	if (in->n_damaged) {
		err_set(&e, 0, "%s%s", in->damage,
			in->n_damaged > 1 ? " (and others like it)" : "");
		status = command_fail(EXIT_PARTIAL, &e);
	}
	if (in->no_mappings) {
		err_set(&e, 0,
			"truncated heap dumps (they end before MAPPED_LIBRARIES, so nothing in them can "
			"be symbolized): %u",
			in->no_mappings);
		status = command_fail(EXIT_PARTIAL, &e);
	}
	if (in->locations && 2 * in->unnamed > in->locations) {
		/* Nothing that was asked for is missing: many libraries are stripped. */
		err_set(&e, 0, "locations without a symbol: %s of %s; most in %s",
			unit_count((int64_t)in->unnamed).s, unit_count((int64_t)in->locations).s,
			in->why_unnamed[0] ? in->why_unnamed : "memory that no file is mapped at");
		command_fail(EXIT_DONE, &e);
	}
	return status;
}

/* "pid, comm": the labels of samples, each once; as many as fit. */
static void list_labels(const struct profile *p, char *out, size_t cap)
{
	const struct dict *d = profile_dict(p);
	string_id seen[16];
	uint32_t n_seen = 0, n;
	size_t len = 0;

	*out = 0;
	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		const struct label *labels = dict_labels_get(d, profile_sample(p, i).labels, &n);

		for (uint32_t k = 0; k < n && n_seen < 16 && len < cap; k++) {
			uint32_t at = 0;

			while (at < n_seen && seen[at].ix != labels[k].key.ix)
				at++;
			if (at < n_seen)
				continue;
			seen[n_seen++] = labels[k].key;
			len += (size_t)snprintf(out + len, cap - len, "%s%.40s", at ? ", " : "",
						dict_str(d, labels[k].key));
		}
	}
}

int inputs_find_by(const struct profile *p, const char *by, const char **ret_label, bool *ret_comm,
		   struct err *e)
{
	bool none = by && strcmp(by, "none") == 0, process = !by || strcmp(by, "process") == 0;
	char labels[256];

	if (!none && !process && !frame_tree_has_label(p, by)) {
		list_labels(p, labels, sizeof(labels));
		return err_set(e, -EINVAL, "--by: no sample has the label \"%.64s\"; %s%s", by,
			       *labels ? "their labels are " : "the samples have no labels",
			       labels);
	}
	*ret_label = none || process ? NULL : by;
	*ret_comm = !none;
	return 0;
}

int inputs_find_value(const struct profile *p, const char *name)
{
	char timed[128];
	int type;

	snprintf(timed, sizeof(timed), "%.100s/nanoseconds", name);
	type = strchr(name, '/') ? -1 : profile_find_type(p, timed);
	return type >= 0 ? type : profile_find_type(p, name);
}
