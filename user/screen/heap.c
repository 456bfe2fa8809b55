#include "screen/heap.h"
#include "base/clock.h"
#include "screen/heap_page.h"
#include "screen/screen.h"
#include "screen/worker.h"

#include <errno.h>
#include <string.h>

enum { PAGES_MAX = 32 };

/* A row of the table, or a line of a row's chain. */
struct line {
	uint32_t row;
	int32_t chain; /* below 0: the row itself */
};

struct heap_screen {
	struct view view; /* first */
	struct worker worker;
	struct answer_page *pages[PAGES_MAX];
	uint32_t n_pages;
	char title[160], asked[QUESTION_MAX], says[512];
	uint64_t asked_ns;  /* 0: nothing is being answered */
	struct line *lines; /* what is shown */
	uint32_t cap, by;
	bool ended;
};

static struct heap_screen *of(const struct view *v)
{
	return (struct heap_screen *)(uintptr_t)v;
}

static struct answer_page *page_of(const struct heap_screen *h)
{
	return h->n_pages ? h->pages[h->n_pages - 1] : NULL;
}

/* --- pages --- */

static void show_page(struct heap_screen *h)
{
	const struct answer_page *p = page_of(h);
	struct view *v = &h->view;

	v->columns = p ? p->columns : NULL;
	v->n_columns = p ? p->n_columns : 0;
	v->stale = true;
}

static void push_page(struct heap_screen *h, struct answer_page *p)
{
	struct view *v = &h->view;

	if (h->n_pages)
		page_of(h)->was = *v;
	if (h->n_pages == PAGES_MAX) {
		answer_page_free(h->pages[0]);
		memmove(h->pages, h->pages + 1, --h->n_pages * sizeof(*h->pages));
	}
	h->pages[h->n_pages++] = p;
	view_init(v, v->ops);
	v->sort = UINT32_MAX; /* as the question has it */
	show_page(h);
	/* One chain is what was asked for. */
	if (p->n_rows == 1)
		p->open[0] = true;
}

static bool pop_page(struct heap_screen *h)
{
	if (h->n_pages < 2)
		return false;
	answer_page_free(h->pages[--h->n_pages]);
	h->view = page_of(h)->was;
	show_page(h);
	return true;
}

static void forget_pages(struct heap_screen *h)
{
	while (h->n_pages)
		answer_page_free(h->pages[--h->n_pages]);
	h->view.n_rows = 0;
	show_page(h);
}

/* --- rows --- */

static double number_of(const cJSON *row, const char *key)
{
	const cJSON *item = cJSON_GetObjectItem(row, key);

	return cJSON_IsNumber(item) ? item->valuedouble : -1;
}

static const char *text_of(const cJSON *row, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(row, key));

	return text ? text : "";
}

static bool is_text(enum answer_kind kind)
{
	return answer_is_name(kind) || kind == ANSWER_ADDRESS;
}

static int by_column(const void *a, const void *b, void *ctx)
{
	const struct heap_screen *h = ctx;
	const struct answer_page *p = page_of(h);
	uint32_t x = ((const struct line *)a)->row, y = ((const struct line *)b)->row,
		 column = h->view.sort;
	int by = 0;

	if (column < p->n_columns && is_text(p->kinds[column])) {
		by = strcmp(text_of(p->rows[x], p->keys[column]),
			    text_of(p->rows[y], p->keys[column]));
	} else if (column < p->n_columns) {
		double m = number_of(p->rows[x], p->keys[column]),
		       n = number_of(p->rows[y], p->keys[column]);

		by = m < n ? 1 : m > n ? -1 : 0;
	}
	if (!by)
		by = x < y ? -1 : x > y;
	return h->view.reverse ? -by : by;
}

static const cJSON *chain_of(const struct answer_page *p, uint32_t row)
{
	return p->lines ? cJSON_GetObjectItem(p->rows[row], p->lines) : NULL;
}

static bool passes(const struct heap_screen *h, const struct answer_page *p, uint32_t row)
{
	const cJSON *line;

	for (uint32_t i = 0; i < p->n_columns; i++)
		if (view_passes(&h->view, text_of(p->rows[row], p->keys[i])))
			return true;
	cJSON_ArrayForEach(line, chain_of(p, row))
	{
		if (cJSON_IsString(line) && view_passes(&h->view, line->valuestring))
			return true;
	}
	return false;
}

