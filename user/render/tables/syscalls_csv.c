#include "render/tables/syscalls_csv.h"

#include "base/syscall_names.h"
#include "render/tables/csv_name.h"

static void put_errnos(const struct syscall_row *row, struct sink *out)
{
	for (uint32_t i = 0; i < row->n_errnos; i++) {
		const char *name = errno_name((int)row->errnos[i].error);

		sink_puts(out, i ? " " : "");
		if (name)
			sink_puts(out, name);
		else
			sink_printf(out, "%u", row->errnos[i].error);
		sink_printf(out, ":%lld", (long long)row->errnos[i].count);
	}
}

void csv_put_histogram(const int64_t parts[SYSCALL_HISTOGRAM], struct sink *out)
{
	const char *between = "";

	for (int i = 0; i < SYSCALL_HISTOGRAM; i++) {
		if (!parts[i])
			continue;
		sink_printf(out, "%s%lld:%lld", between, 64LL << i, (long long)parts[i]);
		between = " ";
	}
}

void syscalls_csv_write(const struct syscall_row *rows, uint32_t n, struct sink *out)
{
	sink_puts(out, "pid,comm,container,call,calls,calls_error,errors,errnos,time_ns,longest_ns,"
		       "p50_ns,p99_ns,no_return,in_flight,histogram\n");
	for (uint32_t i = 0; i < n; i++) {
		const struct syscall_row *row = &rows[i];

		sink_printf(out, "%u,", row->pid);
		csv_put_name(out, row->comm);
		sink_puts(out, ",");
		csv_put_name(out, row->container);
		sink_printf(out, ",%s,%lld,%lld,%lld,", row->name, (long long)row->calls,
			    (long long)syscall_calls_error(row->variance), (long long)row->errors);
		put_errnos(row, out);
		sink_printf(out, ",%lld,%lld,%lld,%lld,%lld,%lld,", (long long)row->ns,
			    (long long)row->max_ns, (long long)syscall_quantile(row, 0.5),
			    (long long)syscall_quantile(row, 0.99), (long long)row->no_return,
			    (long long)row->open);
		csv_put_histogram(row->parts, out);
		sink_puts(out, "\n");
	}
}
