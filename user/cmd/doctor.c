/*
 * `memscope doctor`: what works on this machine, what does not, why, and what to do about it.
 * The rows are collect/session/kernel.c's.
 */
#include "base/cleanup.h"
#include "cmd/cmd.h"
#include "cmd/doctor_process.h"
#include "collect/session/kernel.h"
#include "container/container.h"
#include "run/group.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

struct doctor_args {
	bool json;
	uint32_t pid;
	const char *container;
};

static const struct opt doctor_opts[] = {
	{ "pid", 'p', OPT_U32, "PID", offsetof(struct doctor_args, pid), .min = 1, .max = 1 << 22,
	  .help = "Look at this process instead: samples it for a second and a half, and says whether its "
		  "stacks are whole, where they are not, which code has no names and what would help, and "
		  "which allocator it has." },
	{ "container", 'c', OPT_STRING, "NAME", offsetof(struct doctor_args, container),
	  .help = "The same for the first process of this container." },
	{ "json", 0, OPT_FLAG, NULL, offsetof(struct doctor_args, json),
	  .help = "Print one JSON object instead of the table." },
	{ 0 },
};

const struct opt_command doctor_options = {
	.name = "doctor",
	.synopsis = "[--json] [-p PID | -c NAME]",
	.doc = "Says what works on this machine, what does not, why, and what to do about it. Changes "
	       "nothing; asks more as root. What to do by symptom: memscope help symptoms. "
	       "Exit status: 0 when every source works, else 3.",
	.opts = doctor_opts,
};

/* What a user calls each source, and what is lost without it. */
static const struct {
	const char *title, *gives;
} sources[KERNEL_N_SOURCES] = {
	{ "on-CPU", "where CPU time goes" },
	{ "off-CPU", "what threads wait for" },
	{ "allocations", "who allocates, and what is not freed" },
	{ "names", "functions instead of addresses" },
	{ "trend", "memory over time" },
	{ "growth", "who makes memory resident, and who releases it" },
};

/* What a state means for a source. */
static const char *const verdicts[] = {
	[KERNEL_OK] = "works",
	[KERNEL_LIMITED] = "works in part",
	[KERNEL_MISSING] = "does not work",
	[KERNEL_UNKNOWN] = "not known",
};

static bool works(enum kernel_state s)
{
	return s == KERNEL_OK || s == KERNEL_LIMITED;
}

static void print_checks(const struct kernel_finding *findings)
{
	for (uint32_t i = 0; i < kernel_n_checks(); i++) {
		const struct kernel_finding *f = &findings[i];

		printf("  %-8s %-16s %s\n", kernel_state_name(f->state), kernel_checks[i].name,
		       f->why);
		if (f->todo[0])
			printf("  %-8s %-16s -> %s\n", "", "", f->todo);
	}
}

static bool print_sources(const struct kernel_finding *findings)
{
	bool all = true;

	for (uint32_t i = 0; i < KERNEL_N_SOURCES; i++) {
		int row;
		enum kernel_state s = kernel_source_state(findings, i, &row);

		printf("  %-12s %-14s %s", sources[i].title, verdicts[s], sources[i].gives);
		if (row >= 0)
			printf(" (see %s)", kernel_checks[row].name);
		printf("\n");
		all = all && works(s);
	}
	return all;
}

#define ENGINES_MAX 16

/* Which container engines there are; how many of theirs run. */
static uint32_t find_engines(struct engine_finding *out)
{
	struct cgroup_mounts mounts = { 0 };
	struct container_list list = { 0 };
	uint32_t n;

	cgroup_mounts_read(&mounts, NULL);
	containers_read(NULL, &mounts, &list, NULL);
	n = engines_find(NULL, &list, out, ENGINES_MAX);
	containers_fini(&list);
	cgroup_mounts_fini(&mounts);
	return n;
}

/* Where an engine's files are not. */
static void print_where(const struct engine_finding *f)
{
	const char *named = getenv(f->env);

	printf("-c knows its containers by their ids alone, -G takes any control group\n");
	if (named && *named)
		printf("%30s looked in %s (%s)", "", named, f->env);
	else
		printf("%30s looked in %s; %s sets another path", "", f->looked, f->env);
}

static void print_engines(void)
{
	struct engine_finding engines[ENGINES_MAX];
	uint32_t n = find_engines(engines);

	printf("\n");
	for (uint32_t i = 0; i < n; i++) {
		const struct engine_finding *f = &engines[i];

		printf("  %-12s %-14s ", f->name, f->where[0] ? "found" : "not found");
		if (f->where[0])
			printf("%u container%s, %u run%s (%s)", f->containers,
			       f->containers == 1 ? "" : "s", f->running,
			       f->running == 1 ? "s" : "", f->where);
		else
			print_where(f);
		printf("\n");
	}
}

static bool print_table(const struct kernel_finding *findings, const struct utsname *uts)
{
	bool all;

	printf("%s %s on %s\n\n", uts->sysname, uts->release, uts->machine);
	print_checks(findings);
	printf("\n");
	all = print_sources(findings);
	print_engines();
	printf("\n%s\n",
	       all ? "Every source works here."
		   : "Not every source works here; the lines with an arrow say what to do.");
	return all;
}

