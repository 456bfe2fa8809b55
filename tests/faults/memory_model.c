/* model/, analyse/ and render/: profiles built, added up, written, read and drawn, without memory. */
#include "no_memory.h"

#include "analyse/frame_tree.h"
#include "model/merge.h"
#include "model/pprof.h"
#include "model/profile_checkpoint.h"
#include "model/sample_times.h"
#include "render/render.h"

static const struct value_type types[] = { { "samples", "count" }, { "cpu", "nanoseconds" } },
			       of_blocks[] = { { "alloc_objects", "count" },
					       { "alloc_space", "bytes" } };

enum { STACKS = 90, DEPTH = 12, WORDS = 40 };

static int no_memory_for(struct err *e, const char *what)
{
	return err_set(e, -ENOMEM, "out of memory for %s", what);
}

/* One of STACKS stacks, with names, files and inlined calls. */
static stack_id make_stack(struct dict *d, module_id module, uint32_t nth)
{
	stack_id s = { 0 };
	char name[32];

	for (uint32_t i = 0; i < DEPTH; i++) {
		uint32_t word = i < 3 ? i : (nth * (i + 1)) % WORDS;
		location_id at = dict_location(d, module, 0x1000 + 16 * word);
		struct line lines[2] = { 0 };

		snprintf(name, sizeof(name), "function_%u", word);
		lines[1].function = dict_string(d, name);
		lines[1].file = dict_string(d, "/src/a.c");
		lines[1].line = word;
		lines[0].function = dict_string(d, "inlined");
		dict_location_name(d, at, word % 5 ? lines + 1 : lines, word % 5 ? 1 : 2);
		s = dict_stack_push(d, s, at);
	}
	return s;
}

/* Sample `nth` with its process and thread. 0 or -ENOMEM. */
static int add_sample(struct dict *d, struct profile *p, module_id module, uint32_t nth)
{
	struct label labels[] = { { .key = dict_string(d, "comm"),
				    .str = dict_string(d, nth % 2 ? "web" : "db") },
				  { .key = dict_string(d, "tid"), .num = 100 + nth % 7 } };
	const int64_t values[] = { 1, 1000 + nth };
	const struct value_error error = { .samples = 1, .unseen = 3, .v = nth, .vc = 2 };
	stack_id stack = make_stack(d, module, nth % STACKS);
	labels_id set = dict_labels(d, labels, 2);
	int r = profile_add(p, stack, set, values);

	return r == 0 && nth % 10 == 0 ? profile_add_error(p, stack, set, 1, &error) : r;
}

static int make_profile(struct dict *d, const struct value_type *of, uint32_t from, uint32_t to,
			struct profile **ret_profile, struct err *e)
{
	static const char *const comments[] = { "made by a test", NULL };
	_cleanup_(profile_freep) struct profile *p = profile_new(d, of, 2);
	const struct profile_meta meta = { .time_ns = 1700000000000000000,
					   .duration_ns = 5000000000,
					   .period = 10101010,
					   .period_type = of[1],
					   .default_type = 1,
					   .comments = comments };
	struct module m = { .kind = MODULE_ELF,
			    .path = dict_string(d, "/usr/bin/program"),
			    .start = 0x1000,
			    .limit = 0x9000 };
	module_id module = dict_module(d, &m);

	if (!p || profile_set_meta(p, &meta) < 0)
		return no_memory_for(e, "a profile");
	for (uint32_t i = from; i < to; i++)
		if (add_sample(d, p, module, i) < 0)
			return no_memory_for(e, "a sample");
	if (dict_oom(d))
		return no_memory_for(e, "names");
	*ret_profile = TAKE_PTR(p);
	return 0;
}

static uint64_t digest_frames(const struct dict *d, stack_id stack)
{
	uint64_t digest = 0;

	for (; dict_stack_depth(d, stack); stack = dict_stack_parent(d, stack)) {
		const struct location *l = dict_location_get(d, dict_stack_leaf(d, stack));

		digest = digest_number(digest, l->vaddr);
		for (uint32_t i = 0; i < l->n_lines; i++)
			digest = digest_number(
				digest_text(digest, dict_str(d, l->lines[i].function)),
				l->lines[i].line);
	}
	return digest;
}

