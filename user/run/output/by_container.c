/*
 * The profiles of a run of several containers, or of the host, once more for each container by itself: in a
 * folder of its name, and in "host" what is in none. The label `container` of a sample says whose it is.
 */
#include "model/about.h"
#include "run/component.h"
#include "run/output/files.h"
#include "run/pipeline.h"

#include <errno.h>
#include <string.h>

#define FOLDERS_MAX 1024 /* containers; the samples of more are only in the profiles of all */

struct folder {
	char name[64];
	struct profile *profile; /* of the kind in hand; NULL: nothing of it */
};

struct by_container {
	struct run *run;
	struct folder *folders;
	uint32_t n;
	bool full;
};

static struct folder *folder_of(struct by_container *b, const char *container)
{
	char name[sizeof(b->folders->name)];
	struct folder *more;

	output_folder_name(container, name, sizeof(name));
	for (uint32_t i = 0; i < b->n; i++)
		if (strcmp(b->folders[i].name, name) == 0)
			return &b->folders[i];
	b->full |= b->n == FOLDERS_MAX;
	more = b->full ? NULL : reallocarray(b->folders, b->n + 1, sizeof(*more));
	if (!more)
		return NULL;
	b->folders = more;
	b->folders[b->n] = (struct folder){ 0 };
	memcpy(b->folders[b->n].name, name, sizeof(name));
	return &b->folders[b->n++];
}

/* As that of all, but for what was profiled. */
static int set_meta(struct profile *p, const struct profile *all, const char *container)
{
	struct profile_meta meta = *profile_get_meta(all);
	_cleanup_(freep) const char **comments = NULL;
	const char *prefix = about_prefix(ABOUT_TARGET);
	char target[300];
	size_t n = 0, kept = 0;

	while (meta.comments && meta.comments[n])
		n++;
	comments = calloc(n + 2, sizeof(*comments));
	if (!comments)
		return -ENOMEM;
	snprintf(target, sizeof(target), "%scontainer %.200s", prefix, container ? container : "");
	if (container)
		comments[kept++] = target;
	for (size_t i = 0; i < n; i++)
		if (!container || strncmp(meta.comments[i], prefix, strlen(prefix)) != 0)
			comments[kept++] = meta.comments[i];
	meta.comments = comments;
	return profile_set_meta(p, &meta);
}

static int add_sample(struct by_container *b, const struct profile *all, struct profile_sample s)
{
	struct dict *d = profile_dict(all);
	const struct label *of = dict_label_find(d, s.labels, "container");
	struct folder *f = folder_of(b, of ? dict_str(d, of->str) : NULL);

	if (!f)
		return b->full ? 0 : -ENOMEM;
	if (!f->profile) {
		f->profile = profile_new(d, profile_type(all, 0), profile_n_types(all));
		if (!f->profile || set_meta(f->profile, all, of ? dict_str(d, of->str) : NULL) < 0)
			return -ENOMEM;
	}
	return profile_add(f->profile, s.stack, s.labels, s.values);
}

static int split(struct by_container *b, const struct profile *all, struct err *e)
{
	for (uint32_t i = 0; i < profile_n_samples(all); i++)
		if (add_sample(b, all, profile_sample(all, i)) < 0)
			return err_set(e, -ENOMEM, "out of memory for the profiles of containers");
	return 0;
}

static int write_formats(struct by_container *b, struct folder *f, const struct profile_row *row,
			 struct run_output *to, struct err *e)
{
	const struct run *r = b->run;
	int rc = output_folder_make(r, f->name, e);

	for (const struct format *format = formats; rc == 0 && format->name; format++) {
		char path[4096], file[64];

		if (format->on_demand || (run_in_a_hurry() && format->picture))
			continue;
		snprintf(file, sizeof(file), "%s%s", row->name, format->ext);
		snprintf(path, sizeof(path), "%s/%s/%s", r->cfg->dir, f->name, file);
		rc = output_write(r, f->profile, format, path, e);
		if (rc == 0)
			output_in_folder(to, f->name, file);
		else if (rc == -ENODATA)
			rc = 0; /* no picture of nothing */
	}
	return rc;
}

/* One kind at a time: a profile is as large again as its parts. */
static int write_files(void *self, struct run_output *to, struct err *e)
{
	struct by_container *b = self;
	const struct run *r = b->run;
	int rc = 0;

	for (int kind = 0; rc == 0 && kind < N_PROFILE_KINDS; kind++) {
		if (!r->profiles[kind] || !pipeline_has(r, (enum profile_kind)kind))
			continue;
		rc = split(b, r->profiles[kind], e);
		for (uint32_t i = 0; i < b->n; i++) {
			struct folder *f = &b->folders[i];

			if (rc == 0 && f->profile)
				rc = write_formats(b, f, &profile_rows[kind], to, e);
			profile_free(f->profile);
			f->profile = NULL;
		}
	}
	if (b->full)
		run_note(b->run, true,
			 "there are over %u containers: the others have no folder of their own",
			 FOLDERS_MAX);
	return rc;
}

static void free_folders(void *self)
{
	free(((struct by_container *)self)->folders);
}

const struct component by_container_component = {
	.name = "profiles of containers",
	.size = sizeof(struct by_container),
	.wanted = output_has_folders,
	.write = write_files,
	.free = free_folders,
};
