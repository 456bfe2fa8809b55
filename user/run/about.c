#include "run/about.h"

#include "base/strbuf.h"
#include "model/about.h"
#include "run/target.h"

#include <errno.h>
#include <string.h>

enum { TARGETS = 16 }; /* more are counted */

int about_check_label(const char *label, struct err *e)
{
	static const char name[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/";
	size_t len = strspn(label, name);

	if (!len || label[len] != '=')
		return err_set(e, -EINVAL, "--label takes KEY=VALUE, like env=prod: not \"%.64s\"",
			       label);
	return 0;
}

struct lines {
	const char **all;
	uint32_t n;
	bool oom;
};

static void add(struct lines *to, enum about what, const char *text)
{
	const char **all = reallocarray(to->all, to->n + 2ul, sizeof(*all));
	char *line;

	if (!all || asprintf(&line, "%s%s", about_prefix(what), text) < 0) {
		to->all = all ? all : to->all;
		to->oom = true;
		return;
	}
	to->all = all;
	all[to->n++] = line;
	all[to->n] = NULL;
}

static void add_process(struct lines *to, pid_t pid, pid_t tid, const char *comm)
{
	char text[300];

	if (tid)
		snprintf(text, sizeof(text), "%s (pid %d, tid %d)", comm, (int)pid, (int)tid);
	else
		snprintf(text, sizeof(text), "%s (pid %d)", comm, (int)pid);
	add(to, ABOUT_TARGET, text);
}

static void add_processes(struct lines *to, const struct run_config *cfg)
{
	char comm[64], more[32];

	for (uint32_t i = 0; i < cfg->n_pids && i < TARGETS; i++) {
		target_comm(cfg->pids[i], comm, sizeof(comm));
		add_process(to, cfg->pids[i], cfg->tid, comm);
	}
	snprintf(more, sizeof(more), "%u more", cfg->n_pids - TARGETS);
	if (cfg->n_pids > TARGETS)
		add(to, ABOUT_TARGET, more);
}

static void add_groups(struct lines *to, const struct run_config *cfg)
{
	char text[300];

	for (uint32_t i = 0; i < cfg->n_groups; i++) {
		const struct group *g = &cfg->groups[i];

		snprintf(text, sizeof(text), "%s %.200s", g->id ? "container" : "cgroup",
			 group_title(g));
		add(to, ABOUT_TARGET, text);
	}
}

static void add_targets(struct lines *to, const struct run_config *cfg, pid_t child)
{
	char host[65] = "", text[80];

	if (cfg->all) {
		gethostname(host, sizeof(host) - 1);
		snprintf(text, sizeof(text), "host %s", host);
		add(to, ABOUT_TARGET, text);
	} else if (cfg->n_groups) {
		add_groups(to, cfg);
	} else if (cfg->command) {
		const char *slash = strrchr(cfg->command[0], '/');

		add_process(to, child, 0, slash ? slash + 1 : cfg->command[0]);
	} else {
		add_processes(to, cfg);
	}
}

const char **about_lines(const struct run_config *cfg, pid_t child)
{
	struct lines to = { 0 };

	add_targets(&to, cfg, child);
	if (cfg->title)
		add(&to, ABOUT_TITLE, cfg->title);
	for (uint32_t i = 0; i < cfg->n_labels; i++)
		add(&to, ABOUT_LABEL, cfg->labels[i]);
	if (!to.oom)
		return to.all;
	about_free(to.all);
	return NULL;
}

void about_free(const char **lines)
{
	for (const char **l = lines; l && *l; l++)
		free((char *)*l);
	free(lines);
}
