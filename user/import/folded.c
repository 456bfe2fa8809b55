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
#include "base/chunks.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/id_index.h"
#include "base/strbuf.h"
#include "import/readers.h"

#include <stdlib.h>

/* A frame as it is written, once for each text. */
struct frame_text {
	struct bytes text; /* with its suffix; the dict has it */
	string_id name;
	location_id alone; /* the place, when nothing is inlined into it; 0: not asked for yet */
	bool inlined, in_kernel;
};

/* A frame of the line before, where a group begins or not. */
struct line_frame {
	uint32_t at; /* where its text begins in the line */
	bool begins_group;
	stack_id stack; /* of what comes before it, when it begins a group */
};

struct folded {
	struct dict *d;
	struct profile *profile;
	module_id kernel;
	struct chunks texts; /* struct frame_text */
	struct id_index by_text;
	struct line *group;             /* a frame and what was inlined into it, outermost first */
	struct frame_text *group_frame; /* the outermost */
	uint32_t n_group, cap_group;
	struct strbuf before; /* the stack before, for what it has in common with the next */
	struct line_frame *before_frames;
	uint32_t n_before, cap_before;
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
	chunks_free(&f->texts);
	id_index_free(&f->by_text);
	free(f->group);
	strbuf_free(&f->before);
	free(f->before_frames);
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
	struct frame_text *outer = f->group_frame;
	module_id module = { 0 };
	location_id place;

	if (!f->n_group)
		return;
	if (outer->in_kernel)
		module = f->kernel;
	if (f->n_group == 1 && outer->alone.ix) {
		place = outer->alone;
	} else {
		reverse(f->group, f->n_group); /* the innermost first */
		place = dict_location_lines(f->d, module, 0, f->group, f->n_group);
		if (f->n_group == 1)
			outer->alone = place;
	}
	*stack = dict_stack_push(f->d, *stack, place);
	f->n_group = 0;
}

/* NULL: out of memory. */
static struct frame_text *frame_text(struct folded *f, struct bytes text)
{
	uint32_t hash = hash_bytes(text.data, text.len), ix;
	struct id_at at = id_index_begin(&f->by_text, hash);
	struct frame_text *t;
	const char *copy;

	while (id_index_next(&at, &ix)) {
		t = chunks_at(&f->texts, ix);
		if (t->text.len == text.len && !memcmp(t->text.data, text.data, text.len))
			return t;
	}
	t = chunks_add(&f->texts);
	if (!t || id_index_add(&f->by_text, hash, f->texts.n - 1) < 0)
		return NULL;
	copy = dict_str(f->d, dict_string_n(f->d, (const char *)text.data, text.len));
	t->text = bytes_of(copy, strlen(copy)); /* there may be a NUL in the file */
	t->inlined = take_suffix(&text, "_[i]");
	t->in_kernel = !t->inlined && take_suffix(&text, "_[k]");
	t->name = dict_string_n(f->d, (const char *)text.data, text.len);
	return dict_oom(f->d) ? NULL : t;
}

static int note_frame(struct folded *f, size_t at, bool begins_group, stack_id stack)
{
	if (!GROW(f->before_frames, f->n_before, f->cap_before))
		return -ENOMEM;
	f->before_frames[f->n_before++] = (struct line_frame){ (uint32_t)at, begins_group, stack };
	return 0;
}

static int add_frame(struct folded *f, struct bytes frame, size_t at, stack_id *stack)
{
	struct frame_text *text = frame_text(f, frame);
	bool begins = text && (!text->inlined || !f->n_group);

	if (!text)
		return -ENOMEM;
	if (begins) {
		push_group(f, stack);
		f->group_frame = text;
	}
	if (!GROW(f->group, f->n_group, f->cap_group))
		return -ENOMEM;
	f->group[f->n_group++] = (struct line){ .function = text->name };
	return note_frame(f, at, begins, *stack);
}

/* How many bytes both begin with. */
static size_t same_bytes(struct bytes a, struct bytes b)
{
	size_t most = a.len < b.len ? a.len : b.len, i = 0;
	uint64_t x, y;

	for (; i + sizeof(x) <= most; i += sizeof(x)) {
		memcpy(&x, a.data + i, sizeof(x));
		memcpy(&y, b.data + i, sizeof(y));
		if (x != y)
			return i + (size_t)__builtin_ctzll(x ^ y) / 8;
	}
	while (i < most && a.data[i] == b.data[i])
		i++;
	return i;
}

/*
 * Stacks are often sorted, so that a line begins as the one before it did: the frames that both have are not looked at
 * again. Where to begin, at a frame; what was inlined into the one before it belongs to that.
 */
static size_t begin_of_new(struct folded *f, struct bytes text, stack_id *ret_stack)
{
	size_t same = same_bytes(text, bytes_of(f->before.s, f->before.len));
	uint32_t n = f->n_before;

	while (n && f->before_frames[n - 1].at > same)
		n--;
	while (n) {
		const struct line_frame *frame = &f->before_frames[n - 1];
		struct bytes here = bytes_of(text.data + frame->at, text.len - frame->at);
		const uint8_t *end = memchr(here.data, ';', here.len);

		here = trim(bytes_of(here.data, end ? (size_t)(end - here.data) : here.len));
		/* Behind an empty one may come what is inlined. */
		if (frame->begins_group && here.len && !take_suffix(&here, "_[i]"))
			break;
		n--;
	}
	f->n_before = n ? n - 1 : 0;
	*ret_stack = n ? f->before_frames[n - 1].stack : (stack_id){ 0 };
	return n ? f->before_frames[n - 1].at : 0;
}

static int add_stack(struct folded *f, struct bytes text, int64_t count)
{
	stack_id stack;
	size_t at = begin_of_new(f, text, &stack);

	strbuf_reset(&f->before);
	strbuf_add(&f->before, text.data, text.len);
	if (strbuf_oom(&f->before))
		return -ENOMEM;
	while (at < text.len) {
		const uint8_t *from = text.data + at, *semi = memchr(from, ';', text.len - at);
		size_t len = semi ? (size_t)(semi - from) : text.len - at;
		struct bytes frame = trim(bytes_of(from, len));

		if (frame.len && add_frame(f, frame, at, &stack) < 0)
			return -ENOMEM;
		at += len + 1;
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
static int refuse(const struct folded *f, const struct input *in, const char *name, struct err *e)
{
	const char *what;
	int fault = input_fault(in, &what);

	if (f->good)
		return err_set(
			e, -EBADMSG,
			"%s: has two counts on each line, as difffolded.pl writes them: a comparison, not a profile; give the two profiles it was made from",
			name);
	if (!f->bad && fault < 0)
		return err_set(e, fault, "%s: %s", name, what);
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
	_cleanup_(folded_free) struct folded f = { .d = d, .texts = CHUNKS_OF(struct frame_text) };
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
		return refuse(&f, in, name, e);
	info->skipped_lines = f.bad;
	import_note_fault(in, info);
	*ret_profile = TAKE_PTR(f.profile);
	return 0;
}
