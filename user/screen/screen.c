#include "screen/screen.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "screen/help.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>

#define MESSAGE_NS 6000000000ULL
enum { LINES_ABOVE = 2, LINES_BELOW = 1 }; /* title and status; hints */

/* --- views --- */

struct view *screen_top(const struct screen *s)
{
	return s->n_views ? s->views[s->n_views - 1] : NULL;
}

bool screen_push(struct screen *s, struct view *v)
{
	if (v && s->n_views == SCREEN_VIEWS) {
		v->ops->free(v);
		v = NULL;
	}
	if (v)
		s->views[s->n_views++] = v;
	else
		screen_say(s, "no memory for another view");
	return v != NULL;
}

void screen_pop(struct screen *s)
{
	struct view *v = screen_top(s);

	if (!v)
		return;
	s->n_views--;
	v->ops->free(v);
}

void screen_fini(struct screen *s)
{
	while (s->n_views)
		screen_pop(s);
	canvas_fini(&s->canvas);
}

void screen_say(struct screen *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->message, sizeof(s->message), fmt, ap);
	va_end(ap);
	s->message_until_ns = now_ns() + MESSAGE_NS;
}

/* --- keys --- */

static void begin_typing(struct screen *s, int what)
{
	struct view *v = screen_top(s);

	s->typing = what;
	snprintf(s->typed, sizeof(s->typed), "%s", what == TYPING_FILTER ? v->filter : "");
}

static void set_filter(struct view *v, const char *text)
{
	snprintf(v->filter, sizeof(v->filter), "%.*s", VIEW_TEXT_MAX - 1, text);
	v->stale = true;
}

/* What was typed applies as it is typed. */
static void apply_typed(struct screen *s)
{
	struct view *v = screen_top(s);

	if (s->typing == TYPING_QUESTION)
		return;
	if (s->typing == TYPING_FILTER) {
		set_filter(v, s->typed);
		return;
	}
	snprintf(v->search, sizeof(v->search), "%.*s", VIEW_TEXT_MAX - 1, s->typed);
	if (*v->search && view_arrange(v) == 0)
		view_find(v, v->cursor);
}

/* Goes to the next row with what is searched for, `from` so many rows on. A view that is no list has its own way. */
static void found(struct screen *s, struct view *v, uint32_t from)
{
	if (v->ops->act && v->ops->act(v, s, ACT_NEXT_MATCH))
		return;
	if (!view_find(v, v->cursor + from))
		screen_say(s, "\"%s\" is in no row", v->search);
}

static void ask(struct screen *s, struct view *v)
{
	const char *text = s->typed + strspn(s->typed, " ");

	if (!*text)
		return;
	snprintf(s->asked, sizeof(s->asked), "%s", text);
	v->ops->typed(v, s, text);
}

static void type_key(struct screen *s, uint32_t key)
{
	struct view *v = screen_top(s);
	size_t len = strlen(s->typed),
	       cap = s->typing == TYPING_QUESTION ? sizeof(s->typed) : VIEW_TEXT_MAX;
	char bytes[4];

	if (key == KEY_RETURN) {
		if (s->typing == TYPING_SEARCH && *v->search)
			found(s, v, 0);
		else if (s->typing == TYPING_QUESTION)
			ask(s, v);
		s->typing = TYPING_NOTHING;
	} else if (key == KEY_MOVE_UP && s->typing == TYPING_QUESTION) {
		snprintf(s->typed, sizeof(s->typed), "%s", s->asked);
	} else if (key == KEY_ESCAPE) {
		*s->typed = '\0';
		apply_typed(s);
		s->typing = TYPING_NOTHING;
	} else if (key == KEY_ERASE) {
		while (len && ((unsigned char)s->typed[--len] & 0xc0) == 0x80)
			;
		s->typed[len] = '\0';
		apply_typed(s);
	} else if (key >= ' ' && key < KEY_NONE && key != 0x7f && key >> 11 != 0x1b) {
		unsigned n = utf8_encode(key, bytes);

		if (len + n < cap) {
			memcpy(s->typed + len, bytes, n);
			s->typed[len + n] = '\0';
		}
		apply_typed(s);
	}
}

