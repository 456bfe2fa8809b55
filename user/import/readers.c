#include "import/readers.h"

#include "base/strbuf.h"
#include "model/pprof.h"

#include <stdio.h>

enum { MAX_FILE_BYTES = 1 << 30 };

/*
 * Whatever is done with a profile looks at each frame of each stack, and formats that name a stack by its parent say a deep one
 * in a few bytes. This many frames take seconds; only made-up stacks are that deep on average and that many.
 */
enum { MANY_FRAMES = 1 << 28, DEEP_FRAMES = 4096 };

static int read_pprof(struct dict *d, struct bytes data, const char *name,
		      const struct import_opts *opts, struct import_info *info,
		      struct profile **ret_profile, struct err *e)
{
	return pprof_read(d, data.data, data.len, name, ret_profile, e);
}

/* Those that are known by a word at their front come first, what is any text last. */
const struct reader readers[] = {
	{ .name = "heap",
	  .help = "heap dumps of jemalloc (heap_v2), gperftools and tcmalloc",
	  .recognise = heap_dump_recognise,
	  .read = heap_dump_read },
	{ .name = "heaptrack",
	  .help = "heaptrack's data files, versions 1 to 3",
	  .recognise = heaptrack_recognise,
	  .read_input = heaptrack_read },
	{ .name = "massif",
	  .help = "massif's output: every detailed snapshot, and the totals of all",
	  .recognise = massif_recognise,
	  .read_input = massif_read },
	{ .name = "callgrind",
	  .help = "callgrind's and cachegrind's output",
	  .recognise = callgrind_recognise,
	  .read_input = callgrind_read },
	{ .name = "speedscope",
	  .help = "speedscope's own file, sampled or evented, of any unit",
	  .recognise = speedscope_recognise,
	  .read_input = speedscope_read },
	{ .name = "dhat",
	  .help = "DHAT's file, of valgrind or memscope",
	  .recognise = dhat_recognise,
	  .read_input = dhat_read },
	{ .name = "firefox",
	  .help = "the Firefox Profiler's processed format",
	  .recognise = firefox_recognise,
	  .read_input = firefox_read },
	{ .name = "eventlog",
	  .help = "GHC's eventlog (+RTS -l -hT, -hc, -hy …): what holds the heap over time",
	  .recognise = ghc_eventlog_recognise,
	  .read_input = ghc_eventlog_read },
	{ .name = "hp",
	  .help = "GHC's .hp file: what holds the heap over time",
	  .recognise = ghc_hp_recognise,
	  .read_input = ghc_hp_read },
	{ .name = "pprof",
	  .help = "pprof profile (profile.proto), as memscope, Go and others write it",
	  .recognise = pprof_recognise,
	  .by_all = true,
	  .read = read_pprof },
	{ .name = "perf",
	  .help = "what `perf script` prints",
	  .recognise = perf_script_recognise,
	  .read_input = perf_script_read },
	{ .name = "folded",
	  .help = "folded stacks: root;…;leaf COUNT on each line",
	  .recognise = folded_recognise,
	  .read_input = folded_read },
	{ 0 },
};

static int not_recognised(const char *name, struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf known = { 0 };

	for (const struct reader *r = readers; r->name; r++)
		strbuf_printf(&known, "%s%s", r == readers ? "" : ", ", r->name);
	return err_set(e, -EBADMSG, "%s: not a profile of a known format (%s)", name,
		       strbuf_oom(&known) ? "" : known.s);
}

