/*
 * What a run leaves: files, and the summary on the terminal and beside them.
 */
#include "run/output/files.h"
#include "base/archive.h"
#include "base/terminal.h"
#include "base/units.h"
#include "model/about.h"
#include "render/render.h"
#include "render/summary/summary_json.h"
#include "render/summary/summary_text.h"
#include "run/component.h"
#include "run/folders.h"
#include "run/output/facts.h"
#include "run/output/page.h"
#include "run/pipeline.h"
#include "run/stale.h"
#include "run/window_room.h"

#include <errno.h>
#include <string.h>

struct run_output {
	struct run *r;
	struct facts facts;
	const char *files[256];
	struct strbuf missing; /* names of files that could not be written */
	char **beside;         /* of files that are not named one by one: in folders, dated ones */
	uint32_t n_beside;
	char suffix[40]; /* of files of the run as a whole: "-STAMP", or "" */
};

int output_write(const struct run *r, const struct profile *p, const struct format *f,
		 const char *path, struct err *e)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	struct render_opts opts = { .value_type = -1, .no_comm = r->cfg->no_comm };
	int rc;

	if (r->cfg->by && frame_tree_has_label(p, r->cfg->by))
		opts.by = r->cfg->by;
	rc = sink_open_new(path, &sink, e);
	if (rc == 0 && f->gzip)
		rc = sink_gzip(sink, e);
	if (rc == 0)
		rc = f->write(p, &opts, sink, e);
	return rc == 0 ? sink_commit(sink, e) : rc;
}

static void file_written(struct run_output *o, const char *name, const char *ext)
{
	char *full;

	if (o->facts.s.n_files < sizeof(o->files) / sizeof(*o->files) &&
	    asprintf(&full, "%s%s", name, ext) >= 0)
		o->files[o->facts.s.n_files++] = full;
}

static void file_missing(struct run_output *o, const char *name, const char *ext)
{
	strbuf_printf(&o->missing, "%s%s%s", o->missing.len ? ", " : "", name, ext);
}

/* The first failure has its sentence; those after it are named. */
static void tell_missing(struct run_output *o)
{
	if (o->missing.len && !strbuf_oom(&o->missing))
		run_note(o->r, true, "not written: %s", o->missing.s);
	strbuf_reset(&o->missing);
}

int output_set_meta(const struct run *r, struct profile *p, struct profile_meta *meta,
		    const char *comment)
{
	const char *const *about = r->cfg->about;
	_cleanup_(freep) const char **comments = NULL;
	char end[32];
	size_t n = 0, i = 0;

	while (about && about[n])
		n++;
	comments = calloc(n + 3, sizeof(*comments));
	if (!comments)
		return -ENOMEM;
	snprintf(end, sizeof(end), "%starget", about_prefix(ABOUT_END));
	if (comment && *comment)
		comments[i++] = comment;
	for (size_t k = 0; k < n; k++)
		comments[i++] = about[k];
	/* Windows end before the run does. */
	if (r->end.why == RUN_END_TARGET && r->cfg->every_s == 0)
		comments[i++] = end;
	meta->comments = comments;
	return profile_set_meta(p, meta);
}

struct profile_meta output_profile_meta(const struct run *r, const struct profile_row *row)
{
	return (struct profile_meta){
		.period_type = row->period,
		.period = row->source == SOURCE_ONCPU ? 1000000000 / r->cfg->hz
			  : row->source == SOURCE_GROWTH
				  ? GROWTH_SAMPLE_PAGES * sysconf(_SC_PAGESIZE)
				  : 1,
		.default_type = row->default_type,
	};
}

static struct unit_text percent_of(int64_t part, int64_t whole)
{
	struct unit_text t;

	snprintf(t.s, sizeof(t.s), "%.3g", whole > 0 ? (double)part * 100 / (double)whole : 0);
	return t;
}

