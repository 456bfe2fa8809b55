/*
 * Folded stacks, the text that flamegraph.pl reads: one line per stack,
 *
 *   root;caller;leaf 17
 *
 * The count is after the last blank, so names may have blanks in them. Suffixes as flamegraph.pl
 * documents them: `_[k]` a kernel frame, `_[i]` a call inlined into the frame before it; others
 * stay part of the name. A frame has no address: locations are distinguished by name. "# Title: TEXT #" and
 * "# Label: KEY=VALUE #", which memscope writes, are comments; other lines that begin with # are skipped.
 */
#include "base/grow.h"
#include "base/strbuf.h"
#include "import/readers.h"

#include <stdlib.h>

struct folded {
	struct dict *d;
	struct profile *profile;
	module_id kernel;
	struct line *group; /* a frame and what was inlined into it, outermost first */
	uint32_t n_group, cap_group;
	bool group_in_kernel;
	uint64_t good, two_columns;
	uint64_t bad, first_bad; /* count, and number of the first such line */
	struct strbuf bad_line;
	bool bad_is_longer;
	const char **comments; /* NULL-terminated, or NULL */
	uint32_t n_comments;
};

static void folded_free(struct folded *f)
{
	profile_free(f->profile);
	free(f->group);
	free(f->comments);
	strbuf_free(&f->bad_line);
}

bool folded_recognise(struct bytes data)
{
	size_t head = data.len < 4096 ? data.len : 4096;

	return head && !memchr(data.data, 0, head);
}

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

static struct bytes trim(struct bytes b)
{
	while (b.len && is_blank(b.data[b.len - 1]))
		b.len--;
	while (b.len && is_blank(b.data[0]))
		bytes_skip(&b, 1);
	return b;
}

/* Digits, with a fraction or not, rounded. -EBADMSG: another thing, or past INT64_MAX. */
static int parse_count(struct bytes b, int64_t *ret_count)
{
	int64_t v = 0;
	size_t i = 0;

	for (; i < b.len && is_digit(b.data[i]); i++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, b.data[i] - '0', &v))
			return -EBADMSG;
	if (!i)
		return -EBADMSG;
	if (i < b.len && b.data[i] == '.') {
		bool up = i + 1 < b.len && b.data[i + 1] >= '5';

		for (i++; i < b.len && is_digit(b.data[i]); i++)
			;
		if (__builtin_add_overflow(v, up, &v))
			return -EBADMSG;
	}
	if (i != b.len)
		return -EBADMSG;
	*ret_count = v;
	return 0;
}

/* "stack count" → both. */
static int split_count(struct bytes line, struct bytes *ret_stack, int64_t *ret_count)
{
	size_t at = line.len;
	struct bytes stack;

	while (at && !is_blank(line.data[at - 1]))
		at--;
	stack = trim(bytes_of(line.data, at));
	if (!stack.len)
		return -EBADMSG;
	if (parse_count(bytes_of(line.data + at, line.len - at), ret_count) < 0)
		return -EBADMSG;
	*ret_stack = stack;
	return 0;
}

static bool take_suffix(struct bytes *frame, const char *suffix)
{
	size_t len = strlen(suffix);

	if (frame->len <= len || memcmp(frame->data + frame->len - len, suffix, len))
		return false;
	frame->len -= len;
	return true;
}

static void reverse(struct line *lines, uint32_t n)
{
	for (uint32_t i = 0; i < n / 2; i++) {
		struct line swap = lines[i];

		lines[i] = lines[n - 1 - i];
		lines[n - 1 - i] = swap;
	}
}

/* The frame and what was inlined into it are one location. */
static void push_group(struct folded *f, stack_id *stack)
{
	module_id module = f->group_in_kernel ? f->kernel : (module_id){ 0 };

	if (!f->n_group)
		return;
	reverse(f->group, f->n_group); /* the innermost first */
	*stack = dict_stack_push(f->d, *stack,
				 dict_location_lines(f->d, module, 0, f->group, f->n_group));
	f->n_group = 0;
}