/* What people give instead of what it was made from, or is to be made to. NULL: none of these. */
static const char *known_mistake(struct bytes data)
{
	static const char picture[] =
		"is a picture or a page; give the .pb.gz or .folded that it was made from";
	static const struct {
		const char *begin, *sentence;
	} known[] = {
		{ "<?xml", picture },
		{ "<svg", picture },
		{ "<!DOCTYPE", picture },
		{ "MSHEAP",
		  "is a snapshot of a heap: memscope heap census reads it, memscope heap diff compares two" },
		{ "<html", picture },
		{ "{\n", "is JSON, and no profile of a known format" },
		{ "{\"", "is JSON, and no profile of a known format" },
		{ "PERFILE2", "is a recording of perf; give what perf script -i prints of it" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (data.len >= strlen(known[i].begin) &&
		    memcmp(data.data, known[i].begin, strlen(known[i].begin)) == 0)
			return known[i].sentence;
	return NULL;
}

/* As much as the size of the file makes believable: what is read whole compresses 2 to 30 times. */
static size_t most_bytes(const struct input *in)
{
	const uint64_t least = 16 << 20, ratio = 256;
	uint64_t read = input_read_bytes(in);

	if (!input_is_packed(in) || read > (MAX_FILE_BYTES - least) / ratio)
		return MAX_FILE_BYTES;
	return least + read * ratio;
}

/* The rest of it, behind what is in `all`. */
static int read_all(struct input *in, const char *name, struct strbuf *all, struct err *e)
{
	struct bytes piece;
	const char *what;
	int r;

	while (input_piece(in, &piece)) {
		if (piece.len > most_bytes(in) - all->len)
			return err_set(
				e, -EFBIG,
				input_is_packed(in)
					? "%s: unpacks to more than %zu bytes: refused"
					: "%s: larger than any profile of its format (over %zu bytes)",
				name, most_bytes(in));
		strbuf_add(all, piece.data, piece.len);
		if (strbuf_oom(all))
			return err_set(e, -ENOMEM, "%s: out of memory while reading it", name);
	}
	r = input_fault(in, &what);
	return r < 0 ? err_set(e, r, "%s: %s", name, what) : 0;
}

static bool is_text(struct bytes head)
{
	for (size_t i = 0; i < head.len; i++)
		if (head.data[i] < '\b')
			return false;
	return true;
}

struct reading {
	struct input *in;
	const char *name;
	struct strbuf all; /* once somebody had to have it */
	bool has_all;
};

/* What the row is recognised by. */
static int look(struct reading *r, const struct reader *row, struct bytes *ret_bytes, struct err *e)
{
	int code = 0;

	if (r->has_all) {
		*ret_bytes = bytes_of(r->all.s ? r->all.s : "", r->all.len);
		return 0;
	}
	*ret_bytes = input_peek(r->in, IMPORT_HEAD);
	/* A shorter file is all here; and no 64 KiB of text begin what has another form throughout. */
	if (!row->by_all || ret_bytes->len < IMPORT_HEAD || is_text(*ret_bytes))
		return 0;
	code = read_all(r->in, r->name, &r->all, e);
	r->has_all = true;
	*ret_bytes = bytes_of(r->all.s ? r->all.s : "", r->all.len);
	return code;
}

static int read_row(struct dict *d, struct reading *r, const struct reader *row,
		    const struct import_opts *opts, struct import_info *info,
		    struct profile **ret_profile, struct err *e)
{
	_cleanup_(input_freep) struct input *of_all = NULL;
	int code = 0;

	if (row->read) {
		if (!r->has_all)
			code = read_all(r->in, r->name, &r->all, e);
		r->has_all = true;
		return code < 0 ? code
				: row->read(d, bytes_of(r->all.s, r->all.len), r->name, opts, info,
					    ret_profile, e);
	}
	if (r->has_all) {
		of_all = input_of_bytes(bytes_of(r->all.s, r->all.len));
		if (!of_all)
			return err_set(e, -ENOMEM, "%s: out of memory while reading it", r->name);
	}
	return row->read_input(d, of_all ? of_all : r->in, r->name, info, ret_profile, e);
}

int import_check_depths(const struct dict *d, const struct profile *p, const char *name,
			struct err *e)
{
	uint64_t n = profile_n_samples(p), frames = 0;

	if (n * dict_stack_count(d) <= MANY_FRAMES)
		return 0;
	for (uint64_t i = 0; i < n; i++) {
		frames += dict_stack_depth(d, profile_sample(p, (uint32_t)i).stack);
		if (frames > MANY_FRAMES && frames / (i + 1) > DEEP_FRAMES)
			return err_set(
				e, -EFBIG,
				"%s: its stacks are too deep: the first %llu have %llu frames",
				name, (unsigned long long)(i + 1), (unsigned long long)frames);
	}
	return 0;
}

static int read_input(struct dict *d, struct input *in, const char *name,
		      const struct import_opts *opts, struct profile **ret_profile,
		      struct import_info *ret_info, struct err *e)
{
	static const struct import_opts nothing_known;
	struct reading reading = { .in = in, .name = name };
	struct import_info info = { 0 };
	struct bytes head = input_peek(in, IMPORT_HEAD);
	const char *what;
	int r;

	if (!head.len && input_fault(in, &what) < 0)
		return err_set(e, input_fault(in, NULL), "%s: %s", name, what);
	if (!head.len)
		return err_set(e, -EBADMSG, "%s: is empty", name);
	r = 1;
	for (const struct reader *row = readers; r > 0 && row->name; row++) {
		r = look(&reading, row, &head, e);
		if (r < 0 || (r = !row->recognise(head)) > 0)
			continue;
		/* Any text might be the last row's. */
		if (!row[1].name && known_mistake(head))
			r = err_set(e, -EBADMSG, "%s: %s", name, known_mistake(head));
		info.format = row->name;
		if (r == 0)
			r = read_row(d, &reading, row, opts ? opts : &nothing_known, &info,
				     ret_profile, e);
	}
	if (r > 0)
		r = known_mistake(head) ? err_set(e, -EBADMSG, "%s: %s", name, known_mistake(head))
					: not_recognised(name, e);
	strbuf_free(&reading.all);
	if (r == 0) {
		r = import_check_depths(d, *ret_profile, name, e);
		if (r < 0)
			profile_free(TAKE_PTR(*ret_profile));
	}
	if (r == 0 && ret_info)
		*ret_info = info;
	return r;
}

void import_note_fault(const struct input *in, struct import_info *info)
{
	const char *what;

	if (input_fault(in, &what) < 0 && !info->damage[0])
		snprintf(info->damage, sizeof(info->damage),
			 "%s; what is in its first %llu lines was kept", what,
			 (unsigned long long)input_n_lines(in));
}

int import_bytes(struct dict *d, struct bytes data, const char *name,
		 const struct import_opts *opts, struct profile **ret_profile,
		 struct import_info *ret_info, struct err *e)
{
	_cleanup_(input_freep) struct input *in = input_of_bytes(data);

	if (!in)
		return err_set(e, -ENOMEM, "%s: out of memory while reading it", name);
	return read_input(d, in, name, opts, ret_profile, ret_info, e);
}

int import_fd(struct dict *d, int fd, const char *name, const struct import_opts *opts,
	      struct profile **ret_profile, struct import_info *ret_info, struct err *e)
{
	_cleanup_(input_freep) struct input *in = input_of_fd(fd);

	if (!in)
		return err_set(e, -ENOMEM, "%s: out of memory while reading it", name);
	return read_input(d, in, name, opts, ret_profile, ret_info, e);
}