/* How the values of this profile were estimated; "" where they were not. */
static void estimate_comment(const struct run_output *o, const struct profile_row *row, char *buf,
			     size_t size)
{
	const struct summary_alloc *a = &o->facts.s.alloc;
	int n = snprintf(buf, size, "%s", about_prefix(ABOUT_ESTIMATE));

	if (row->source == SOURCE_ALLOC && o->r->alloc.tier == ALLOC_TIER_SAMPLED)
		snprintf(buf + n, size - (size_t)n,
			 "%s samples of allocations, one per %s on average, by %s",
			 unit_count((int64_t)a->bytes_interval.samples).s,
			 unit_bytes(a->rate > 0 ? a->rate : 1).s, a->sampler);
	else if (row->source == SOURCE_ALLOC && o->r->alloc.tier == ALLOC_TIER_BURSTS)
		snprintf(buf + n, size - (size_t)n,
			 "%severy call in %u bursts, %s %% of %s, %s calls seen",
			 a->bursts.from_ns > a->covered_from_ns ? "every call, then " : "",
			 a->bursts.n, percent_of(a->bursts.covered_ns, a->bursts.span_ns).s,
			 unit_ns(a->bursts.span_ns).s, unit_count((int64_t)a->bursts.seen_calls).s);
	else if (row == &profile_rows[PROFILE_GOROUTINE])
		snprintf(buf + n, size - (size_t)n,
			 "goroutines: those of the last look; stops and time: %s looks, of one "
			 "goroutine in %u at the least",
			 unit_count((int64_t)o->facts.s.goroutines.looks).s,
			 o->facts.s.goroutines.most_part);
	else if (row->source == SOURCE_OFFCPU && o->facts.s.offcpu.sampled)
		snprintf(buf + n, size - (size_t)n,
			 "stacks of %s of %s waits of threads that switch often (times of threads "
			 "are measured)",
			 unit_count((int64_t)o->facts.s.offcpu.stacks_sampled).s,
			 unit_count((int64_t)o->facts.s.offcpu.wait_sampler_switches).s);
	else
		*buf = '\0';
	if (row == &profile_rows[PROFILE_HEAP] && a->live.known && strlen(buf) < size)
		snprintf(buf + strlen(buf), size - strlen(buf),
			 "; in use: from %s blocks whose addresses were in use at the end",
			 unit_count((int64_t)a->live_interval.samples).s);
}

static int set_meta(const struct run_output *o, struct profile *p, const struct profile_row *row)
{
	bool sampled = row->source == SOURCE_ALLOC && o->r->alloc.tier == ALLOC_TIER_SAMPLED;
	char estimate[700] = "";
	struct profile_meta meta = output_profile_meta(o->r, row);

	meta.time_ns = o->r->clock.start_wall_ns;
	meta.duration_ns = o->facts.s.duration_ns;
	if (sampled)
		meta.period = o->facts.s.alloc.rate > 0 ? o->facts.s.alloc.rate : 1;
	estimate_comment(o, row, estimate, sizeof(estimate));
	return output_set_meta(o->r, p, &meta, estimate);
}

/* Every profile in every format; one that fails does not keep the others from being written. */
static int write_profiles(struct run_output *o, struct err *e)
{
	int rc = 0;

	for (int i = 0; i < profile_kinds(); i++) {
		const struct profile_row *row = &profile_rows[i];
		struct profile *p = o->r->profiles[i];

		if (!p || !pipeline_has(o->r, (enum profile_kind)i))
			continue;
		if (set_meta(o, p, row) < 0) { /* it would be of no known time */
			rc = rc < 0 ? rc : err_set(e, -ENOMEM, "out of memory for a profile");
			file_missing(o, row->name, ".*");
			continue;
		}
		for (const struct format *f = formats; f->name; f++) {
			struct err one = {};
			char path[4096];
			int r;

			if (f->on_demand || (run_in_a_hurry() && f->picture))
				continue;
			snprintf(path, sizeof(path), "%s/%s%s", o->r->cfg->dir, row->name, f->ext);
			r = output_write(o->r, p, f, path, &one);

			if (r == -ENODATA)
				continue; /* no picture of nothing: an idle target is no failure */
			if (r == 0) {
				file_written(o, row->name, f->ext);
				continue;
			}
			file_missing(o, row->name, f->ext);
			if (rc == 0) {
				rc = r;
				*e = one;
			}
		}
	}
	return rc;
}

void output_written(struct run_output *o, const char *name, const char *ext)
{
	char ending[64];

	snprintf(ending, sizeof(ending), "%s%s", o->suffix, ext);
	file_written(o, name, ending);
}

void output_beside(struct run_output *o, const char *file)
{
	char **more = reallocarray(o->beside, o->n_beside + 1, sizeof(*more));
	char *copy = strdup(file);

	if (more)
		o->beside = more;
	if (more && copy)
		more[o->n_beside++] = copy;
	else
		free(copy);
}