static void next_sort(struct view *v)
{
	if (v->sort >= v->n_columns)
		return;
	v->sort = (v->sort + 1) % v->n_columns;
	v->moved = false;
	v->stale = true;
}

static void back(struct screen *s, struct view *v)
{
	if (*v->search) {
		*v->search = '\0';
	} else if (*v->filter) {
		set_filter(v, "");
	} else if (s->n_views > 1) {
		screen_pop(s);
		screen_top(s)->stale = true;
	} else {
		screen_say(s, "q ends");
	}
}

static int page_of(const struct screen *s)
{
	int lines = s->canvas.rows - LINES_ABOVE - LINES_BELOW - 1;

	return lines > 1 ? lines : 1;
}

static void act(struct screen *s, enum action action)
{
	struct view *v = screen_top(s);

	if (v->ops->act && v->ops->act(v, s, action))
		return;
	switch (action) {
	case ACT_UP:
		view_move(v, -1, 1);
		break;
	case ACT_DOWN:
		view_move(v, 1, 1);
		break;
	case ACT_PAGE_UP:
		view_move(v, -1, page_of(s));
		break;
	case ACT_PAGE_DOWN:
		view_move(v, 1, page_of(s));
		break;
	case ACT_FIRST:
		view_move(v, -(int64_t)v->n_rows, 1);
		break;
	case ACT_LAST:
		view_move(v, v->n_rows, 1);
		break;
	case ACT_SEARCH:
		begin_typing(s, TYPING_SEARCH);
		break;
	case ACT_FILTER:
		begin_typing(s, TYPING_FILTER);
		break;
	case ACT_ASK:
		if (v->ops->typed)
			begin_typing(s, TYPING_QUESTION);
		break;
	case ACT_NEXT_MATCH:
		if (*v->search)
			found(s, v, 1);
		break;
	case ACT_SORT:
		next_sort(v);
		break;
	case ACT_REVERSE:
		v->reverse = !v->reverse;
		v->moved = false;
		v->stale = true;
		break;
	case ACT_PAUSE:
		s->paused = !s->paused;
		break;
	case ACT_HELP:
		if (v->ops->kind != IN_HELP)
			screen_push(s, help_new(v));
		else
			screen_pop(s);
		break;
	case ACT_BACK:
	case ACT_ENTER:
		if (action == ACT_BACK || v->ops->kind == IN_HELP)
			back(s, v);
		break;
	case ACT_REDRAW:
		s->redraw = true;
		break;
	case ACT_SUSPEND:
		s->suspend = true;
		break;
	case ACT_QUIT:
		/* As in less and htop: q leaves help, not the program. */
		if (v->ops->kind == IN_HELP)
			screen_pop(s);
		else
			s->end = true;
		break;
	default:
		break;
	}
}

void screen_key(struct screen *s, uint32_t key)
{
	struct view *v = screen_top(s);

	if (!v)
		return;
	s->message_until_ns = 0;
	if (s->typing && key == KEY_CTRL('c'))
		key = KEY_ESCAPE;
	if (view_arrange(v) < 0)
		s->end = true;
	else if (s->typing)
		type_key(s, key);
	else
		act(s, key_action(key, v->ops->kind));
}

