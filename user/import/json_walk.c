#include "import/json_walk.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <yajl/yajl_parse.h>

/* --- memory: yajl looks at no result of its allocator --- */

/* All that yajl has. Where there is no more memory it is left by a jump, over frames of its own alone: it never allocates below ours. */
struct room {
	struct block {
		struct block *next, *before;
	} all; /* a ring */
	jmp_buf out;
};

static void *put_in(struct block *ring, struct block *b)
{
	b->next = ring->next;
	b->before = ring;
	b->next->before = b->before->next = b;
	return b + 1;
}

static void *room_take(void *ctx, size_t size)
{
	struct room *room = ctx;
	struct block *b = size < SIZE_MAX / 2 ? malloc(sizeof(*b) + size) : NULL;

	if (!b)
		longjmp(room->out, 1);
	return put_in(&room->all, b);
}

static void room_drop(void *ctx, void *at)
{
	struct block *b = at;

	if (!b)
		return;
	b--;
	b->next->before = b->before;
	b->before->next = b->next;
	free(b);
}

static void *room_resize(void *ctx, void *at, size_t size)
{
	struct room *room = ctx;
	struct block *b = at, *larger;

	if (!b)
		return room_take(ctx, size);
	larger = size < SIZE_MAX / 2 ? realloc(b - 1, sizeof(*b) + size) : NULL;
	if (!larger)
		longjmp(room->out, 1);
	larger->next->before = larger->before->next = larger;
	return larger + 1;
}

static void room_fini(struct room *room)
{
	while (room->all.next != &room->all)
		room_drop(room, room->all.next + 1);
}

/* --- what comes --- */

struct walk {
	json_fn fn;
	void *ctx;
	int error;
	struct json_step way[JSON_DEPTH];
	uint32_t depth;
	bool is_array[JSON_DEPTH + 1]; /* of what the step of that number is in */
};

/* The next element of the array that it is in, if it is in one. */
static void step_on(struct walk *w)
{
	if (w->depth && w->is_array[w->depth])
		w->way[w->depth - 1].index++;
}

static int pass(struct walk *w, enum json_type type, bool truth, struct bytes text)
{
	struct json_value v = { type, truth, text, w->way, w->depth };

	w->error = w->fn(w->ctx, &v);
	return w->error == 0;
}

static int on_value(struct walk *w, enum json_type type, bool truth, struct bytes text)
{
	step_on(w);
	return pass(w, type, truth, text);
}

static int on_null(void *ctx)
{
	return on_value(ctx, JSON_NULL, false, (struct bytes){ 0 });
}

static int on_bool(void *ctx, int truth)
{
	return on_value(ctx, JSON_BOOL, truth, (struct bytes){ 0 });
}

static int on_number(void *ctx, const char *s, size_t len)
{
	return on_value(ctx, JSON_NUMBER, false, bytes_of(s, len));
}

static int on_string(void *ctx, const unsigned char *s, size_t len)
{
	return on_value(ctx, JSON_STRING, false, bytes_of(s, len));
}

static int begin(struct walk *w, bool array)
{
	if (!on_value(w, JSON_BEGIN, false, (struct bytes){ 0 }))
		return 0;
	if (w->depth == JSON_DEPTH) {
		w->error = -EBADMSG;
		return 0;
	}
	w->way[w->depth++] = (struct json_step){ .in_array = array, .index = UINT64_MAX };
	w->is_array[w->depth] = array;
	return 1;
}

static int on_map(void *ctx)
{
	return begin(ctx, false);
}

static int on_array(void *ctx)
{
	return begin(ctx, true);
}

static int on_key(void *ctx, const unsigned char *s, size_t len)
{
	struct walk *w = ctx;
	struct json_step *step = &w->way[w->depth - 1];

	len = len < JSON_KEY - 1 ? len : JSON_KEY - 1;
	memcpy(step->key, s, len);
	step->key[len] = '\0';
	return 1;
}

static int on_end(void *ctx)
{
	struct walk *w = ctx;

	w->depth--;
	return pass(w, JSON_END, false, (struct bytes){ 0 });
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_bool,
	.yajl_number = on_number,
	.yajl_string = on_string,
	.yajl_start_map = on_map,
	.yajl_map_key = on_key,
	.yajl_end_map = on_end,
	.yajl_start_array = on_array,
	.yajl_end_array = on_end,
};

