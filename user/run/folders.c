#include "run/folders.h"

#include "base/cleanup.h"
#include "base/window_name.h"
#include "model/about.h"
#include "model/time_part.h"
#include "run/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OWNER_MAX = 48 }; /* of target_file_word() */

/* -G names groups that need not be containers. */
static bool of_cgroups(const struct run_config *cfg)
{
	return cfg->n_groups && !cfg->groups[0].id;
}

bool folders_wanted(const struct run_config *cfg)
{
	return cfg->dir && (cfg->all || cfg->n_groups > 1);
}

void folder_name(const struct run_config *cfg, const char *owner, char ret_name[FOLDER_NAME])
{
	const char *rest = cfg->all ? FOLDER_HOST : FOLDER_UNASSIGNED;

	if (!owner) {
		snprintf(ret_name, FOLDER_NAME, "%s", rest);
		return;
	}
	/* Of a path that is too long its end tells more. */
	if (strchr(owner, '/') && strlen(owner) > OWNER_MAX)
		owner += strlen(owner) - OWNER_MAX;
	target_file_word(owner, ret_name, FOLDER_NAME - 1);
	if (strcmp(ret_name, rest) == 0)
		strcat(ret_name, "_");
}

int folder_make(const char *dir, const char *name, struct err *e)
{
	char path[4096];
	struct stat st;
	size_t len = strlen(name);

	/* Without a `/` at its end, or a link would be looked through. */
	len -= len && name[len - 1] == '/';
	snprintf(path, sizeof(path), "%s/%.*s", dir, (int)len, name);
	if (mkdir(path, 0700) == 0)
		return 0;
	if (errno == EEXIST && (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode)))
		errno = ENOTDIR;
	return errno == EEXIST ? 0
			       : err_set(e, -errno, "cannot make the directory '%s': %s", path,
					 strerror(errno));
}

static struct folder_profile *folder_of(struct folders *f, const char *name)
{
	struct folder_profile *more;

	for (uint32_t i = 0; i < f->n; i++)
		if (strcmp(f->list[i].name, name) == 0)
			return &f->list[i];
	f->full |= f->n == FOLDERS_MAX;
	more = f->full ? NULL : reallocarray(f->list, f->n + 1, sizeof(*more));
	if (!more)
		return NULL;
	f->list = more;
	more = &f->list[f->n++];
	*more = (struct folder_profile){ 0 };
	snprintf(more->name, sizeof(more->name), "%s", name);
	return more;
}

/* A line of about.h: true of a part as well. */
static bool is_about(const char *comment)
{
	for (int what = ABOUT_TARGET; what <= ABOUT_END; what++) {
		const char *prefix = about_prefix((enum about)what);

		if (strncmp(comment, prefix, strlen(prefix)) == 0)
			return true;
	}
	return false;
}

/* As that of all, but for what was profiled. What figures are worth is said of all together. */
static int set_meta(const struct run_config *cfg, struct profile *p, const struct profile *all,
		    const char *owner)
{
	struct profile_meta meta = *profile_get_meta(all);
	_cleanup_(freep) const char **comments = NULL;
	const char *prefix = about_prefix(ABOUT_TARGET);
	char target[300], worth[600];
	size_t n = 0, kept = 0;

	while (meta.comments && meta.comments[n])
		n++;
	comments = calloc(n + 2, sizeof(*comments));
	if (!comments)
		return -ENOMEM;
	snprintf(target, sizeof(target), "%s%s %.200s", prefix,
		 of_cgroups(cfg) ? "control group" : "container", owner ? owner : "");
	if (owner)
		comments[kept++] = target;
	if (n && !is_about(meta.comments[0])) {
		snprintf(worth, sizeof(worth), "of all folders together: %s", meta.comments[0]);
		comments[kept++] = worth;
	}
	for (size_t i = n && !is_about(meta.comments[0]); i < n; i++)
		if (!owner || strncmp(meta.comments[i], prefix, strlen(prefix)) != 0)
			comments[kept++] = meta.comments[i];
	meta.comments = comments;
	return profile_set_meta(p, &meta);
}

static int add_sample(const struct run_config *cfg, struct folders *f, const struct profile *all,
		      struct profile_sample s)
{
	struct dict *d = profile_dict(all);
	const struct label *of =
		dict_label_find(d, s.labels, of_cgroups(cfg) ? "cgroup" : "container");
	const char *owner = of ? dict_str(d, of->str) : NULL;
	char name[FOLDER_NAME];
	struct folder_profile *to;

	folder_name(cfg, owner, name);
	to = folder_of(f, name);
	if (!to)
		return f->full ? 0 : -ENOMEM;
	if (!to->profile) {
		to->profile = profile_new(d, profile_type(all, 0), profile_n_types(all));
		if (!to->profile || set_meta(cfg, to->profile, all, owner) < 0)
			return -ENOMEM;
	}
	return profile_add_sample(to->profile, s.stack, s.labels, &s, NULL, 1);
}

int folders_split(const struct run_config *cfg, const struct profile *all,
		  struct folders *ret_folders, struct err *e)
{
	struct folders f = { 0 };
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < profile_n_samples(all); i++)
		rc = add_sample(cfg, &f, all, profile_sample(all, i));
	for (uint32_t i = 0; rc == 0 && i < f.n; i++)
		rc = profile_part_times(all, f.list[i].profile, 0, UINT64_MAX);
	if (rc < 0) {
		folders_fini(&f);
		return err_set(e, -ENOMEM, "out of memory for the profiles of containers");
	}
	*ret_folders = f;
	return 0;
}

void folders_fini(struct folders *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		profile_free(f->list[i].profile);
	free(f->list);
	*f = (struct folders){ 0 };
}
