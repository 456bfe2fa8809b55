#include "render/tables/ledger_csv.h"

#include "render/tables/csv_name.h"

/* What was traced and what was there before is separated at the end only. */
static bool is_column(enum ledger_part part)
{
	return part != LEDGER_TRACED && part != LEDGER_BEFORE;
}

void ledger_csv_header(bool by_pss, struct strbuf *out)
{
	strbuf_puts(out, by_pss ? "timestamp,pss" : "timestamp,rss");
	for (int i = 0; i < N_LEDGER_PARTS; i++)
		if (is_column((enum ledger_part)i))
			strbuf_printf(out, ",%s", ledger_name((enum ledger_part)i));
	strbuf_puts(out, ",unexplained,live_blocks,live_bytes,traced_bytes");
	strbuf_puts(out, by_pss ? ",processes,not_read,not_read_rss\n" : "\n");
}

void ledger_csv_row(const struct ledger *l, int64_t time_ns, int64_t traced, struct strbuf *out)
{
	const struct ledger_row *live = &l->parts[LEDGER_LIVE];

	csv_time_add(out, time_ns);
	strbuf_printf(out, ",%lld", (long long)ledger_total(l));
	for (int i = 0; i < N_LEDGER_PARTS; i++)
		if (is_column((enum ledger_part)i))
			strbuf_printf(out, ",%lld", (long long)ledger_part_bytes(l, &l->parts[i]));
	strbuf_printf(out, ",%lld,%lld,%lld,", (long long)ledger_unexplained(l),
		      (long long)live->blocks, (long long)live->bytes);
	if (traced >= 0)
		strbuf_printf(out, "%lld", (long long)traced);
	if (l->by_pss)
		strbuf_printf(out, ",%u,%u,%lld", l->processes, l->not_read,
			      (long long)l->not_read_rss);
	strbuf_putc(out, '\n');
}
