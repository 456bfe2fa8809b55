#include "run/output/sources.h"

#include "base/clock.h"
#include "symbolize/code_read.h"
#include "symbolize/source_read.h"

#include <errno.h>
#include <string.h>

/* An address whose function is to be shown. */
struct want {
	module_id module;
	uint64_t vaddr;
	string_id function;
	int64_t self;
};

struct file_want {
	const char *path;
	module_id module;
	uint32_t pid;
};

/* Of an image whose file was read. */
struct image_facts {
	module_id module;
	bool read;
	uid_t owner;
	int64_t mtime_s;
};

struct reader {
	const struct sources_opts *o;
	struct dict *d;
	struct code_sources *out;
	struct want *wants;
	struct file_want *files;
	struct image_facts *images;
	uint32_t n_wants, cap_wants, n_files, cap_files, n_images;
	uint64_t until_ns; /* when debug info has had its time */
};

#define ADD(list, n, cap)                                                                          \
	({                                                                                         \
		if ((n) == (cap)) {                                                                \
			uint32_t more_ = (cap) ? (cap)*2 : 64;                                     \
			__typeof__(list) grown_ = reallocarray(list, more_, sizeof(*(list)));      \
			if (grown_) {                                                              \
				(list) = grown_;                                                   \
				(cap) = more_;                                                     \
			}                                                                          \
		}                                                                                  \
		(n) < (cap) ? &(list)[(n)++] : NULL;                                               \
	})

/* --- which functions --- */

static int want_file(struct reader *r, const char *path, module_id module, uint32_t pid)
{
	struct file_want *f;

	if (!*path || r->o->no_source)
		return 0;
	for (uint32_t i = 0; i < r->n_files; i++)
		if (strcmp(r->files[i].path, path) == 0)
			return 0;
	if (r->n_files == SOURCES_FILES_MAX)
		return 0;
	f = ADD(r->files, r->n_files, r->cap_files);
	if (!f)
		return -ENOMEM;
	*f = (struct file_want){ path, module, pid };
	return 0;
}

static int want_function(struct reader *r, const struct line_costs *c,
			 const struct function_cost *f)
{
	int rc = 0;

	for (uint32_t i = f->first; i < f->first + f->n && rc == 0; i++)
		rc = want_file(r, dict_str(r->d, c->lines[i].key.file), f->module, c->lines[i].pid);
	for (uint32_t i = 0; i < c->n_places && rc == 0; i++) {
		const struct place_cost *p = &c->places[i];
		const struct location *l = dict_location_get(r->d, p->location);
		struct want *w;

		if (p->module.ix != f->module.ix || !place_cost_is_of(p, r->d, f->function))
			continue;
		w = ADD(r->wants, r->n_wants, r->cap_wants);
		if (!w)
			return -ENOMEM;
		*w = (struct want){ p->module, p->vaddr, l->lines[l->n_lines - 1].function,
				    p->self };
	}
	return rc;
}

/* Functions of a profile, the most self cost first. */
static int want_functions(struct reader *r, const struct line_costs *c)
{
	uint32_t n = 0;
	int rc = 0;

	for (uint32_t i = 0; i < c->n_functions && rc == 0; i++) {
		const struct function_cost *f = &c->functions[i];

		if (r->o->function && strcmp(dict_str(r->d, f->function), r->o->function) != 0)
			continue;
		if (!r->o->function && f->self <= 0)
			break;
		if (n++ >= r->o->functions)
			r->out->left_out++;
		else
			rc = want_function(r, c, f);
	}
	return rc;
}

/* --- code --- */