static int add_frame(struct folded *f, struct bytes frame, stack_id *stack)
{
	bool inlined = take_suffix(&frame, "_[i]");
	bool in_kernel = !inlined && take_suffix(&frame, "_[k]");

	if (!inlined || !f->n_group) {
		push_group(f, stack);
		f->group_in_kernel = in_kernel;
	}
	if (!GROW(f->group, f->n_group, f->cap_group))
		return -ENOMEM;
	f->group[f->n_group++] = (struct line){
		.function = dict_string_n(f->d, (const char *)frame.data, frame.len),
	};
	return 0;
}

static int add_stack(struct folded *f, struct bytes text, int64_t count)
{
	stack_id stack = { 0 };

	while (text.len) {
		const uint8_t *semi = memchr(text.data, ';', text.len);
		struct bytes frame;

		bytes_take(&text, semi ? (size_t)(semi - text.data) : text.len, &frame);
		bytes_skip(&text, semi ? 1 : 0);
		frame = trim(frame);
		if (frame.len && add_frame(f, frame, &stack) < 0)
			return -ENOMEM;
	}
	push_group(f, &stack);
	return profile_add(f->profile, stack, (labels_id){ 0 }, &count);
}

/* "# Title: TEXT #" → "Title: TEXT" */
static int add_comment(struct folded *f, struct bytes line)
{
	const char **comments;

	bytes_skip(&line, 1);
	line = trim(line);
	if (!line.len || line.data[line.len - 1] != '#')
		return 0;
	line.len--;
	line = trim(line);
	comments = reallocarray(f->comments, f->n_comments + 2ul, sizeof(*comments));
	if (!comments)
		return -ENOMEM;
	f->comments = comments;
	comments[f->n_comments++] =
		dict_str(f->d, dict_string_n(f->d, (const char *)line.data, line.len));
	comments[f->n_comments] = NULL;
	return 0;
}

static int add_line(struct folded *f, struct bytes line, uint64_t number)
{
	struct bytes stack, rest;
	int64_t count, other;

	line = trim(line);
	if (!line.len)
		return 0;
	if (split_count(line, &stack, &count) < 0) {
		if (line.data[0] == '#')
			return add_comment(f, line);
		if (!f->bad++) {
			f->first_bad = number;
			strbuf_add_clean(&f->bad_line, (const char *)line.data,
					 line.len < 60 ? line.len : 60);
			f->bad_is_longer = line.len > 60;
		}
		return 0;
	}
	f->good++;
	f->two_columns += split_count(stack, &rest, &other) == 0;
	return add_stack(f, stack, count);
}

/* Why there is no profile in this text. */
static int refuse(const struct folded *f, const char *name, struct err *e)
{
	if (f->good)
		return err_set(
			e, -EBADMSG,
			"%s: has two counts on each line, as difffolded.pl writes them: a comparison, not a profile; give the two profiles it was made from",
			name);
	if (!f->bad)
		return err_set(e, -EBADMSG, "%s: holds nothing but blank lines", name);
	return err_set(
		e, -EBADMSG,
		"%s: no profile: neither pprof, perf script nor a heap dump, and no line is a folded stack (frame;frame;… COUNT); line %llu is \"%s%s\"",
		name, (unsigned long long)f->first_bad, f->bad_line.s ? f->bad_line.s : "",
		f->bad_is_longer ? "…" : "");
}

int folded_read(struct dict *d, struct input *in, const char *name, struct import_info *info,
		struct profile **ret_profile, struct err *e)
{
	const struct value_type samples = { "samples", "count" };
	_cleanup_(folded_free) struct folded f = { .d = d };
	struct module kernel = { .kind = MODULE_KERNEL, .path = dict_string(d, "[kernel]") };
	struct bytes line;
	int r = 0;

	f.kernel = dict_module(d, &kernel);
	f.profile = profile_new(d, &samples, 1);
	if (!f.profile)
		r = -ENOMEM;
	while (r == 0 && input_line(in, &line))
		r = add_line(&f, line, input_n_lines(in));
	if (r == 0)
		r = profile_set_meta(f.profile, &(struct profile_meta){ .period_type = { "", "" },
									.comments = f.comments });
	if (r < 0 || dict_oom(d))
		return err_set(e, -ENOMEM, "%s: out of memory while reading it", name);
	if (!f.good || f.two_columns == f.good)
		return refuse(&f, name, e);
	info->skipped_lines = f.bad;
	import_note_fault(in, info);
	*ret_profile = TAKE_PTR(f.profile);
	return 0;
}
