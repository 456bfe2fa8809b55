/* memscope clean: removes old runs and windows. */
#include "base/archive.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "cmd/cmd.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct clean_args {
	const char *older, *keep;
};

static const struct opt rows[] = {
	{ "older-than", 0, OPT_STRING, "AGE", offsetof(struct clean_args, older),
	  .help = "remove runs and windows that were written longer ago (30s, 90m, 12h, 7d)" },
	{ "keep", 0, OPT_STRING, "LIMIT,…", offsetof(struct clean_args, keep),
	  .help = "remove the oldest runs and windows until what is left in each directory is within every limit: an age (7d), a number (200), a size (20G), or several (7d,20G)" },
	{ 0 },
};

const struct opt_command clean_options = {
	.name = "clean",
	.synopsis = "OPTION DIR",
	.doc = "Removes old runs and windows (--every) from DIR and the directories in it: an archive, or the "
	       "directory in which run directories lie. A run goes as a whole; one that is at work stays. Only "
	       "files that memscope has listed there (.memscope) are removed; anything else stays, whatever its "
	       "name.",
	.opts = rows,
};

/* What was found on the way. */
struct found {
	struct pruned pruned;
	uint32_t lists;
	uint32_t
		unread; /* directories that could not be looked into, and why the first could not */
	struct err why;
};

/* A directory without a list is none of ours. One that cannot be read does not keep the others. */
static void clean_one(const char *dir, const struct keep *keep, struct found *f)
{
	struct err e = { 0 };
	int r = archive_check(dir, &(struct keep){ 0 }, &e);

	if (r == 0)
		r = archive_prune(dir, keep, &f->pruned, &e);
	if (r == 0)
		f->lists++;
	else if (r != -ENOENT && !f->unread++)
		f->why = e;
}

static int clean_below(const char *dir, const struct keep *keep, struct found *f, struct err *e)
{
	DIR *d = opendir(dir);

	if (!d)
		return err_set(e, -errno, "%s: %s", dir, strerror(errno));
	for (struct dirent *entry; (entry = readdir(d));) {
		char path[4096];
		struct stat st;

		if (entry->d_name[0] == '.' ||
		    snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) >=
			    (int)sizeof(path) ||
		    lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		clean_one(path, keep, f);
	}
	closedir(d);
	return 0;
}

int cmd_clean(int argc, char **argv)
{
	struct clean_args a = { 0 };
	struct found f = { 0 };
	struct keep keep;
	struct err e = { 0 };
	int operand;

	if (opt_parse(&clean_options, argc, argv, &a, &operand, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	if (argc - operand != 1 || !!a.older + !!a.keep != 1) {
		err_set(&e, -EINVAL, "%s",
			argc - operand != 1
				? "name one directory: memscope clean --older-than 7d DIR"
				: "say what may go: --older-than AGE or --keep LIMIT,…");
		return command_fail(EXIT_USAGE, &e);
	}
	if (keep_parse(a.older ? a.older : a.keep, a.older ? "--older-than" : "--keep", &keep, &e) <
	    0)
		return command_fail(EXIT_USAGE, &e);
	if (a.older && (keep.count || keep.bytes)) {
		err_set(&e, -EINVAL, "--older-than takes an age, like 7d, not \"%.32s\"", a.older);
		return command_fail(EXIT_USAGE, &e);
	}
	clean_one(argv[operand], &keep, &f);
	if (!f.unread && clean_below(argv[operand], &keep, &f, &e) < 0)
		return command_fail(EXIT_NOTHING, &e);
	if (f.unread && !f.lists)
		return command_fail(EXIT_NOTHING, &f.why);
	if (!f.lists) {
		err_set(&e, -ENOENT, "%s: there is no run or window of memscope here",
			argv[operand]);
		return command_fail(EXIT_NOTHING, &e);
	}
	printf("removed %s files, %s\n", unit_count((int64_t)f.pruned.files).s,
	       unit_bytes((int64_t)f.pruned.bytes).s);
	if (fflush(stdout) < 0 && errno != EPIPE) {
		err_set(&e, -errno,
			"standard output: %s; it was removed, but that could not be printed",
			strerror(errno));
		return command_fail(EXIT_PARTIAL, &e);
	}
	if (f.pruned.failed) {
		err_set(&e, f.pruned.error, "%s files could not be removed: %s",
			unit_count((int64_t)f.pruned.failed).s, strerror(-f.pruned.error));
		return command_fail(EXIT_PARTIAL, &e);
	}
	if (f.unread) {
		err_set(&e, f.why.code, "%s (%s directories are as they were for such a reason)",
			f.why.msg, unit_count(f.unread).s);
		return command_fail(EXIT_PARTIAL, &e);
	}
	return EXIT_DONE;
}