static int by_address(const void *a, const void *b)
{
	const struct want *x = a, *y = b;

	if (x->module.ix != y->module.ix)
		return x->module.ix < y->module.ix ? -1 : 1;
	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static int add_problem(struct reader *r, module_id m, const char *why)
{
	struct code_problem *grown =
		reallocarray(r->out->problems, r->out->n_problems + 1ul, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	r->out->problems = grown;
	grown[r->out->n_problems++] = (struct code_problem){ m, why };
	return 0;
}

static int take_codes(struct reader *r, struct code_answer *answer)
{
	struct code_text *grown =
		reallocarray(r->out->codes, r->out->n_codes + answer->n + 1ul, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	r->out->codes = grown;
	memcpy(grown + r->out->n_codes, answer->functions, answer->n * sizeof(*grown));
	r->out->n_codes += answer->n;
	answer->n = 0;
	return 0;
}

static int read_image(struct reader *r, const struct want *wants, uint32_t n)
{
	_cleanup_(freep) struct code_wanted *wanted = calloc(n, sizeof(*wanted));
	_cleanup_(freep) struct code_answer *answer = calloc(1, sizeof(*answer));
	int64_t left_ms = ((int64_t)r->until_ns - (int64_t)now_ns()) / 1000000;
	int rc;

	if (!wanted || !answer)
		return -ENOMEM;
	/* Debug info has had its time: who took all of it may not have that of others, too. */
	if (left_ms <= -r->o->max_ms)
		return add_problem(r, wants->module, "no time was left to read its code");
	for (uint32_t i = 0; i < n; i++)
		wanted[i] =
			(struct code_wanted){ wants[i].vaddr, dict_str(r->d, wants[i].function) };
	rc = code_read(r->d, r->o->files, wants->module, wanted, n, r->o->syntax,
		       left_ms > 0 ? left_ms : 1, answer);
	if (rc == 0 && !answer->by_build_id && r->o->taken_s && answer->mtime_s > r->o->taken_s)
		rc = add_problem(
			r, wants->module,
			"it has no build ID, and its file was changed after the profile was taken");
	else if (rc == 0 && answer->problem)
		rc = add_problem(r, wants->module, answer->problem);
	if (rc == 0 &&
	    (answer->by_build_id || !r->o->taken_s || answer->mtime_s <= r->o->taken_s)) {
		r->images[r->n_images++] =
			(struct image_facts){ wants->module, answer->mtime_s != 0, answer->owner,
					      answer->mtime_s };
		rc = take_codes(r, answer);
	}
	code_answer_fini(answer);
	return rc;
}

static int read_codes(struct reader *r)
{
	int rc = 0;

	r->images = calloc(r->n_wants + 1ul, sizeof(*r->images));
	if (!r->images)
		return -ENOMEM;
	if (r->n_wants)
		qsort(r->wants, r->n_wants, sizeof(*r->wants), by_address);
	for (uint32_t from = 0, to; from < r->n_wants && rc == 0; from = to) {
		for (to = from;
		     to < r->n_wants && r->wants[to].module.ix == r->wants[from].module.ix; to++)
			;
		rc = read_image(r, r->wants + from, to - from);
	}
	for (uint32_t i = 0; i < r->out->n_codes && rc == 0; i++) {
		const struct code_text *c = &r->out->codes[i];

		for (uint32_t k = 0; k < c->n && rc == 0; k++) {
			const struct code_instruction *in = &c->instructions[k];

			if (in->n_origins && in->origins->file &&
			    (!k || in->origins != c->instructions[k - 1].origins))
				rc = want_file(r, in->origins->file, c->module, 0);
		}
	}
	return rc;
}

/* --- files --- */

struct opening {
	const struct reader *r;
	uint32_t pid;
};

static int open_source(void *ctx, module_id m, const char *path, bool host)
{
	const struct opening *o = ctx;
	const struct sources_opts *opts = o->r->o;
	enum module_kind kind = dict_module_get(o->r->d, m)->kind;

	if (host && opts->in_own_root &&
	    !opts->in_own_root(opts->files->ctx, m, kind == MODULE_ELF ? 0 : (pid_t)o->pid))
		return -ENOENT;
	if (!host && kind != MODULE_ELF)
		return opts->open_in && o->pid
			       ? opts->open_in(opts->files->ctx, (pid_t)o->pid, path)
			       : -ENOENT;
	return opts->files->open_debug ? opts->files->open_debug(opts->files->ctx, m, path, host)
				       : -ENOENT;
}

static uid_t reader_of(const struct reader *r, const struct file_want *f, int64_t *ret_built_s)
{
	*ret_built_s = r->o->taken_s;
	for (uint32_t i = 0; i < r->n_images; i++)
		if (r->images[i].module.ix == f->module.ix && r->images[i].read) {
			*ret_built_s = r->images[i].mtime_s;
			return r->o->not_as_root && r->images[i].owner == 0 ? SOURCE_READER_NOBODY
									    : r->images[i].owner;
		}
	return f->pid && r->o->user_of ? r->o->user_of(r->o->files->ctx, (pid_t)f->pid)
				       : r->o->reader;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct source_text *)a)->path, ((const struct source_text *)b)->path);
}

static int read_files(struct reader *r)
{
	int rc = 0;

	r->out->texts = calloc(r->n_files + 1ul, sizeof(*r->out->texts));
	if (!r->out->texts)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->n_files && rc == 0; i++) {
		struct opening opening = { r, r->files[i].pid };
		int64_t built_s;
		uid_t reader = reader_of(r, &r->files[i], &built_s);

		rc = source_read(open_source, &opening, r->files[i].module, r->files[i].path,
				 reader, built_s, &r->out->texts[r->out->n_texts++]);
	}
	if (rc == 0 && r->out->n_texts)
		qsort(r->out->texts, r->out->n_texts, sizeof(*r->out->texts), by_path);
	return rc;
}

int sources_read(const struct sources_profile *profiles, uint32_t n,
		 const struct sources_opts *opts, struct code_sources *ret)
{
	struct reader r = { .o = opts,
			    .out = ret,
			    .d = n ? profile_dict(profiles->p) : NULL,
			    .until_ns = now_ns() + (uint64_t)opts->max_ms * 1000000 };
	int rc = 0;

	*ret = (struct code_sources){ 0 };
	for (uint32_t i = 0; i < n && rc == 0; i++)
		rc = want_functions(&r, profiles[i].costs);
	if (rc == 0)
		rc = read_codes(&r);
	if (rc == 0)
		rc = read_files(&r);
	free(r.wants);
	free(r.files);
	free(r.images);
	return rc;
}