static int arrange(struct view *v)
{
	struct heap_screen *h = of(v);
	const struct answer_page *p = page_of(h);
	_cleanup_(freep) struct line *rows = NULL;
	uint32_t n = 0, all = 0;

	v->n_rows = 0;
	if (!p)
		return 0;
	rows = calloc(p->n_rows + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_rows; i++)
		if (passes(h, p, i)) {
			rows[n++] = (struct line){ i, -1 };
			all += 1 + (p->open[i] ? (uint32_t)cJSON_GetArraySize(chain_of(p, i)) : 0);
		}
	if (all > h->cap) {
		struct line *more = reallocarray(h->lines, all, sizeof(*more));

		if (!more)
			return -ENOMEM;
		h->lines = more;
		h->cap = all;
	}
	qsort_r(rows, n, sizeof(*rows), by_column, h);
	for (uint32_t i = 0; i < n; i++) {
		int links = p->open[rows[i].row] ? cJSON_GetArraySize(chain_of(p, rows[i].row)) : 0;

		h->lines[v->n_rows++] = rows[i];
		for (int k = 0; k < links; k++)
			h->lines[v->n_rows++] = (struct line){ rows[i].row, k };
	}
	return 0;
}

/* Of a tree, as long as its rows are in the tree's order. */
static int depth_of(const struct heap_screen *h, const struct answer_page *p, uint32_t row_)
{
	double depth = number_of(p->rows[row_], "depth");
	bool tree = p->n_columns && p->kinds[p->n_columns - 1] == ANSWER_TREE;

	return tree && h->view.sort >= p->n_columns && depth > 0 && depth < 1000 ? (int)depth : 0;
}

static struct view_row row(const struct view *v, uint32_t i)
{
	const struct heap_screen *h = of(v);
	const struct answer_page *p = page_of(h);
	struct line l = h->lines[i];
	uint64_t key = ((uint64_t)l.row + 1) << 32 | (uint32_t)(l.chain + 1);

	if (l.chain >= 0)
		return (struct view_row){ key, 2 + l.chain, FOLD_LEAF, false };
	return (struct view_row){ key, depth_of(h, p, l.row),
				  !cJSON_GetArraySize(chain_of(p, l.row)) ? FOLD_LEAF
				  : p->open[l.row]                        ? FOLD_OPEN
									  : FOLD_CLOSED,
				  false };
}

static void cell(const struct view *v, uint32_t i, uint32_t column, struct strbuf *to)
{
	const struct heap_screen *h = of(v);
	const struct answer_page *p = page_of(h);
	struct line l = h->lines[i];
	const cJSON *item;

	if (l.chain >= 0) {
		item = cJSON_GetArrayItem(chain_of(p, l.row), l.chain);
		if (column + 1 == p->n_columns && cJSON_IsString(item))
			strbuf_puts(to, item->valuestring);
		return;
	}
	answer_page_put(p, l.row, column, to);
}

static void title(const struct view *v, struct strbuf *to)
{
	const struct heap_screen *h = of(v);
	const struct answer_page *p = page_of(h);

	strbuf_puts(to, "heap of ");
	strbuf_add_clean(to, h->title, strlen(h->title));
	if (!p)
		return;
	strbuf_puts(to, ": ");
	strbuf_add_clean(to, p->question, strlen(p->question));
	if (p->n_tables > 1)
		strbuf_printf(to, ", table %d of %d (Tab)", p->table + 1, p->n_tables);
}

static void status(const struct view *v, struct strbuf *to)
{
	const struct heap_screen *h = of(v);
	const struct answer_page *p = page_of(h);
	const cJSON *note;

	if (h->asked_ns) {
		strbuf_printf(to, "%s… %.0f s", *h->says ? h->says : h->asked,
			      (double)(now_ns() - h->asked_ns) / 1e9);
		return;
	}
	if (h->ended || !p) {
		strbuf_puts(to, h->says);
		return;
	}
	cJSON_ArrayForEach(note, cJSON_GetObjectItem(p->doc, "notes"))
	{
		if (cJSON_IsString(note))
			strbuf_printf(to, "%s%s", to->len ? "; " : "", note->valuestring);
	}
}

/* --- asking --- */

static void ask(struct heap_screen *h, struct screen *s, const char *question)
{
	if (h->ended) {
		screen_say(s, "the copy of the heap is gone");
	} else if (h->asked_ns) {
		screen_say(s, "still at \"%s\"", h->asked);
	} else if (h->worker.pid > 0 && worker_ask(&h->worker, question) == 0) {
		snprintf(h->asked, sizeof(h->asked), "%s", question);
		h->asked_ns = now_ns();
		*h->says = '\0';
	}
}

