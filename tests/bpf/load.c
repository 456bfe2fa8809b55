/*
 * Asks this kernel's verifier about every program of an object, as root:
 *
 *   load [-v PROGRAM] OBJECT [KNOB=VALUE…]
 *
 * One line a program, in the order of the object:
 *
 *   NAME ok INSNS USEC STACK… instructions looked at, how long that took, and the bytes of stack
 *                             of the program and of each function that it comes with
 *   NAME refused REASON       the verifier's last words
 *   NAME absent SECTION       this kernel has no such tracepoint or storage, and nothing to be verified
 *
 * -v: nothing but that program, and all that the verifier says of it, on stderr.
 *
 * Exit status 0 when all programs were loaded, 1 when some were refused, 2 when none could be
 * tried. The knobs are those of config.bpf.h: what is off is not verified.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PROGS 64
#define LOG_BYTES (64 * 1024)
#define ALL_BYTES (64 * 1024 * 1024)
#define LOG_STATS 4               /* only what is refused, and how much there was to look at */
#define LOG_ALL   (2 | LOG_STATS) /* 1 is taken back where all is well */

static char *logs[MAX_PROGS];
static bool left_out[MAX_PROGS], refused[MAX_PROGS], absent[MAX_PROGS];
static const char *only;
static char words[4096]; /* libbpf's, of what went wrong outside of a program */

static int keep_words(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	size_t len = strlen(words);

	if (level == LIBBPF_WARN && !strstr(fmt, "RLIMIT_MEMLOCK"))
		vsnprintf(words + len, sizeof(words) - len, fmt, ap);
	return 0;
}

/* Sets the variable `name` of .rodata, of any integer size. */
static int set_knob(struct bpf_object *obj, const char *name, unsigned long long value)
{
	const struct btf *btf = bpf_object__btf(obj);
	int id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
	struct bpf_map *map = bpf_object__find_map_by_name(obj, ".rodata");
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (unsigned)id) : NULL;
	const struct btf_var_secinfo *var = t ? btf_var_secinfos(t) : NULL;
	char *values;
	size_t size;

	/* The skeleton's name of the section is preceded by the object's. */
	if (!map)
		bpf_object__for_each_map(map, obj) if (strstr(bpf_map__name(map), ".rodata")) break;
	values = map ? (char *)bpf_map__initial_value(map, &size) : NULL;
	if (!values || !t)
		return -ENOENT;
	for (int i = 0; i < btf_vlen(t); i++, var++) {
		const struct btf_type *v = btf__type_by_id(btf, var->type);

		if (strcmp(btf__name_by_offset(btf, v->name_off), name))
			continue;
		memcpy(values + var->offset, &value, var->size < 8 ? var->size : 8);
		return 0;
	}
	return -ENOENT;
}

static int set_knobs(struct bpf_object *obj, char *const *args)
{
	for (; *args; args++) {
		char *value = strchr(*args, '=');
		int r;

		if (!value)
			return fprintf(stderr, "load: %s is not KNOB=VALUE\n", *args), -EINVAL;
		*value = '\0';
		r = set_knob(obj, *args, strtoull(value + 1, NULL, 0));
		if (r < 0)
			return fprintf(stderr, "load: there is no knob %s\n", *args), r;
		*value = '=';
	}
	return 0;
}

/* A tracepoint by its type: does this kernel have it? */
static bool is_absent(const struct bpf_program *prog)
{
	static const char section[] = "tp_btf/";
	static struct btf *btf;
	const char *name = bpf_program__section_name(prog);
	char type[128];

	if (strncmp(name, section, sizeof(section) - 1))
		return false;
	if (!btf)
		btf = btf__load_vmlinux_btf();
	snprintf(type, sizeof(type), "btf_trace_%s", name + sizeof(section) - 1);
	return btf && btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) < 0;
}

static bool has_helper(const char *name)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int id = btf ? btf__find_by_name_kind(btf, "bpf_func_id", BTF_KIND_ENUM) : -1;
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (unsigned)id) : NULL;
	bool has = false;

	for (int i = 0; t && !has && i < btf_vlen(t); i++)
		has = !strcmp(btf__name_by_offset(btf, btf_enum(t)[i].name_off), name);
	btf__free(btf);
	return has;
}