static uint64_t digest_profile(const struct profile *p)
{
	const struct dict *d = profile_dict(p);
	uint64_t digest = digest_number(0, profile_n_samples(p));

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);
		const struct label *tid = dict_label_find(d, s.labels, "tid");
		struct value_error error;

		digest = digest_number(digest, digest_frames(d, s.stack));
		digest = digest_add(digest, s.values, profile_n_types(p) * sizeof(*s.values));
		digest = digest_number(digest, tid ? (uint64_t)tid->num : 0);
		digest =
			digest_number(digest, profile_error(&s, 1, &error) ? (uint64_t)error.v : 0);
	}
	return digest;
}

static int profiles_that_are_added_up(const void *arg, uint64_t *ret_digest, struct err *e)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	struct profile *all[2] = { NULL }, *sum = NULL;
	int r = d ? 0 : no_memory_for(e, "a dict");

	(void)arg;
	for (uint32_t i = 0; r == 0 && i < 2; i++)
		r = make_profile(d, types, 60 * i, 60 * i + 90, &all[i], e);
	for (uint32_t i = 0; r == 0 && i < 2; i++)
		r = profile_merge(&sum, all[i], "a profile", MERGE_SAME, NULL, e);
	if (r == 0)
		*ret_digest = digest_profile(sum);
	profile_free(sum);
	profile_free(all[0]);
	profile_free(all[1]);
	return r;
}

static int windows_of_a_profile(const void *arg, uint64_t *ret_digest, struct err *e)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct profile_checkpoint checkpoint = { 0 };
	uint64_t digest = 0;
	int r = d ? make_profile(d, types, 0, 70, &p, e) : no_memory_for(e, "a dict");

	(void)arg;
	for (uint32_t i = 0; r == 0 && i < 3; i++) {
		_cleanup_(profile_freep) struct profile *gained = NULL;

		if (profile_since(p, &checkpoint, &gained) < 0)
			r = no_memory_for(e, "a window");
		else
			digest = digest_number(digest, digest_profile(gained));
		for (uint32_t j = 0; r == 0 && j < 40; j++)
			if (add_sample(d, p, (module_id){ 0 }, 50 + i + j) < 0)
				r = no_memory_for(e, "a sample");
	}
	if (r == 0 && dict_oom(d))
		r = no_memory_for(e, "names");
	profile_checkpoint_fini(&checkpoint);
	*ret_digest = digest;
	return r;
}

/* Written, packed and read again. */
static int pprof_there_and_back(const void *arg, uint64_t *ret_digest, struct err *e)
{
	_cleanup_(dict_freep) struct dict *d = dict_new(), *other = dict_new();
	_cleanup_(profile_freep) struct profile *p = NULL, *read = NULL;
	_cleanup_(sink_closep) struct sink *out = NULL;
	const char *bytes;
	size_t len;
	int r = d && other ? make_profile(d, types, 0, 120, &p, e) : no_memory_for(e, "a dict");

	(void)arg;
	if (r == 0)
		r = sink_open_memory(&out, e);
	if (r == 0)
		r = sink_gzip(out, e);
	if (r == 0)
		r = pprof_write(p, (module_id){ 0 }, out, e);
	if (r == 0)
		r = sink_commit(out, e);
	if (r < 0)
		return r;
	bytes = sink_memory(out, &len);
	r = pprof_read(other, bytes, len, "what was written", &read, e);
	if (r == 0)
		*ret_digest = digest_profile(read);
	return r;
}

struct drawn {
	const struct format *format;
	const struct value_type *of; /* the profile's value types */
};