static int parse(struct walk *w, yajl_handle y, struct input *in, char *ret_what, size_t cap)
{
	yajl_status s = yajl_status_ok;
	struct bytes piece = { 0 };
	uint64_t before = 0;
	const char *what;

	while (s == yajl_status_ok && input_piece(in, &piece)) {
		before = input_offset(in) - piece.len;
		s = yajl_parse(y, piece.data, piece.len);
	}
	if (w->error && w->error != -EBADMSG)
		return w->error;
	if (s == yajl_status_ok && input_fault(in, &what) < 0) {
		snprintf(ret_what, cap, "%s", what);
		return input_fault(in, NULL) == -ENOMEM ? -ENOMEM : -EBADMSG;
	}
	if (s == yajl_status_ok) {
		before = input_offset(in);
		if (yajl_complete_parse(y) == yajl_status_ok && w->depth == 0)
			return w->error;
		snprintf(ret_what, cap, "the JSON ends at byte %" PRIu64 ", before it is complete",
			 before);
		return -EBADMSG;
	}
	snprintf(ret_what, cap,
		 w->error ? "JSON of more than 64 levels at byte %" PRIu64
			  : "no JSON at byte %" PRIu64,
		 before + yajl_get_bytes_consumed(y));
	return -EBADMSG;
}

static int parse_in(struct room *room, struct walk *w, struct input *in, char *ret_what, size_t cap)
{
	yajl_alloc_funcs of_room = { room_take, room_resize, room_drop, room };
	yajl_handle y;

	if (setjmp(room->out))
		return -ENOMEM;
	y = yajl_alloc(&callbacks, &of_room, w);
	/* Names may be of any bytes. */
	yajl_config(y, yajl_dont_validate_strings, 1);
	return parse(w, y, in, ret_what, cap);
}

int json_walk(struct input *in, json_fn fn, void *ctx, char *ret_what, size_t cap)
{
	struct walk *w = calloc(1, sizeof(*w));
	struct room room;
	int r = -ENOMEM;

	if (w) {
		room.all.next = room.all.before = &room.all;
		w->fn = fn;
		w->ctx = ctx;
		r = parse_in(&room, w, in, ret_what, cap);
		room_fini(&room);
	}
	free(w);
	return r;
}

bool json_is(const struct json_value *v, uint32_t i, const char *key)
{
	return i < v->depth && !v->way[i].in_array && strcmp(v->way[i].key, key) == 0;
}

bool json_in_array(const struct json_value *v, uint32_t i)
{
	return i < v->depth && v->way[i].in_array;
}

void json_copy_text(char *to, size_t cap, const struct json_value *v)
{
	if (v->type == JSON_STRING)
		snprintf(to, cap, "%.*s", (int)(v->text.len < cap ? v->text.len : cap - 1),
			 (const char *)v->text.data);
}

bool json_is_object(struct bytes head)
{
	while (head.len && strchr(" \t\r\n", head.data[0]))
		bytes_skip(&head, 1);
	return head.len && head.data[0] == '{';
}

bool json_integer(const struct json_value *v, int64_t scale, int64_t *ret)
{
	char text[64];
	int64_t n = 0;
	double x;
	size_t i = v->text.len && v->text.data[0] == '-';

	if (v->type != JSON_NUMBER || v->text.len >= sizeof(text))
		return false;
	for (; i < v->text.len && v->text.data[i] >= '0' && v->text.data[i] <= '9'; i++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, v->text.data[i] - '0', &n))
			return false;
	if (i == v->text.len) {
		if (__builtin_mul_overflow(n, v->text.data[0] == '-' ? -scale : scale, &n))
			return false;
		*ret = n;
		return true;
	}
	memcpy(text, v->text.data, v->text.len);
	text[v->text.len] = '\0';
	x = strtod(text, NULL) * (double)scale;
	if (!(fabs(x) < 0x1p62))
		return false;
	*ret = llround(x);
	return true;
}