void screen_mouse(struct screen *s, uint32_t key, int y, int x)
{
	struct view *v = screen_top(s);
	uint32_t row;

	if (!v || s->typing || view_arrange(v) < 0)
		return;
	if (key == KEY_WHEEL_UP || key == KEY_WHEEL_DOWN) {
		for (int i = 0; i < 3; i++)
			act(s, key == KEY_WHEEL_UP ? ACT_UP : ACT_DOWN);
		return;
	}
	if (v->ops->click) {
		if (!v->ops->click(v, y - LINES_ABOVE, x))
			return;
	} else {
		row = view_row_at(v, LINES_ABOVE, y);
		if (row == UINT32_MAX)
			return;
		view_move(v, (int64_t)row - (int64_t)v->cursor, 1);
	}
	if (key == KEY_DOUBLE_CLICK)
		act(s, key_action(key, v->ops->kind));
}

/* --- drawing --- */

static void draw_title(struct screen *s, const struct view *v, struct strbuf *text)
{
	struct canvas *c = &s->canvas;
	char clock[64];
	time_t now = time(NULL);
	struct tm tm;

	strbuf_reset(text);
	strftime(clock, sizeof(clock), " memscope top %H:%M:%S  ", localtime_r(&now, &tm));
	strbuf_puts(text, clock);
	strbuf_puts(text, s->paused ? "(paused) " : "");
	v->ops->title(v, text);
	if (*v->filter)
		strbuf_printf(text, ", with \"%s\"", v->filter);
	canvas_style(c, 0, 0, c->columns, STYLE_TITLE);
	canvas_put(c, 0, 0, c->columns, STYLE_TITLE, text->s ? text->s : "");
	strbuf_reset(text);
	if (v->ops->status)
		v->ops->status(v, text);
	canvas_put(c, 1, 1, c->columns - 1, STYLE_TEXT, text->s ? text->s : "");
}

static int draw_hint(struct canvas *c, int x, const struct key_row *k)
{
	char key[24];
	size_t len = strcspn(k->name, " ");
	int need;

	snprintf(key, sizeof(key), "%.*s", (int)len, k->name);
	need = (int)strlen(key) + 1 + (int)strlen(k->hint) + 2;
	if (x + need > c->columns)
		return x;
	x += canvas_put(c, c->rows - 1, x, c->columns - x, STYLE_KEY, key) + 1;
	return x + canvas_put(c, c->rows - 1, x, c->columns - x, STYLE_TEXT, k->hint) + 2;
}

/* Where `text` begins that its last `columns` characters are shown. */
static const char *last_columns(const char *text, int columns)
{
	const char *at = text + strlen(text);

	for (int n = 0; at > text && n < columns; n++)
		while (at > text && ((unsigned char)*--at & 0xc0) == 0x80)
			;
	return at;
}

static void draw_typing(struct screen *s, const struct view *v)
{
	static const char *const prompts[] = { [TYPING_SEARCH] = "search: ",
					       [TYPING_FILTER] = "filter: ",
					       [TYPING_QUESTION] = "ask: " };
	struct canvas *c = &s->canvas;
	int y = c->rows - 1, x = canvas_put(c, y, 0, c->columns, STYLE_KEY, prompts[s->typing]);

	if (c->columns - x < 2)
		return;
	x += canvas_put(c, y, x, c->columns - x, STYLE_KEY,
			last_columns(s->typed, c->columns - x - 1));
	x += canvas_put(c, y, x, c->columns - x, STYLE_KEY, "_");
	if (s->typing == TYPING_QUESTION && !*s->typed && v->ops->typed_help)
		canvas_put(c, y, x + 1, c->columns - x - 1, STYLE_DIM, v->ops->typed_help);
}

/* Upwards from the last line, as many lines as the message needs. */
static void draw_message(struct screen *s)
{
	struct canvas *c = &s->canvas;
	const char *at = s->message;
	char line[sizeof(s->message)];
	size_t width = c->columns > 8 ? (size_t)c->columns : 8, rest = strlen(at), y = 0, n;

	n = (rest + width - 1) / width;
	n = n > 4 ? 4 : n + (n > 1); /* one more, since lines end between words */
	if ((int)n > c->rows - 1)
		n = 1;
	for (y = (size_t)c->rows - n; *at && y < (size_t)c->rows; y++) {
		size_t len = strlen(at);

		if (len > width) {
			len = width;
			while (len && at[len] != ' ')
				len--;
			if (!len)
				len = width;
		}
		snprintf(line, sizeof(line), "%.*s%*s", (int)len, at, (int)(width - len), "");
		canvas_put(c, (int)y, 0, c->columns, STYLE_WARN, line);
		at += len + strspn(at + len, " ");
	}
}

