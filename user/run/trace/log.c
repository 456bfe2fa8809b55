#include "run/trace/log.h"
#include "analyse/syscall_text.h"
#include "analyse/trace_sums.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/syscall_names.h"
#include "collect/stream/trace.h"
#include "run/component.h"
#include "run/trace/stacks.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define LOG_MAX   (16u << 20) /* of lines that wait for earlier ones */
#define ALL_NS    (UINT64_MAX - 1)
#define TID_WIDTH 5
#define STACK_NS  2000000000ULL /* that lines wait for their stacks, at most */

/* A line that waits for its turn. */
struct log_line {
	uint64_t ns;
	uint32_t seq, at, len;
	struct trace_stack *stack; /* NULL: none */
};

/* A call that stands in the log as unfinished. */
struct unfinished {
	uint32_t tid;
	uint64_t begin_ns;
	UT_hash_handle hh;
};

struct trace_log {
	struct run *run;
	const struct trace_config *cfg;
	struct trace *trace;
	struct call_shape *shapes;
	struct log_line *lines;
	uint32_t n_lines, cap_lines, seq;
	struct strbuf text, line, part;
	struct strbuf
		rest; /* what becomes text: its memory is kept, for new pages cost more than the copy */
	struct unfinished *unfinished;
	struct trace_sums sums;
	struct trace_stacks *stacks;    /* NULL: not wanted */
	uint64_t lost, bytes, shown_ns; /* everything before shown_ns is out */
	int64_t wall_ns;                /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
	time_t second;
	char clock[16];
};

static bool wanted(const struct run_config *cfg)
{
	return cfg->trace;
}

/* --- lines --- */

