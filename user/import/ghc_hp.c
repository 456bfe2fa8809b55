/*
 * GHC's .hp files (+RTS -hT and its like without -l), which hp2ps reads: lines
 *
 *   JOB "program +RTS -hT"      DATE "…"      SAMPLE_UNIT "seconds"      VALUE_UNIT "bytes"
 *   BEGIN_SAMPLE 0.039666
 *   base:GHC.MVar.MVar<TAB>16
 *   END_SAMPLE 0.039666
 *
 * A name goes up to the last tab and is one frame, also of cost-centre stacks, which GHC cuts to 25 characters here (-L). A
 * sample's time is the CPU time of the program outside the collector, not that of a clock. A last sample without its end,
 * of a program that was killed, is left out. GHC ends a file with a sample that holds nothing.
 */
#include "base/strbuf.h"
#include "import/censuses.h"
#include "import/readers.h"
#include "import/scan.h"
#include "model/about.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct hp {
	struct dict *d;
	struct censuses censuses;
	string_id job;
	uint64_t end_ns, skipped, samples;
	bool of_other_units, ended; /* ended: the last sample held nothing */
};

/* BEGIN_SAMPLE 12.34: in ns. */
static bool sample_time(struct bytes line, const char *word, uint64_t *ret_ns)
{
	uint64_t whole = 0, part = 0, scale = 1000000000;
	size_t i = 0;

	if (!scan_text(&line, word))
		return false;
	scan_blanks(&line);
	for (; i < line.len && scan_is_digit(line.data[i]); i++) {
		whole = whole * 10 + (uint64_t)(line.data[i] - '0');
		if (whole > 1000000000)
			return false;
	}
	if (!i)
		return false;
	if (i < line.len && line.data[i] == '.')
		for (i++; i < line.len && scan_is_digit(line.data[i]) && scale > 1; i++) {
			scale /= 10;
			part += scale * (uint64_t)(line.data[i] - '0');
		}
	*ret_ns = whole * 1000000000 + part;
	return true;
}

/* JOB "text" → text */
static bool quoted(struct bytes line, const char *word, struct bytes *ret_text)
{
	if (!scan_text(&line, word))
		return false;
	line = scan_trim(line);
	if (line.len >= 2 && line.data[0] == '"' && line.data[line.len - 1] == '"')
		line = bytes_of(line.data + 1, line.len - 2);
	*ret_text = line;
	return true;
}

static bool is_text(struct bytes b, const char *text)
{
	return b.len == strlen(text) && memcmp(b.data, text, b.len) == 0;
}

/* NAME<TAB>BYTES */
static int band(struct hp *h, struct bytes line)
{
	size_t at = line.len;
	struct line named = { 0 };
	location_id location;
	struct bytes number;
	int64_t bytes;

	while (at && line.data[at - 1] != '\t')
		at--;
	number = bytes_of(line.data + at, line.len - at);
	if (at < 2 || !h->censuses.open || !scan_number(&number, &bytes) || bytes < 0) {
		h->skipped++;
		return 0;
	}
	named.function = dict_string_n(h->d, (const char *)line.data, at - 1);
	location = dict_location_lines(h->d, (module_id){ 0 }, 0, &named, 1);
	return censuses_add(&h->censuses, dict_stack(h->d, &location, 1).ix, bytes);
}

static int header(struct hp *h, struct bytes line, bool *ret_known)
{
	struct bytes text;

	*ret_known = true;
	if (quoted(line, "JOB", &text))
		h->job = dict_string_n(h->d, (const char *)text.data, text.len);
	else if (quoted(line, "VALUE_UNIT", &text))
		h->of_other_units |= !is_text(text, "bytes");
	else if (quoted(line, "SAMPLE_UNIT", &text))
		h->of_other_units |= !is_text(text, "seconds");
	else
		*ret_known = quoted(line, "DATE", &text) || quoted(line, "MARK", &text);
	return 0;
}

static int add_line(struct hp *h, struct bytes line)
{
	bool known = false;
	uint64_t ns;

	if (!line.len)
		return 0;
	if (sample_time(line, "BEGIN_SAMPLE", &ns)) {
		censuses_begin(&h->censuses, ns);
		return 0;
	}
	if (sample_time(line, "END_SAMPLE", &ns)) {
		h->end_ns = ns > h->end_ns ? ns : h->end_ns;
		/* One that holds nothing is the file's begin or end. */
		h->ended = !h->censuses.total;
		return h->ended ? 0 : censuses_end(&h->censuses);
	}
	if (!h->censuses.open && header(h, line, &known) == 0 && known)
		return 0;
	return band(h, line);
}

static stack_id stack_of(void *ctx, uint64_t key)
{
	(void)ctx;
	return (stack_id){ (uint32_t)key };
}

static int finish(struct hp *h, bool whole, struct profile **ret_profile)
{
	const char *job = dict_str(h->d, h->job), *comments[] = { NULL, NULL };
	struct profile_meta meta = { .period_type = { "", "" }, .comments = comments };
	struct label comm = { .key = dict_string(h->d, "comm") };
	size_t len = strcspn(job, " ");
	char target[256];

	while (len && memchr(job, '/', len)) {
		const char *slash = memchr(job, '/', len);

		len -= (size_t)(slash + 1 - job);
		job = slash + 1;
	}
	comm.str = dict_string_n(h->d, job, len);
	if (len) {
		snprintf(target, sizeof(target), "%s%.*s", about_prefix(ABOUT_TARGET),
			 (int)(len < 200 ? len : 200), job);
		comments[0] = target;
	}
	return censuses_finish(
		&h->censuses, h->d,
		&(struct censuses_made){ .stack_of = stack_of,
					 .labels = dict_labels(h->d, &comm, comm.str.ix != 0),
					 .end_ns = h->end_ns,
					 .whole = whole,
					 .meta = &meta },
		ret_profile);
}

bool ghc_hp_recognise(struct bytes data)
{
	return data.len >= 5 && memcmp(data.data, "JOB \"", 5) == 0;
}

int ghc_hp_read(struct dict *d, struct input *in, const char *name, struct import_info *info,
		struct profile **ret_profile, struct err *e)
{
	struct hp h = { .d = d };
	struct bytes line;
	bool cut;
	int r = 0;

	censuses_init(&h.censuses, 0);
	while (r == 0 && input_line(in, &line))
		r = add_line(&h, line);
	import_note_fault(in, info);
	/* A sample that was begun and holds something. */
	cut = h.censuses.open && h.censuses.total;
	if (cut && !info->damage[0])
		snprintf(info->damage, sizeof(info->damage),
			 "it ends at byte %" PRIu64
			 ", within a sample, which is left out; kept: %" PRIu64 " whole samples",
			 input_offset(in), h.censuses.n_censuses);
	if (h.of_other_units)
		r = err_set(e, -EBADMSG, "%s: its samples are not of bytes at seconds", name);
	else if (r < 0 || finish(&h, h.ended, ret_profile) < 0 || dict_oom(d))
		r = err_set(e, -ENOMEM, "%s: out of memory while reading it", name);
	else
		info->skipped_lines = h.skipped;
	censuses_fini(&h.censuses);
	return r;
}
