#include "cmd/named_outputs.h"

#include "base/name_template.h"
#include "cmd/inputs_list.h"
#include "collect/session/sources.h"
#include "model/about.h"
#include "run/named_kinds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { OUTPUTS_MAX = 256 };

struct outputs {
	struct named {
		struct profile *p;
		char *path;
		char of[64]; /* source, or file: for errors */
	} all[OUTPUTS_MAX];
	uint32_t n;
};

static void outputs_fini(struct outputs *o)
{
	for (uint32_t i = 0; i < o->n; i++) {
		profile_free(o->all[i].p);
		free(o->all[i].path);
	}
}

/* The value of a label that all samples have alike, those without it left out; "": there is none, or several. */
static void only_label(const struct profile *p, const char *key, char *out, size_t cap)
{
	const struct dict *d = profile_dict(p);
	char one[128];

	*out = '\0';
	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		const struct label *l = dict_label_find(d, profile_sample(p, i).labels, key);

		if (!l)
			continue;
		if (l->str.ix)
			snprintf(one, sizeof(one), "%s", dict_str(d, l->str));
		else
			snprintf(one, sizeof(one), "%lld", (long long)l->num);
		if (*out && strcmp(out, one) != 0) {
			*out = '\0';
			return;
		}
		snprintf(out, cap, "%s", one);
	}
}

/* "redis-server (pid 5099)", where that is all that was profiled: also with children, whose samples have other labels. */
static bool only_target(const struct profile *p, char *comm, size_t comm_cap, char *pid,
			size_t pid_cap)
{
	const char *target = profile_about(p, ABOUT_TARGET, 0), *at;

	if (!target || profile_about(p, ABOUT_TARGET, 1))
		return false;
	at = strstr(target, " (pid ");
	if (!at)
		return false;
	snprintf(comm, comm_cap, "%.*s", (int)(at - target), target);
	at += strlen(" (pid ");
	snprintf(pid, pid_cap, "%.*s", (int)strspn(at, "0123456789"), at);
	return true;
}

static int make_name(const char *template, struct named *to, struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf path = { 0 };
	char comm[128], pid[128], container[128], when[32] = "";
	time_t sec = (time_t)(profile_get_meta(to->p)->time_ns / 1000000000);
	struct tm tm;
	int r;

	if (!only_target(to->p, comm, sizeof(comm), pid, sizeof(pid))) {
		only_label(to->p, "comm", comm, sizeof(comm));
		only_label(to->p, "pid", pid, sizeof(pid));
	}
	only_label(to->p, "container", container, sizeof(container));
	if (sec > 0 && localtime_r(&sec, &tm))
		strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm);
	r = name_template_fill(template,
			       (const struct name_field[]){ { "source", to->of },
							    { "pid", pid },
							    { "comm", comm },
							    { "container", container },
							    { "time", when },
							    { 0 } },
			       &path, e);
	to->path = r == 0 ? strbuf_take(&path) : NULL;
	return r;
}

static int add_output(struct outputs *o, const char *of, const char *template, struct profile *p,
		      struct err *e)
{
	struct named *to = &o->all[o->n++];
	int r;

	to->p = p;
	snprintf(to->of, sizeof(to->of), "%s", of);
	r = make_name(template, to, e);
	for (uint32_t i = 0; r == 0 && i + 1 < o->n; i++)
		if (strcmp(o->all[i].path, to->path) == 0)
			return err_set(
				e, -EINVAL,
				"--names: %s and %s would both be %.200s: a field that tells them apart is missing",
				o->all[i].of, to->of, to->path);
	return r;
}

/* "oncpu" of dir/oncpu.pb.gz */
static void name_of(const char *path, char *out, size_t cap)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	snprintf(out, cap, "%.*s", (int)strcspn(name, "."), name);
}

static int read_one(struct inputs *in, char *const *operands, int n, const char *source,
		    const char *of, const char *template, struct outputs *o, struct err *e)
{
	struct profile *p = NULL;
	int r;

	if (o->n == OUTPUTS_MAX)
		return err_set(e, -EINVAL, "--names: of %d profiles at most", OUTPUTS_MAX);
	r = inputs_read(in, operands, n, source, MERGE_COMMON, NULL, &p, e);
	if (r < 0)
		return r;
	if (!profile_n_samples(p)) {
		profile_free(p);
		return err_set(e, -ENODATA, "%s: the profile is empty", operands[0]);
	}
	return add_output(o, of, template, p, e);
}

static int read_all(struct inputs *in, char *const *operands, int n, const char *source,
		    const char *template, struct outputs *o, struct err *e)
{
	bool run = input_is_directory(operands[0]);
	int all, r;

	if (run)
		named_kinds_of(operands[0]);
	all = run ? profile_kinds() : n;
	for (int i = 0; i < all; i++) {
		struct err one = { 0 };
		char of[64];

		if (run && source && strcmp(source, profile_rows[i].name) != 0)
			continue;
		if (!run)
			name_of(operands[i], of, sizeof(of));
		r = read_one(in, run ? operands : operands + i, run ? n : 1,
			     run ? profile_rows[i].name : NULL, run ? profile_rows[i].name : of,
			     template, o, &one);
		if (r < 0 && (!run || (r != -ENOENT && r != -ENODATA && r != -ERANGE))) {
			*e = one;
			return r;
		}
	}
	return o->n ? 0
		    : err_set(e, -ENODATA, "%s: there is no profile in it that has anything",
			      operands[0]);
}

int named_outputs_write(struct inputs *in, char *const *operands, int n, const char *source,
			const char *template,
			int (*write)(void *ctx, struct profile *p, const char *path, struct err *e),
			void *ctx, struct err *e)
{
	struct outputs *o = calloc(1, sizeof(*o));
	int r = o ? read_all(in, operands, n, source, template, o, e)
		  : err_set(e, -ENOMEM, "out of memory");

	for (uint32_t i = 0; r == 0 && i < o->n; i++)
		r = write(ctx, o->all[i].p, o->all[i].path, e);
	if (o)
		outputs_fini(o);
	free(o);
	return r;
}