/* One row as JSON. False when out of memory. */
static bool add_check(cJSON *list, const struct kernel_check *check, const struct kernel_finding *f)
{
	cJSON *o = cJSON_CreateObject();

	if (!o || !cJSON_AddItemToArray(list, o)) {
		cJSON_Delete(o);
		return false;
	}
	return cJSON_AddStringToObject(o, "name", check->name) &&
	       cJSON_AddStringToObject(o, "state", kernel_state_name(f->state)) &&
	       cJSON_AddStringToObject(o, "use", check->use) &&
	       cJSON_AddStringToObject(o, "why", f->why) &&
	       cJSON_AddStringToObject(o, "todo", f->todo);
}

static bool add_source(cJSON *in, const struct kernel_finding *findings, uint32_t i, bool *all)
{
	int row;
	enum kernel_state s = kernel_source_state(findings, i, &row);
	cJSON *o = cJSON_AddObjectToObject(in, kernel_source_name(i));

	*all = *all && works(s);
	return cJSON_AddStringToObject(o, "state", kernel_state_name(s)) &&
	       (row < 0 ? cJSON_AddNullToObject(o, "because")
			: cJSON_AddStringToObject(o, "because", kernel_checks[row].name)) != NULL;
}

static bool add_engines(cJSON *root)
{
	cJSON *list = cJSON_AddArrayToObject(root, "engines");
	struct engine_finding engines[ENGINES_MAX];
	uint32_t n = find_engines(engines);
	bool good = list != NULL;

	for (uint32_t i = 0; i < n && good; i++) {
		const struct engine_finding *f = &engines[i];
		cJSON *o = cJSON_CreateObject();

		good = o && cJSON_AddItemToArray(list, o) &&
		       cJSON_AddStringToObject(o, "name", f->name) &&
		       cJSON_AddBoolToObject(o, "found", f->where[0] != 0) &&
		       cJSON_AddStringToObject(o, "where", f->where) &&
		       cJSON_AddStringToObject(o, "looked", f->looked) &&
		       cJSON_AddStringToObject(o, "variable", f->env) &&
		       cJSON_AddNumberToObject(o, "containers", f->containers) &&
		       cJSON_AddNumberToObject(o, "running", f->running);
	}
	return good;
}

DEFINE_CLEANUP(cJSON *, json_freep, cJSON_Delete)
DEFINE_CLEANUP(char *, json_text_freep, cJSON_free)

/* 0 with *ret_all, or -ENOMEM. */
static int print_json(const struct kernel_finding *findings, const struct utsname *uts,
		      bool *ret_all)
{
	_cleanup_(json_freep) cJSON *root = cJSON_CreateObject();
	_cleanup_(json_text_freep) char *text = NULL;
	cJSON *checks, *in;
	bool all = true, good;

	good = cJSON_AddStringToObject(root, "kernel", uts->release) &&
	       cJSON_AddStringToObject(root, "machine", uts->machine);
	checks = cJSON_AddArrayToObject(root, "checks");
	for (uint32_t i = 0; i < kernel_n_checks(); i++)
		good = good && add_check(checks, &kernel_checks[i], &findings[i]);
	in = cJSON_AddObjectToObject(root, "sources");
	for (uint32_t i = 0; i < KERNEL_N_SOURCES; i++)
		good = good && add_source(in, findings, i, &all);
	good = good && add_engines(root) && cJSON_AddBoolToObject(root, "all_work", all);
	if (good)
		text = cJSON_Print(root);
	if (!text)
		return -ENOMEM;
	puts(text);
	*ret_all = all;
	return 0;
}

int cmd_doctor(int argc, char **argv)
{
	_cleanup_(freep) struct kernel_finding *findings = NULL;
	struct doctor_args args = { 0 };
	struct utsname uts;
	struct err e = { 0 };
	bool all = false;
	int operand, r = 0;
	pid_t pid = 0;

	if (opt_parse(&doctor_options, argc, argv, &args, &operand, &e) < 0)
		return command_fail(EXIT_USAGE, &e);
	if (operand < argc) {
		err_set(&e, -EINVAL, "doctor takes no operand, but got \"%.64s\"", argv[operand]);
		return command_fail(EXIT_USAGE, &e);
	}
	if (args.pid && args.container) {
		err_set(&e, -EINVAL, "-p and -c both name a process: give one of them");
		return command_fail(EXIT_USAGE, &e);
	}
	if (args.container) {
		if (groups_check("-c", args.container, &e) < 0)
			return command_fail(EXIT_USAGE, &e);
		r = group_first_process(args.container, &pid, &e);
		if (r < 0)
			return command_fail(r == -EINVAL ? EXIT_USAGE : EXIT_NOTHING, &e);
	}
	if (pid || args.pid)
		return doctor_process(pid ? pid : (pid_t)args.pid, args.json);
	findings = calloc(kernel_n_checks(), sizeof(*findings));
	if (!findings || uname(&uts) < 0) {
		err_set(&e, -ENOMEM, "out of memory");
		return command_fail(EXIT_NOTHING, &e);
	}
	kernel_probe_all(findings);
	if (args.json)
		r = print_json(findings, &uts, &all);
	else
		all = print_table(findings, &uts);
	if (r < 0) {
		err_set(&e, r, "out of memory");
		return command_fail(EXIT_NOTHING, &e);
	}
	if (err_flush_stdout() < 0)
		return EXIT_NOTHING;
	return all ? EXIT_DONE : EXIT_PARTIAL;
}
