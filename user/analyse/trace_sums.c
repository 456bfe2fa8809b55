#include "analyse/trace_sums.h"
#include "analyse/syscall_text.h"
#include "base/hash.h"
#include "base/syscall_names.h"

#include <errno.h>

struct error_count {
	int error;
	uint64_t count;
	UT_hash_handle hh;
};

struct trace_sum {
	uint64_t nr; /* of 32-bit programs above the others */
	uint64_t calls, ns, errors;
	struct error_count *by_error;
	UT_hash_handle hh;
};

#define OF_32BIT (1ull << 32)

int trace_sums_add(struct trace_sums *sums, const struct trace_event *ev)
{
	uint64_t nr = ev->nr | (ev->compat ? OF_32BIT : 0);
	int error = call_error(ev);
	struct error_count *count;
	struct trace_sum *row;

	HASH_FIND(hh, sums->rows, &nr, sizeof(nr), row);
	if (!row)
		row = hash_new(sums->rows, nr, &nr);
	if (!row)
		return -ENOMEM;
	row->calls++;
	row->ns += ev->ns;
	if (!error)
		return 0;
	row->errors++;
	HASH_FIND(hh, row->by_error, &error, sizeof(error), count);
	if (!count)
		count = hash_new(row->by_error, error, &error);
	if (!count)
		return -ENOMEM;
	count->count++;
	return 0;
}

static int longest_first(const struct trace_sum *a, const struct trace_sum *b)
{
	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	return (a->nr > b->nr) - (a->nr < b->nr);
}

static int most_first(const struct error_count *a, const struct error_count *b)
{
	if (a->count != b->count)
		return a->count < b->count ? 1 : -1;
	return (a->error > b->error) - (a->error < b->error);
}

static const char *call_name(const struct trace_sum *row, char room[SYSCALL_NAME_MAX])
{
	return syscall_name((uint32_t)row->nr, row->nr & OF_32BIT, room);
}

static void error_name_put(struct strbuf *b, int error)
{
	const char *name = errno_name(error);

	if (name)
		strbuf_puts(b, name);
	else
		strbuf_printf(b, "errno %d", error);
}

static void text_row(const struct trace_sum *row, uint64_t all_ns, struct strbuf *b)
{
	char room[SYSCALL_NAME_MAX];

	strbuf_printf(b, "%6.2f %11.6f %11llu %9llu ",
		      all_ns ? 100.0 * (double)row->ns / (double)all_ns : 0, (double)row->ns / 1e9,
		      (unsigned long long)(row->ns / row->calls / 1000),
		      (unsigned long long)row->calls);
	if (row->errors)
		strbuf_printf(b, "%9llu ", (unsigned long long)row->errors);
	else
		strbuf_printf(b, "%9s ", "");
	strbuf_puts(b, call_name(row, room));
	for (struct error_count *c = row->by_error; c; c = c->hh.next) {
		strbuf_puts(b, c == row->by_error ? ": " : ", ");
		strbuf_printf(b, "%llu ", (unsigned long long)c->count);
		error_name_put(b, c->error);
	}
	strbuf_putc(b, '\n');
}

static void text_put(const struct trace_sums *sums, struct strbuf *b)
{
	static const char rule[] =
		"------ ----------- ----------- --------- --------- ----------------\n";
	uint64_t ns = 0, calls = 0, errors = 0;
	const struct trace_sum *row;

	for (row = sums->rows; row; row = row->hh.next) {
		ns += row->ns;
		calls += row->calls;
		errors += row->errors;
	}
	strbuf_puts(b, "% time     seconds  usecs/call     calls    errors syscall\n");
	strbuf_puts(b, rule);
	for (row = sums->rows; row; row = row->hh.next)
		text_row(row, ns, b);
	strbuf_puts(b, rule);
	strbuf_printf(b, "100.00 %11.6f %11llu %9llu %9llu total\n", (double)ns / 1e9,
		      (unsigned long long)(ns / calls / 1000), (unsigned long long)calls,
		      (unsigned long long)errors);
}

static void json_row(const struct trace_sum *row, struct strbuf *b)
{
	char room[SYSCALL_NAME_MAX];

	strbuf_printf(b, "{\"call\":\"%s\",\"calls\":%llu,\"time_ns\":%llu,\"errors\":{",
		      call_name(row, room), (unsigned long long)row->calls,
		      (unsigned long long)row->ns);
	for (struct error_count *c = row->by_error; c; c = c->hh.next) {
		strbuf_puts(b, c == row->by_error ? "\"" : ",\"");
		error_name_put(b, c->error);
		strbuf_printf(b, "\":%llu", (unsigned long long)c->count);
	}
	strbuf_puts(b, "}}");
}

void trace_sums_put(struct trace_sums *sums, bool json, struct strbuf *b)
{
	if (!sums->rows)
		return;
	HASH_SORT(sums->rows, longest_first);
	for (struct trace_sum *row = sums->rows; row; row = row->hh.next)
		HASH_SORT(row->by_error, most_first);
	if (!json) {
		text_put(sums, b);
		return;
	}
	strbuf_puts(b, "{\"summary\":[");
	for (const struct trace_sum *row = sums->rows; row; row = row->hh.next) {
		strbuf_puts(b, row == sums->rows ? "" : ",");
		json_row(row, b);
	}
	strbuf_puts(b, "]}\n");
}

void trace_sums_fini(struct trace_sums *sums)
{
	for (struct trace_sum *row = sums->rows; row; row = row->hh.next)
		hash_free(row->by_error);
	hash_free(sums->rows);
}