static int earlier(const void *a, const void *b)
{
	const struct log_line *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static void out_of_memory(struct trace_log *l)
{
	l->run->oom = true;
}

/* What stands in l->line is in the log at `ns`. */
static void line_add(struct trace_log *l, uint64_t ns, const struct event_key *stack)
{
	struct log_line *line;

	if (l->line.len && GROW(l->lines, l->n_lines, l->cap_lines)) {
		line = &l->lines[l->n_lines++];
		*line = (struct log_line){ ns, l->seq++, (uint32_t)l->text.len,
					   (uint32_t)l->line.len, NULL };
		if (stack && l->stacks && !(line->stack = trace_stack_get(l->stacks, stack)))
			out_of_memory(l);
		strbuf_add(&l->text, l->line.s, l->line.len);
	}
	if (strbuf_oom(&l->text) || strbuf_oom(&l->line))
		out_of_memory(l);
	l->line.len = 0;
}

/* The first error is the reason. */
static void cannot_write(struct trace_log *l)
{
	if (!l->cfg->result->error)
		l->cfg->result->error = errno;
	run_ends(l->run, RUN_END_SIGNAL, "the log cannot be written");
}

static void put(struct trace_log *l, const char *text, size_t len)
{
	if (len && fwrite(text, 1, len, l->cfg->out) != len)
		cannot_write(l);
	l->bytes += len;
}

/* Of a JSON object the stack is the last key. */
static void write_line(struct trace_log *l, const struct log_line *line)
{
	size_t end = l->cfg->json ? 2 : 0, more = 0;
	const char *stack = NULL;

	if (line->stack)
		trace_stack_text(line->stack, &stack, &more);
	if (l->cfg->max_bytes && l->bytes + line->len + more > l->cfg->max_bytes) {
		run_ends(l->run, RUN_END_DURATION, "the log has reached its size");
	} else {
		put(l, l->text.s + line->at, line->len - end);
		put(l, stack, more);
		put(l, l->text.s + line->at + line->len - end, end);
	}
	if (line->stack)
		trace_stack_put(line->stack);
}

/* Is its stack known, or has it been waited for long enough? */
static bool is_ready(const struct log_line *line, uint64_t ns)
{
	const char *text;
	size_t len;

	return !line->stack || ns > line->ns + STACK_NS ||
	       trace_stack_text(line->stack, &text, &len);
}

/* Those of one thread come in order, and qsort() takes as much memory as there are lines. */
static void lines_sort(struct trace_log *l)
{
	for (uint32_t i = 1; i < l->n_lines; i++)
		if (earlier(&l->lines[i - 1], &l->lines[i]) > 0) {
			qsort(l->lines, l->n_lines, sizeof(*l->lines), earlier);
			return;
		}
}

/* Does the first of the lines of before `ns` wait for its stack in vain? */
static bool waits_long(const struct trace_log *l, uint64_t ns)
{
	return l->n_lines && l->lines[0].stack && ns > l->lines[0].ns + STACK_NS;
}

/* All that began before `ns`, up to a line whose stack has not come. */
static void lines_write(struct trace_log *l, uint64_t ns)
{
	uint32_t n = 0;

	lines_sort(l);
	if (l->stacks)
		trace_stacks_name(l->stacks, ns >= ALL_NS || waits_long(l, ns), now_ns());
	for (; n < l->n_lines && l->lines[n].ns < ns; n++) {
		if (!is_ready(&l->lines[n], ns)) {
			ns = l->lines[n].ns;
			break;
		}
		write_line(l, &l->lines[n]);
	}
	if (n == l->n_lines) {
		l->n_lines = 0;
		l->text.len = 0;
	} else {
		struct strbuf text = l->text;

		l->rest.len = 0;
		for (uint32_t i = n; i < l->n_lines; i++) {
			struct log_line line = l->lines[i];

			l->lines[i - n] = line;
			l->lines[i - n].at = (uint32_t)l->rest.len;
			strbuf_add(&l->rest, l->text.s + line.at, line.len);
		}
		l->n_lines -= n;
		l->text = l->rest;
		l->rest = text;
	}
	if (ns > l->shown_ns)
		l->shown_ns = ns;
	if (fflush(l->cfg->out) != 0)
		cannot_write(l);
}

/* --- a call --- */

static const struct call_shape *shape_of(const struct trace_log *l, const struct trace_event *ev)
{
	return &l->shapes[ev->compat || ev->nr >= TRACE_CALLS ? TRACE_CALLS : ev->nr];
}

static void head_put(struct trace_log *l, const struct trace_event *ev, uint64_t ns)
{
	int64_t wall = l->wall_ns + (int64_t)ns;
	time_t second = (time_t)(wall / 1000000000);
	struct tm tm;

	if (second != l->second) {
		strftime(l->clock, sizeof(l->clock), "%H:%M:%S", localtime_r(&second, &tm));
		l->second = second;
	}
	strbuf_unsigned(&l->line, ev->tid);
	do
		strbuf_putc(&l->line, ' ');
	while (l->line.len < TID_WIDTH + 1);
	strbuf_puts(&l->line, l->clock);
	strbuf_putc(&l->line, '.');
	strbuf_digits(&l->line, (uint64_t)wall % 1000000000 / 1000, 6);
	strbuf_putc(&l->line, ' ');
}

static void args_put(struct trace_log *l, const struct trace_event *ev,
		     const struct call_shape *shape)
{
	char room[SYSCALL_NAME_MAX];
	uint32_t n = call_n_args(shape, ev);

	strbuf_puts(&l->line, syscall_name(ev->nr, ev->compat, room));
	strbuf_putc(&l->line, '(');
	for (uint32_t i = 0; i < n; i++) {
		if (i)
			strbuf_add(&l->line, ", ", 2);
		call_arg_put(&l->line, shape, ev, i);
	}
}

static void result_put(struct trace_log *l, const struct trace_event *ev,
		       const struct call_shape *shape)
{
	strbuf_add(&l->line, " = ", 3);
	call_result_put(&l->line, shape, ev);
	if (ev->returns) {
		strbuf_puts(&l->line, " <");
		strbuf_unsigned(&l->line, ev->ns / 1000000000);
		strbuf_putc(&l->line, '.');
		strbuf_digits(&l->line, ev->ns % 1000000000 / 1000, 6);
		strbuf_putc(&l->line, '>');
	}
	strbuf_putc(&l->line, '\n');
}

/* What escaped text needs besides, in a JSON string: it is printable ASCII. */
static void json_put(struct strbuf *b, const struct strbuf *text)
{
	strbuf_add(b, "\"", 1);
	for (size_t i = 0; i < text->len; i++) {
		if (text->s[i] == '"' || text->s[i] == '\\')
			strbuf_add(b, "\\", 1);
		strbuf_add(b, text->s + i, 1);
	}
	strbuf_add(b, "\"", 1);
}

static void json_line(struct trace_log *l, const struct trace_event *ev,
		      const struct call_shape *shape, bool open)
{
	int64_t wall = l->wall_ns + (int64_t)ev->begin_ns;
	int error = call_error(ev);
	const char *name = error ? errno_name(error) : NULL;
	char room[SYSCALL_NAME_MAX];
	uint32_t n = call_n_args(shape, ev);

	strbuf_printf(&l->line,
		      "{\"time_ns\":%lld,\"pid\":%u,\"tid\":%u,\"call\":\"%s\",\"args\":[",
		      (long long)wall, ev->pid, ev->tid, syscall_name(ev->nr, ev->compat, room));
	for (uint32_t i = 0; i < n; i++) {
		l->part.len = 0;
		call_arg_put(&l->part, shape, ev, i);
		strbuf_puts(&l->line, i ? "," : "");
		json_put(&l->line, &l->part);
	}
	strbuf_puts(&l->line, "]");
	if (open)
		strbuf_puts(&l->line, ",\"unfinished\":true");
	else if (ev->returns) {
		strbuf_printf(&l->line, ",\"result\":%lld,\"duration_ns\":%llu",
			      error ? -1LL : (long long)ev->ret, (unsigned long long)ev->ns);
		if (name)
			strbuf_printf(&l->line, ",\"error\":\"%s\"", name);
		if (ev->result_file) {
			l->part.len = 0;
			call_result_put(&l->part, shape, ev);
			strbuf_puts(&l->line, ",\"result_text\":");
			json_put(&l->line, &l->part);
		}
	}
	strbuf_puts(&l->line, "}\n");
}

static void lost_put(struct trace_log *l, uint64_t sum, uint64_t ns)
{
	uint64_t lost = sum - l->lost;

	if (sum <= l->lost)
		return;
	l->lost = sum;
	strbuf_printf(&l->line,
		      l->cfg->json ? "{\"lost\":%llu}\n" : "--- %llu calls lost here ---\n",
		      (unsigned long long)lost);
	line_add(l, ns, NULL);
}

/* A call that has ended, or never returns. */
static void on_call(void *ctx, const struct trace_event *ev)
{
	struct trace_log *l = ctx;
	const struct call_shape *shape = shape_of(l, ev);
	struct unfinished *u;
	uint64_t at = ev->begin_ns;
	char room[SYSCALL_NAME_MAX];

	lost_put(l, ev->lost, ev->begin_ns);
	l->cfg->result->calls++;
	if (l->cfg->sums && trace_sums_add(&l->sums, ev) < 0)
		out_of_memory(l);
	HASH_FIND(hh, l->unfinished, &ev->tid, sizeof(ev->tid), u);
	if (u && u->begin_ns != ev->begin_ns)
		u = NULL;
	if (u || ev->begin_ns < l->shown_ns)
		at = ev->begin_ns + ev->ns;
	if (l->cfg->json) {
		json_line(l, ev, shape, false);
	} else {
		head_put(l, ev, u ? at : ev->begin_ns);
		if (u)
			strbuf_printf(&l->line, "<... %s resumed>",
				      syscall_name(ev->nr, ev->compat, room));
		if (!u)
			args_put(l, ev, shape);
		strbuf_puts(&l->line, ")");
		result_put(l, ev, shape);
	}
	line_add(l, at, ev->stack);
	if (u) {
		HASH_DEL(l->unfinished, u);
		free(u);
	}
}

static void unfinished_add(struct trace_log *l, const struct trace_event *ev, bool json)
{
	struct unfinished *u;

	HASH_FIND(hh, l->unfinished, &ev->tid, sizeof(ev->tid), u);
	if (u && u->begin_ns == ev->begin_ns)
		return;
	if (!u)
		u = hash_new(l->unfinished, tid, &ev->tid);
	if (!u) {
		out_of_memory(l);
		return;
	}
	u->begin_ns = ev->begin_ns;
	if (json) {
		json_line(l, ev, shape_of(l, ev), true);
	} else {
		head_put(l, ev, ev->begin_ns);
		args_put(l, ev, shape_of(l, ev));
		strbuf_puts(&l->line, " <unfinished ...>\n");
	}
	line_add(l, ev->begin_ns, NULL);
}

/* A call that threads are in: filters ask for its end, so it is not known whether it belongs in the log. */
static void on_open(void *ctx, const struct trace_event *ev)
{
	struct trace_log *l = ctx;

	if (ev->begin_ns < l->shown_ns || l->cfg->failed || l->cfg->min_ns || l->cfg->json)
		return;
	if (ev->begin_ns < now_ns() - TRACE_HOLD_NS)
		unfinished_add(l, ev, false);
}

static void on_last(void *ctx, const struct trace_event *ev)
{
	struct trace_log *l = ctx;

	if (!l->cfg->failed && !l->cfg->min_ns)
		unfinished_add(l, ev, l->cfg->json);
}

/* --- the run --- */

static int prepare(void *self, struct session_opts *opts, struct err *e)
{
	struct trace_log *l = self;
	double most;

	(void)e;
	l->cfg = l->run->cfg->trace;
	most = (double)l->cfg->max_rate * TRACE_WINDOW_NS / 1e9;
	opts->trace = true;
	opts->trace_failed = l->cfg->failed;
	opts->trace_stacks = l->cfg->stacks;
	opts->trace_min_ns = l->cfg->min_ns;
	opts->trace_most = l->cfg->max_rate && most < 1 ? 1 : (uint64_t)most;
	return 0;
}

static int take(struct trace_log *l, bool all, struct err *e)
{
	int r = trace_take(l->trace, all);

	if (r < 0)
		return err_set(e, r, "the ring of system calls cannot be read: %s", strerror(-r));
	if (l->text.len > LOG_MAX)
		lines_write(l, ALL_NS);
	if (l->shown_ns == ALL_NS)
		l->shown_ns = now_ns();
	return 0;
}

static int on_ready(void *ctx, struct err *e)
{
	return take(ctx, false, e);
}

static int open_log(void *self, struct err *e)
{
	_cleanup_(freep) struct trace_call *calls = calloc(TRACE_CALLS, sizeof(*calls));
	struct trace_log *l = self;
	int r;

	l->shapes = calloc(TRACE_CALLS + 1, sizeof(*l->shapes));
	if (!calls || !l->shapes)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t nr = 0; nr < TRACE_CALLS; nr++) {
		call_shape_of(nr, l->cfg->most_bytes, &l->shapes[nr], &calls[nr]);
		calls[nr].wanted = l->cfg->wanted[nr];
	}
	call_shape_of(UINT32_MAX, 0, &l->shapes[TRACE_CALLS], NULL);
	if (l->cfg->stacks && !(l->stacks = trace_stacks_new(l->run, l->cfg->json)))
		return err_set(e, -ENOMEM, "out of memory");
	l->wall_ns = wall_ns() - (int64_t)now_ns();
	l->second = -1;
	r = trace_new(l->run->session, calls, on_call, l, &l->trace, e);
	if (r == 0)
		r = loop_fd(l->run->loop, trace_fd(l->trace), on_ready, l);
	return r;
}