int output_in_folder_begin(const struct run *r, const char *folder, const char *file,
			   char *ret_path, uint32_t cap, struct err *e)
{
	const char *stamp = r->cfg->stamp;
	size_t name = strcspn(file, ".");
	char full[256];
	int rc;

	snprintf(full, sizeof(full), "%s/%s", folder, file);
	rc = stamp ? archive_add_file(r->cfg->archive, full, e) : 0;
	if (rc == 0)
		rc = folder_make(r->cfg->dir, folder, e);
	snprintf(ret_path, cap, "%s/%s/%.*s%s%s%s", r->cfg->dir, folder, (int)name, file,
		 stamp ? "-" : "", stamp ? stamp : "", file + name);
	if (rc == 0)
		unlink(ret_path); /* of an earlier run */
	return rc;
}

void output_in_folder(struct run_output *o, const char *name, const char *file)
{
	char full[512];

	snprintf(full, sizeof(full), "%s/%s", name, file);
	output_beside(o, full);
	for (uint32_t i = 0; i < o->facts.s.n_files; i++)
		if (strncmp(o->files[i], name, strlen(name)) == 0 &&
		    strcmp(o->files[i] + strlen(name), "/") == 0)
			return;
	file_written(o, name, "/");
}

int output_csv(struct run_output *o, const char *name,
	       int (*write)(void *ctx, struct sink *sink, struct err *e), void *ctx, struct err *e)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	char path[4096];
	int rc;

	snprintf(path, sizeof(path), "%s/%s%s.csv", o->r->cfg->dir, name, o->suffix);
	rc = sink_open_new(path, &sink, e);
	if (rc == 0)
		rc = write(ctx, sink, e);
	if (rc == 0)
		rc = sink_commit(sink, e);
	snprintf(path, sizeof(path), "%s.csv", o->suffix);
	(rc == 0 ? file_written : file_missing)(o, name, path);
	return rc;
}

int output_pprof(struct run_output *o, const char *name, struct profile *p, uint32_t default_type,
		 const char *comment, struct err *e)
{
	struct profile_meta meta = { .default_type = default_type,
				     .time_ns = o->r->clock.start_wall_ns,
				     .duration_ns = o->facts.s.duration_ns };
	const struct format *f = format_find("pprof");
	char path[4096];
	int rc = output_set_meta(o->r, p, &meta, comment);

	snprintf(path, sizeof(path), "%s/%s%s%s", o->r->cfg->dir, name, o->suffix, f->ext);
	rc = rc < 0 ? err_set(e, rc, "out of memory for a profile")
		    : output_write(o->r, p, f, path, e);
	snprintf(path, sizeof(path), "%s%s", o->suffix, f->ext);
	(rc == 0 ? file_written : file_missing)(o, name, path);
	return rc;
}

/* Those of the components. */
static int write_parts(struct run_output *o, struct err *e)
{
	int rc = 0;

	EACH_COMPONENT(o->r, c, self)
	{
		struct err one = {};
		int r2 = c->write ? c->write(self, o, &one) : 0;

		if (r2 < 0 && rc == 0) {
			rc = r2;
			*e = one;
		}
	}
	return rc;
}

static int write_summary(struct run_output *o, const char *name, bool json, struct err *e)
{
	_cleanup_(sink_closep) struct sink *sink = NULL;
	int rc = strcmp(name, "-") == 0 ? sink_open_file(name, &sink, e)
					: sink_open_new(name, &sink, e);

	if (rc < 0)
		return rc;
	if (json)
		rc = summary_json_write(&o->facts.s, sink, e);
	else if (strcmp(name, "-") != 0)
		summary_text_write(&o->facts.s, false, sink);
	else if (o->r->cfg->verbose)
		summary_text_write(&o->facts.s, terminal_takes_colour(STDOUT_FILENO), sink);
	else
		summary_screen_write(&o->facts.s, terminal_takes_colour(STDOUT_FILENO), sink);
	return rc == 0 ? sink_commit(sink, e) : rc;
}

/* What a run says at its end is worth more than the oldest of its windows. */
static int write_summary_with_room(struct run_output *o, const char *path, bool json, struct err *e)
{
	int rc = write_summary(o, path, json, e);

	for (uint64_t n = 1; archive_is_full(rc) && window_room_make(o->r->cfg, n); n *= 2)
		rc = write_summary(o, path, json, e);
	return rc;
}

