/*
 * A file of options: refused with its line, or what it says, written again a line for each option, is the same file to its reader. No
 * value has a newline, or what its kind cannot have.
 */
#include "base/opt_file.h"

#include "base/strbuf.h"
#include "scratch_folder.h"

#include <math.h>
#include <string.h>

struct args {
	bool quiet;
	const char *archive, *containers;
	uint32_t hz;
	double every_s;
	struct opt_list labels;
	int mode;
};

static const struct opt opts[] = {
	{ "Things", .kind = OPT_HEADING },
	{ "archive", 0, OPT_STRING, "DIR", offsetof(struct args, archive), .help = "into" },
	{ "container", 'c', OPT_STRING, "NAME,…", offsetof(struct args, containers), .help = "of" },
	{ "frequency", 'F', OPT_U32, "HZ", offsetof(struct args, hz), 1, 10000, .help = "rate" },
	{ "every", 0, OPT_DOUBLE, "SEC", offsetof(struct args, every_s), 1, 1e7, .help = "length" },
	{ "label", 0, OPT_LIST, "KEY=VALUE", offsetof(struct args, labels), .help = "kept" },
	{ "mode", 0, OPT_CHOICE, NULL, offsetof(struct args, mode), .choices = "off|sampled|exact",
	  .help = "how" },
	{ "quiet", 'q', OPT_FLAG, NULL, offsetof(struct args, quiet), .help = "say less" },
	{ 0 },
};
static const struct opt_command cmd = { "serve", "[OPTION…]", "Serves.", opts };
static const char *const modes[] = { "off", "sampled", "exact" };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_file(const void *text, size_t len, struct args *args, struct opt_file *file)
{
	static char path[160];
	struct err e = { 0 };
	int r;

	scratch_write("options", text, len);
	snprintf(path, sizeof(path), "%s/options", scratch_folder());
	*args = (struct args){ .mode = -1 };
	r = opt_file_read(&cmd, path, -1, NULL, args, file, &e);
	if ((r < 0) != (e.msg[0] != '\0') || (r < 0 && !strstr(e.msg, "/options")))
		abort();
	return r;
}

static void put(struct strbuf *b, const char *name, const char *value)
{
	if (!value)
		return;
	if (strchr(value, '\n'))
		abort();
	strbuf_printf(b, "%s = \"%s\"\n", name, value);
}

static void write_again(const struct args *a, struct strbuf *b)
{
	strbuf_puts(b, "# again\n");
	put(b, "archive", a->archive);
	put(b, "container", a->containers);
	for (uint32_t i = 0; i < a->labels.n; i++)
		put(b, "label", a->labels.items[i]);
	if (a->mode >= 0)
		put(b, "mode", modes[a->mode]);
	if (a->hz)
		strbuf_printf(b, "frequency = %u\n", a->hz);
	if (a->every_s)
		strbuf_printf(b, "every=%.17g\n", a->every_s);
	if (a->quiet)
		strbuf_puts(b, "quiet\n");
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_same(const struct args *a, const struct args *b)
{
	bool is = a->quiet == b->quiet && a->hz == b->hz && a->every_s == b->every_s &&
		  a->mode == b->mode && same_text(a->archive, b->archive) &&
		  same_text(a->containers, b->containers) && a->labels.n == b->labels.n;

	for (uint32_t i = 0; is && i < a->labels.n; i++)
		is = same_text(a->labels.items[i], b->labels.items[i]);
	return is;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct opt_file file = { 0 }, file_again = { 0 };
	struct strbuf text = { 0 };
	struct args args, again;

	if (read_file(data, size, &args, &file) < 0)
		return 0;
	if (args.hz > 10000 || !(args.every_s >= 0 && args.every_s <= 1e7) || args.mode > 2)
		abort();
	write_again(&args, &text);
	/* With quotes and spaces it may have become longer than a file of options may be. */
	if (text.len < 65536 &&
	    (read_file(text.s, text.len, &again, &file_again) < 0 || !is_same(&args, &again)))
		abort();
	opt_file_fini(&file_again);
	opt_file_fini(&file);
	strbuf_free(&text);
	return 0;
}