static void draw_last_line(struct screen *s, const struct view *v)
{
	struct canvas *c = &s->canvas;
	int x = 0;

	if (s->typing) {
		draw_typing(s, v);
		return;
	}
	if (s->message_until_ns > now_ns()) {
		draw_message(s);
		return;
	}
	/* Help first: it has those that a narrow screen has no room for. */
	for (int help = 1; help >= 0; help--)
		for (const struct key_row *k = key_rows; k->name; k++)
			if ((k->in & v->ops->kind) && k->hint && help == (k->action == ACT_HELP))
				x = draw_hint(c, x, k);
}

int screen_draw(struct screen *s, int rows, int columns)
{
	_cleanup_(strbuf_free) struct strbuf text = { 0 };
	struct view *v = screen_top(s);
	struct canvas *c = &s->canvas;

	if (canvas_begin(c, rows, columns) < 0 || (v && view_arrange(v) < 0))
		return -ENOMEM;
	if (!v || rows < 1)
		return 0;
	draw_title(s, v, &text);
	if (rows > LINES_ABOVE + LINES_BELOW)
		(v->ops->draw ? v->ops->draw : view_draw)(v, c, LINES_ABOVE, rows - LINES_BELOW);
	if (rows > 1)
		draw_last_line(s, v);
	return 0;
}

/* --- batch --- */

enum { BATCH_COLUMNS = 512 };

/* Waits for what the view waits for; returns when it is due. */
static void wait_for(struct view *v, struct screen *s)
{
	uint64_t due = v->ops->due_ns ? v->ops->due_ns(v) : UINT64_MAX, now = now_ns();
	struct pollfd fd = { .fd = v->ops->fd ? v->ops->fd(v) : -1, .events = POLLIN };
	int ms = due == UINT64_MAX ? 1000 : due > now ? (int)((due - now) / 1000000 + 1) : 0;

	if (poll(&fd, 1, ms) >= 0 && v->ops->tick)
		v->ops->tick(v, s);
}

static int print_once(struct screen *s, FILE *to)
{
	struct view *v = screen_top(s);
	int rows, r;

	/* As many lines as there are rows, and no hints. */
	r = view_arrange(v);
	rows = LINES_ABOVE + 1 + (int)v->n_rows + LINES_BELOW;
	v->cursor = v->top = 0;
	if (r == 0)
		r = screen_draw(s, rows, BATCH_COLUMNS);
	for (int y = 0; r == 0 && y < rows - LINES_BELOW; y++)
		canvas_print(&s->canvas, y, to);
	fflush(to);
	return r;
}

int screen_batch(struct screen *s, uint32_t iterations, double delay_s, FILE *to, struct err *e)
{
	struct view *v = screen_top(s);

	for (uint32_t i = 0; iterations == 0 || i < iterations; i++) {
		uint64_t until = now_ns() + (uint64_t)(delay_s * 1e9);

		while (now_ns() < until || (v->ops->ready && !v->ops->ready(v)))
			wait_for(v, s);
		if (v->ops->failed && v->ops->failed(v))
			return err_set(e, -EIO, "%s", v->ops->failed(v));
		if (i)
			fputc('\n', to);
		if (print_once(s, to) < 0)
			return err_set(e, -ENOMEM, "out of memory");
		if (ferror(to))
			return err_set(e, -EIO, "cannot write: %s", strerror(errno));
		if (v->ops->ended && v->ops->ended(v))
			break;
	}
	return 0;
}