static void tick(void *self, uint64_t now)
{
	struct trace_log *l = self;

	if (on_ready(l, NULL) < 0 || trace_open_calls(l->trace, on_open, l) < 0)
		out_of_memory(l);
	lines_write(l, now - TRACE_HOLD_NS);
}

/* Beyond the log's size: it is short. */
static void sums_write(struct trace_log *l)
{
	l->line.len = 0;
	trace_sums_put(&l->sums, l->cfg->json, &l->line);
	if (strbuf_oom(&l->line))
		out_of_memory(l);
	else if (l->line.len && !l->cfg->result->error &&
		 (fwrite(l->line.s, 1, l->line.len, l->cfg->out) != l->line.len ||
		  fflush(l->cfg->out) != 0))
		l->cfg->result->error = errno;
}

static void end_log(struct trace_log *l)
{
	lines_write(l, UINT64_MAX);
	sums_write(l);
}

/* Where all stacks have come. */
static int finish(void *self, struct err *e)
{
	struct trace_log *l = self;

	(void)e;
	if (l->stacks)
		end_log(l);
	return 0;
}

static void closed(void *self)
{
	struct trace_log *l = self;
	uint64_t stats[N_STATS];

	if (!l->trace)
		return;
	take(l, true, NULL);
	drain_stats(l->run->drain, stats);
	l->cfg->result->lost = stats[STAT_TRACE_LOST];
	l->cfg->result->over = stats[STAT_TRACE_OVER];
	lost_put(l, l->cfg->result->lost + l->cfg->result->over, l->run->clock.end_ns);
	trace_open_calls(l->trace, on_last, l);
	if (!l->stacks)
		end_log(l);
}

static void free_log(void *self)
{
	struct trace_log *l = self;

	if (l->trace && l->run->loop)
		loop_fd_forget(l->run->loop, trace_fd(l->trace));
	trace_free(l->trace);
	hash_free(l->unfinished);
	trace_sums_fini(&l->sums);
	trace_stacks_free(l->stacks);
	strbuf_free(&l->text);
	strbuf_free(&l->rest);
	strbuf_free(&l->line);
	strbuf_free(&l->part);
	free(l->lines);
	free(l->shapes);
}

const struct component trace_component = {
	.name = "trace",
	.size = sizeof(struct trace_log),
	.wanted = wanted,
	.prepare = prepare,
	.open = open_log,
	.tick = tick,
	.closed = closed,
	.finish = finish,
	.free = free_log,
};
