#include "run/memory/rss_csv.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/whole_file.h"
#include "render/tables/ledger_csv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void write_text(struct rss_csv *csv, const struct strbuf *text)
{
	off_t end;
	int r;

	if (csv->fd < 0)
		return;
	end = lseek(csv->fd, 0, SEEK_END);
	r = !text->s || strbuf_oom(text) ? -ENOMEM : whole_file_write(csv->fd, text->s, text->len);
	if (r == 0)
		return;
	/* Half a row is none. */
	if (end < 0 || ftruncate(csv->fd, end) < 0)
		end = -1;
	run_note(csv->run, true, "rss_breakdown.csv is incomplete%s: %s",
		 end < 0 ? ", and ends inside a row" : "", strerror(-r));
	rss_csv_close(csv);
}

void rss_csv_open(struct rss_csv *csv, struct run *run, const char *path, bool by_pss)
{
	_cleanup_(strbuf_free) struct strbuf header = { 0 };

	csv->run = run;
	csv->fd =
		open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (csv->fd < 0)
		run_note(run, true, "%s: %s", path, strerror(errno));
	ledger_csv_header(by_pss, &header);
	write_text(csv, &header);
}

void rss_csv_row(struct rss_csv *csv, const struct ledger *l, int64_t traced)
{
	_cleanup_(strbuf_free) struct strbuf text = { 0 };

	if (!long_rows_due(&csv->long_rows, csv->run->cfg))
		return;
	ledger_csv_row(l, wall_ns(), traced, &text);
	write_text(csv, &text);
}

void rss_csv_close(struct rss_csv *csv)
{
	closep(&csv->fd);
	csv->fd = -1;
}