int heap_screen_take(struct view *v, const char *question, const char *json, size_t bytes)
{
	struct answer_page *p = NULL;
	int r = answer_page_read(question, json, bytes, &p);

	if (r == 0)
		push_page(of(v), p);
	return r;
}

static void take_message(struct heap_screen *h, struct screen *s, enum worker_message kind,
			 const char *data, size_t bytes)
{
	int shown = (int)(bytes < 500 ? bytes : 500);

	switch (kind) {
	case WORKER_SAYS:
		snprintf(h->says, sizeof(h->says), "%.*s", shown, data);
		break;
	case WORKER_ANSWER:
		h->asked_ns = 0;
		if (strcmp(h->asked, "again") == 0)
			forget_pages(h);
		if (heap_screen_take(&h->view, strcmp(h->asked, "again") ? h->asked : "census type",
				     data, bytes) < 0)
			screen_say(s, "the answer cannot be read");
		break;
	case WORKER_FAILED:
		h->asked_ns = 0;
		screen_say(s, "%.*s", shown, data);
		break;
	case WORKER_ENDED:
		h->ended = true;
		h->asked_ns = 0;
		snprintf(h->says, sizeof(h->says), "%.*s", shown, data);
		break;
	default:
		break;
	}
}

static void tick(struct view *v, struct screen *s)
{
	struct heap_screen *h = of(v);
	enum worker_message kind;
	const char *data;
	size_t bytes;
	int r;

	if (h->worker.from < 0)
		return;
	r = worker_read(&h->worker);
	while (worker_next(&h->worker, &kind, &data, &bytes))
		take_message(h, s, kind, data, bytes);
	if (r < 0) {
		if (!h->ended)
			snprintf(h->says, sizeof(h->says),
				 "what had the copy of the heap has ended unexpectedly");
		h->ended = true;
		h->asked_ns = 0;
		worker_stop(&h->worker);
	}
}

/* What keeps the row's objects: of one, by its address; else of its type, or of the type that has a container. */
static void ask_retainers(struct heap_screen *h, struct screen *s, uint32_t row_)
{
	const struct answer_page *p = page_of(h);
	const char *address = text_of(p->rows[row_], "address"),
		   *type = text_of(p->rows[row_], "type"), *in = text_of(p->rows[row_], "in"),
		   *through = text_of(p->rows[row_], "through"),
		   *site = text_of(p->rows[row_], "site");
	char question[QUESTION_MAX];

	if (*address)
		snprintf(question, sizeof(question), "retainers %.100s", address);
	else if (*type)
		snprintf(question, sizeof(question), "retainers type:%.400s", type);
	else if (*in) /* "Session+8": of a container, the objects that have it */
		snprintf(question, sizeof(question), "retainers type:%.*s",
			 (int)(strrchr(in, '+') ? strrchr(in, '+') - in : 400), in);
	else if (*site && *site != '(') /* "make_session (web.c:12)" */
		snprintf(question, sizeof(question), "retainers site = \"%.*s\"",
			 (int)(strstr(site, " (") ? strstr(site, " (") - site : 400), site);
	if (*address || *type || *in || (*site && *site != '('))
		ask(h, s, question);
	else if (*through)
		screen_say(s, "%s keeps it, with nothing between", through);
	else
		screen_say(s, "this row is of no one type");
}

static void fold(struct heap_screen *h, bool open)
{
	struct answer_page *p = page_of(h);
	uint32_t at = h->lines[h->view.cursor].row;

	p->open[at] = open;
	h->view.moved = true;
	h->view.at_key = ((uint64_t)at + 1) << 32;
	h->view.stale = true;
}

static void enter(struct heap_screen *h, struct screen *s, enum action action)
{
	struct answer_page *p = page_of(h);
	uint32_t at;

	if (!p || h->view.cursor >= h->view.n_rows)
		return;
	at = h->lines[h->view.cursor].row;
	if (action == ACT_CLOSE)
		fold(h, false);
	else if (cJSON_GetArraySize(chain_of(p, at)))
		fold(h, action == ACT_OPEN || !p->open[at]);
	else if (action == ACT_ENTER)
		ask_retainers(h, s, at);
}

