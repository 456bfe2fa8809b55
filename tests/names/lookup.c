/*
 * What symbolize() says about addresses of a file, for comparison with other tools.
 *
 *     lookup [-m] [-r ROOT] FILE < ADDRESSES
 *     lookup [-m] [-r ROOT] < FILES AND ADDRESSES
 *
 * -m: mangled names; -r: separate debug files are looked for below ROOT instead of /.
 *
 * Addresses are the file's own, in hex, one a line, behind the file's path and a tab when none was
 * given. For each, in the order given:
 *     0xADDR
 *     FUNCTION TAB SYSTEM_NAME TAB FILE TAB LINE TAB START_LINE      innermost first
 *     (an empty line)
 */
#include "proc/namespace.h"
#include "symbolize/symbolize.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct args {
	const char *path, *root; /* path NULL: in front of each address */
	const struct dict *d;
	bool mangled;
};

static int open_module(void *ctx, module_id m, struct err *e)
{
	const struct args *args = ctx;
	int fd = open(dict_str(args->d, dict_module_get(args->d, m)->path), O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int open_debug(void *ctx, module_id m, const char *path, bool host)
{
	static const struct ns_roots none;
	const struct args *args = ctx;
	char below[8192];

	/* Beside the file itself there is no other root. */
	snprintf(below, sizeof(below), "%s%s",
		 !strncmp(path, "/usr/lib/debug/", 15) ? args->root : "", path);
	return ns_roots_open(&none, -1, below);
}

static void print(const struct dict *d, location_id id)
{
	const struct location *l = dict_location_get(d, id);

	printf("0x%" PRIx64 "\n", l->vaddr);
	for (uint32_t i = 0; i < l->n_lines; i++)
		printf("%s\t%s\t%s\t%u\t%u\n", dict_str(d, l->lines[i].function),
		       dict_str(d, l->lines[i].system_name), dict_str(d, l->lines[i].file),
		       l->lines[i].line, l->lines[i].start_line);
	printf("\n");
}

static int parse(int argc, char **argv, struct args *ret)
{
	int c;

	*ret = (struct args){ .root = "" };
	while ((c = getopt(argc, argv, "mr:")) > 0) {
		if (c == 'm')
			ret->mangled = true;
		else if (c == 'r')
			ret->root = optarg;
		else
			return -1;
	}
	ret->path = optind < argc ? argv[optind] : NULL;
	return optind + 1 < argc ? -1 : 0;
}

/* The next line's place; false at the end. */
static bool next_place(struct dict *d, const char *path, location_id *ret)
{
	char line[8192], *addr = line, *end;
	uint64_t vaddr;

	if (!fgets(line, sizeof(line), stdin))
		return false;
	if (!path) {
		addr = strchr(line, '\t');
		if (!addr)
			return false;
		*addr++ = '\0';
		path = line;
	}
	vaddr = strtoull(addr, &end, 16);
	if (end == addr)
		return false;
	*ret = dict_location(d,
			     dict_module(d, &(struct module){ .kind = MODULE_ELF,
							      .path = dict_string(d, path) }),
			     vaddr);
	return true;
}

int main(int argc, char **argv)
{
	struct args args;
	struct symbolize_opts opts = {
		.open_module = open_module,
		.open_debug = open_debug,
		.ctx = &args,
	};
	struct dict *d = dict_new();
	location_id *ids = NULL, id;
	uint32_t n = 0, cap = 0;
	struct symbolize_stats st;

	if (parse(argc, argv, &args) < 0 || !d)
		return 2;
	args.d = d;
	opts.no_demangle = args.mangled;
	while (next_place(d, args.path, &id)) {
		if (n == cap) {
			cap = cap ? cap * 2 : 1024;
			ids = reallocarray(ids, cap, sizeof(*ids));
			if (!ids)
				return 1;
		}
		ids[n++] = id;
	}
	if (symbolize(d, &opts, &st) < 0)
		return 1;
	for (uint32_t i = 0; i < n; i++)
		print(d, ids[i]);
	fprintf(stderr, "%" PRIu64 " of %" PRIu64 " named, %" PRIu64 " by range%s%s\n", st.named,
		st.locations, st.ranges, st.n_worst ? ": " : "",
		st.n_worst ? st.worst[0].reason : "");
	free(ids);
	dict_free(d);
	return 0;
}