/* For the sampling of waits alone: on kernels that have what collect/ asks for (kernel_types.h). */
static bool is_of_wait_sampler(const struct bpf_program *prog)
{
	return !strcmp(bpf_program__name(prog), "find_sampled") ||
	       !strcmp(bpf_program__name(prog), "list_sampled") ||
	       !strcmp(bpf_program__name(prog), "on_sampled_exit");
}

/* Loads what has not been refused so far. > 0: another one was refused, to be tried without it. */
static int try_load(const char *path, char *const *knobs)
{
	struct bpf_object *obj = bpf_object__open_file(path, NULL);
	struct bpf_program *prog;
	bool regs = has_helper("BPF_FUNC_task_pt_regs");
	int i = 0, last = -1, r;

	if (!obj)
		return fprintf(stderr, "load: %s: %s\n", path, strerror(errno)), -errno;
	r = set_knobs(obj, knobs);
	if (r < 0)
		goto out;
	bpf_object__for_each_program(prog, obj)
	{
		if (i >= MAX_PROGS)
			break;
		size_t bytes = only ? ALL_BYTES : LOG_BYTES;

		absent[i] = is_absent(prog) || (!regs && is_of_wait_sampler(prog));
		left_out[i] = absent[i] || (only && strcmp(bpf_program__name(prog), only));
		bpf_program__set_autoload(prog, !refused[i] && !left_out[i]);
		bpf_program__set_log_level(prog, only ? LOG_ALL : LOG_STATS);
		if (!logs[i] && !left_out[i])
			logs[i] = calloc(1, bytes);
		if (!refused[i] && logs[i]) {
			logs[i][0] = '\0';
			bpf_program__set_log_buf(prog, logs[i], bytes);
		}
		i++;
	}
	words[0] = '\0';
	r = bpf_object__load(obj);
	if (r < 0) { /* they are loaded one after the other, and nothing after the first refusal */
		for (int p = 0; p < i; p++)
			if (!refused[p] && logs[p] && logs[p][0])
				last = p;
		if (last < 0) {
			fprintf(stderr, "load: %s\n%s", strerror(-r), words);
			goto out;
		}
		refused[last] = true;
		r = 1;
	}
out:
	bpf_object__close(obj);
	return r;
}

/* The line before the figures, or the last there is. */
static const char *last_words(char *log)
{
	static const char *const figures[] = { "\nverification time", "\nstack depth",
					       "\nprocessed " };
	char *end = log + strlen(log), *start;

	for (int i = 0; i < 3; i++) {
		start = strstr(log, figures[i]);
		if (start && start < end)
			end = start;
	}
	*end = '\0';
	start = strrchr(log, '\n');
	return start ? start + 1 : log;
}

static int print_findings(const char *path)
{
	struct bpf_object *obj = bpf_object__open_file(path, NULL);
	struct bpf_program *prog;
	bool some = false;
	int i = 0;

	if (!obj)
		return 2;
	bpf_object__for_each_program(prog, obj)
	{
		unsigned long insns = 0, usec = 0;
		char stack[128] = "", *plus;
		const char *at, *time;

		if (absent[i])
			printf("%s absent %s\n", bpf_program__name(prog),
			       bpf_program__section_name(prog));
		if (left_out[i++])
			continue;
		at = strstr(logs[i - 1], "processed ");
		time = strstr(logs[i - 1], "verification time ");
		if (at)
			sscanf(at, "processed %lu", &insns);
		if (time)
			sscanf(time, "verification time %lu", &usec);
		at = strstr(logs[i - 1], "stack depth ");
		if (at)
			sscanf(at, "stack depth %127s", stack);
		while ((plus = strchr(stack, '+')))
			*plus = ' ';
		if (only)
			fputs(logs[i - 1], stderr);
		if (refused[i - 1])
			printf("%s refused %s\n", bpf_program__name(prog), last_words(logs[i - 1]));
		else
			printf("%s ok %lu %lu %s\n", bpf_program__name(prog), insns, usec, stack);
		some |= refused[i - 1];
	}
	bpf_object__close(obj);
	return some;
}

int main(int argc, char **argv)
{
	int r;

	argv++;
	if (argc > 3 && !strcmp(argv[0], "-v")) {
		only = argv[1];
		argv += 2;
	}
	if (!*argv)
		return fprintf(stderr, "usage: load [-v PROGRAM] OBJECT [KNOB=VALUE…]\n"), 2;
	libbpf_set_print(keep_words);
	while ((r = try_load(argv[0], argv + 1)) > 0)
		;
	return r < 0 ? 2 : print_findings(argv[0]);
}