static void next_table(struct heap_screen *h, struct screen *s)
{
	struct answer_page *p = page_of(h);
	struct view *v = &h->view;

	if (!p || p->n_tables < 2) {
		screen_say(s, "this answer has one table alone");
		return;
	}
	if (answer_page_choose(p, (p->table + 1) % p->n_tables) < 0) {
		p->n_rows = 0;
		screen_say(s, "no memory for the table");
	}
	v->sort = UINT32_MAX;
	v->moved = false;
	show_page(h);
}

static const char *const census[] = { "census type", "census module", "census two-level",
				      "census referrer", "census arena" };

static const struct {
	enum action action;
	const char *question;
} by_key[] = {
	{ ACT_CENSUS, "census type" },
	{ ACT_DOMINATORS, "dominators" },
	{ ACT_LEAKS, "leaks" },
	{ ACT_CACHES, "caches" },
	{ ACT_DUPS, "dups" },
	{ ACT_ALLOCATOR, "allocator" },
	{ ACT_FRAGMENTATION, "fragmentation" },
	{ ACT_REFCOUNTS, "refcounts" },
	{ ACT_THUNKS, "thunks" },
	{ ACT_COMPARE, "compare" },
	{ ACT_AGAIN, "again" },
	{ ACT_SAVE, "snapshot" },
};

static bool act(struct view *v, struct screen *s, enum action action)
{
	struct heap_screen *h = of(v);

	for (size_t i = 0; i < sizeof(by_key) / sizeof(*by_key); i++)
		if (by_key[i].action == action) {
			ask(h, s, by_key[i].question);
			return true;
		}
	switch (action) {
	case ACT_ENTER:
	case ACT_OPEN:
	case ACT_CLOSE:
		enter(h, s, action);
		return true;
	case ACT_BACK:
		return !*v->search && !*v->filter && pop_page(h);
	case ACT_BY:
		h->by = (h->by + 1) % (sizeof(census) / sizeof(*census));
		ask(h, s, census[h->by]);
		return true;
	case ACT_TABLE:
		next_table(h, s);
		return true;
	case ACT_SORT: /* from "as the question has it" to the first column, and round again */
		v->sort = v->sort + 1 < v->n_columns ? v->sort + 1
			  : v->sort == UINT32_MAX    ? 0
						     : UINT32_MAX;
		v->moved = false;
		v->stale = true;
		return true;
	default:
		return false;
	}
}

/* What was typed: a question, or the condition of a query. */
static void typed(struct view *v, struct screen *s, const char *text)
{
	ask(of(v), s, text);
}

static int view_fd(const struct view *v)
{
	return of(v)->worker.from;
}

static bool ready(const struct view *v)
{
	return of(v)->n_pages || of(v)->ended;
}

/* Nothing changes in a copy. */
static bool ended(const struct view *v)
{
	return ready(v);
}

static const char *failed(const struct view *v)
{
	return of(v)->ended && !of(v)->n_pages ? of(v)->says : NULL;
}

static void heap_screen_free(struct view *v)
{
	struct heap_screen *h = of(v);

	worker_stop(&h->worker);
	while (h->n_pages)
		answer_page_free(h->pages[--h->n_pages]);
	free(h->lines);
	free(h);
}

static const struct view_ops ops = {
	.kind = IN_HEAP,
	.name = "Heap",
	.sort = UINT32_MAX,
	.arrange = arrange,
	.row = row,
	.cell = cell,
	.title = title,
	.status = status,
	.act = act,
	.typed = typed,
	.typed_help =
		"a condition, like: type = dict and size > 4K; or a question: retainers 0x…, dups, caches, …",
	.fd = view_fd,
	.tick = tick,
	.ready = ready,
	.ended = ended,
	.failed = failed,
	.free = heap_screen_free,
};

struct view *heap_screen_of(const char *title_)
{
	struct heap_screen *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	view_init(&h->view, &ops);
	h->worker = (struct worker){ .from = -1, .to = -1 };
	snprintf(h->title, sizeof(h->title), "%s", title_);
	return &h->view;
}

int heap_screen_new(int (*work)(void *ctx, int in, int out), void *ctx, const char *title_,
		    struct view **ret_view, struct err *e)
{
	struct view *v = heap_screen_of(title_);
	int r;

	if (!v)
		return err_set(e, -ENOMEM, "out of memory");
	r = worker_start(&of(v)->worker, work, ctx, e);
	if (r < 0) {
		heap_screen_free(v);
		return r;
	}
	snprintf(of(v)->asked, sizeof(of(v)->asked), "census type");
	of(v)->asked_ns = now_ns();
	*ret_view = v;
	return 0;
}