/* They name themselves and the page that is made of them; what is printed then names those that are there. */
static int write_summaries(struct run_output *o, struct err *e)
{
	static const struct {
		const char *name, *kind;
	} files[] = { { "summary", "txt" }, { "summary", "json" }, { "report", "html" } };
	/* A service's next run waits, and its page is made of the archive when somebody looks. */
	int n = o->r->cfg->serve ? 2 : 3;
	uint32_t others = o->facts.s.n_files;
	char path[4096], ending[64];
	bool there[3];
	int rc = 0;

	for (int i = 0; i < n; i++) {
		snprintf(ending, sizeof(ending), "%s.%s", o->suffix, files[i].kind);
		file_written(o, files[i].name, ending);
	}
	for (int i = 0; i < n; i++) {
		struct err *one = rc == 0 ? e : NULL;
		int r;

		snprintf(path, sizeof(path), "%s/summary%s.%s", o->facts.s.dir, o->suffix,
			 files[i].kind);
		r = i < 2 ? write_summary_with_room(o, path, i == 1, one)
			  : output_page(o->r, o->suffix, one);
		there[i] = r == 0;
		rc = rc == 0 ? r : rc;
	}
	while (o->facts.s.n_files > others)
		free((char *)o->files[--o->facts.s.n_files]);
	for (int i = 0; i < n; i++) {
		snprintf(ending, sizeof(ending), "%s.%s", o->suffix, files[i].kind);
		(there[i] ? file_written : file_missing)(o, files[i].name, ending);
	}
	return rc;
}

/* With all files of this run in place; one that could not be written leaves those before it. */
static void clear_earlier_run(struct run_output *o)
{
	_cleanup_(strbuf_free) struct strbuf removed = { 0 };

	stale_remove(o->facts.s.dir, o->facts.s.files, o->facts.s.n_files, &removed);
	if (removed.len)
		run_note(o->r, false, "files of an earlier run in this directory were removed: %s",
			 removed.s);
}

/* For `memscope clean`. Files with a stamp are listed by the archive. */
static void list_files(struct run_output *o)
{
	_cleanup_(freep) const char **all =
		calloc(o->facts.s.n_files + o->n_beside + 1, sizeof(*all));
	struct err e = { .msg = "out of memory" };
	uint32_t n = 0;
	int rc = -ENOMEM;

	if (o->r->cfg->stamp)
		return;
	for (uint32_t i = 0; all && i < o->facts.s.n_files; i++)
		if (!strchr(o->files[i], '/'))
			all[n++] = o->files[i];
	for (uint32_t i = 0; all && i < o->n_beside; i++)
		all[n++] = o->beside[i];
	if (all)
		rc = archive_list_run(o->facts.s.dir, all, n, &e);
	if (rc < 0)
		run_note(o->r, false, "memscope clean will not see this run: %s", e.msg);
}

static void output_free(struct run_output *o)
{
	if (!o)
		return;
	for (uint32_t i = 0; i < o->facts.s.n_files; i++)
		free((char *)o->files[i]);
	for (uint32_t i = 0; i < o->n_beside; i++)
		free(o->beside[i]);
	free(o->beside);
	facts_fini(&o->facts);
	strbuf_free(&o->missing);
	free(o);
}

int run_write(struct run *r, struct err *e)
{
	struct run_output *o = calloc(1, sizeof(*o));
	struct err one = {};
	int rc, rc2;

	if (!o)
		return err_set(e, -ENOMEM, "out of memory");
	o->r = r;
	if (r->cfg->stamp)
		snprintf(o->suffix, sizeof(o->suffix), "-%s", r->cfg->stamp);
	run_progress(r, "naming functions");
	rc = facts_gather(&o->facts, r, e);
	run_progress(r, rc == 0 ? "writing files" : NULL);
	if (rc == 0) {
		rc = r->cfg->every_s > 0 ? 0 : write_profiles(o, e);
		rc2 = write_parts(o, &one);
		if (rc2 < 0 && rc == 0) {
			rc = rc2;
			*e = one;
		}
		if (run_in_a_hurry())
			run_note(r, true,
				 "a second signal came while files were written: names and "
				 "flame graphs not yet made are left out");
		o->facts.s.dir = r->cfg->dir;
		o->facts.s.files = o->files;
		if (rc == 0 && !r->cfg->stamp)
			clear_earlier_run(o);
		tell_missing(o);
		o->facts.s.n_notes = r->notes.n;
		rc2 = write_summaries(o, &one);
		if (rc2 < 0 && rc == 0) {
			rc = rc2;
			*e = one;
		}
		list_files(o);
		tell_missing(o);
		o->facts.s.n_notes = r->notes.n;
		run_progress(r, NULL);
		if ((r->cfg->json || !r->cfg->quiet) && !r->cfg->serve &&
		    write_summary(o, "-", r->cfg->json, &one) < 0) {
			err_print(one.msg);
			r->notes.partial = true;
		}
	}
	output_free(o);
	return rc;
}