/* A profile with times that a memory sink has room for, in the format. */
static int a_format(const void *arg, uint64_t *ret_digest, struct err *e)
{
	const struct drawn *drawn = arg;
	const struct render_opts opts = { .value_type = -1 };
	_cleanup_(dict_freep) struct dict *d = NULL;
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_(sink_closep) struct sink *out = NULL;
	struct sample_times *times;
	bool armed = memory_pause();
	int r;

	/* That it can be built is another scenario. */
	d = dict_new();
	r = make_profile(d, drawn->of, 0, 50, &p, e);
	times = sample_times_new((const uint32_t[]){ 1 }, 1, SAMPLE_TIMES_BIN_NS, 1000);
	for (uint32_t i = 0; r == 0 && i < profile_n_samples(p); i++)
		sample_times_add(times, i, i * 100000000ULL, &profile_sample(p, i).values[1]);
	profile_set_times(p, times);
	memory_resume(armed);
	r = sink_open_memory(&out, e);
	if (r == 0)
		r = drawn->format->write(p, &opts, out, e);
	if (r == 0)
		r = sink_commit(out, e);
	if (r == 0) {
		size_t len;
		const char *bytes = sink_memory(out, &len);

		*ret_digest = digest_add(0, bytes, len);
	}
	return r;
}

static uint64_t digest_tree(const struct frame_tree *t)
{
	uint64_t digest = digest_number(0, t->n_nodes);

	for (uint32_t i = 0; i < t->n_nodes; i++) {
		digest = digest_text(digest, t->nodes[i].name);
		digest = digest_number(digest, (uint64_t)t->nodes[i].total);
	}
	return digest;
}

static int trees_of_frames(const void *arg, uint64_t *ret_digest, struct err *e)
{
	const struct frame_tree_opts *opts = arg;
	_cleanup_(dict_freep) struct dict *d = NULL;
	struct profile *p = NULL;
	struct frame_tree *t = NULL, *reversed = NULL;
	bool armed = memory_pause();
	int r;

	d = dict_new();
	r = make_profile(d, types, 0, 80, &p, e);
	memory_resume(armed);
	if (r == 0)
		r = frame_tree_build(p, opts, &t);
	if (r == 0 && !opts->leaf_first)
		r = frame_tree_reversed(t, d, &reversed);
	if (r == 0)
		*ret_digest = digest_number(digest_tree(t), reversed ? digest_tree(reversed) : 0);
	frame_tree_free(reversed);
	frame_tree_free(t);
	profile_free(p);
	return r;
}

static const struct frame_tree_opts whole = { .type = 1, .root_comm = true },
				    by_leaf = { .type = 1, .leaf_first = true },
				    by_thread = { .type = 0, .by = "tid", .root_comm = true },
				    some = { .type = 1, .least = 5000 };
static const struct scenario tables[] = {
	{ "profiles that are added up", profiles_that_are_added_up },
	{ "windows of a profile", windows_of_a_profile },
	{ "pprof, written and read", pprof_there_and_back },
	{ "a tree of frames", trees_of_frames, &whole, .silent = true },
	{ "a tree of frames from the leaf", trees_of_frames, &by_leaf, .silent = true },
	{ "a tree of frames of threads", trees_of_frames, &by_thread, .silent = true },
	{ "a tree of frames without small ones", trees_of_frames, &some, .silent = true },
};

int main(int argc, char **argv)
{
	enum { TABLES = sizeof(tables) / sizeof(tables[0]), FORMATS_MAX = 32 };
	static struct scenario all[TABLES + FORMATS_MAX + 1];
	static struct drawn drawn[FORMATS_MAX];
	static char names[FORMATS_MAX][32];
	uint32_t n = 0;

	memcpy(all, tables, sizeof(tables));
	for (const struct format *f = formats; f->name && n < FORMATS_MAX; f++) {
		struct scenario *s = &all[TABLES + n];
		struct drawn *d = &drawn[n];
		struct err e = { 0 };
		uint64_t digest;

		*d = (struct drawn){ f, types };
		if (a_format(d, &digest, &e) == -EINVAL) /* it is about memory alone */
			d->of = of_blocks;
		if (a_format(d, &digest, &e) == -EINVAL) /* or about what became of it */
			continue;
		*s = (struct scenario){ names[n], a_format, d, .silent = true };
		snprintf(names[n++], sizeof(names[0]), "format %.20s", f->name);
	}
	return no_memory_main(all, argc, argv);
}
