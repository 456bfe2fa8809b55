/*
 * Pyroscope's push.v1.PusherService/Push, by Connect's protocol for unary calls: a plain POST of the message (grafana/pyroscope
 * api/push/v1/push.proto; connectrpc.com/docs/protocol).
 *
 *   PushRequest       1 series: RawProfileSeries
 *   RawProfileSeries  1 labels: LabelPair {1 name, 2 value}   2 samples: RawSample
 *   RawSample         1 raw_profile: pprof, gzipped           2 ID: a UUID
 *
 * The profile's type is `__name__` with what the pprof says: process_cpu:cpu:nanoseconds:cpu:nanoseconds. `__delta__` "false": values
 * are those of the window, not sums since a process began, which the store would subtract.
 */
#include "base/strbuf.h"
#include "model/pprof.h"
#include "run/push/parts.h"
#include "run/push/protocol.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void put_varint(struct strbuf *out, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		strbuf_putc(out, (char)(v | 0x80));
	strbuf_putc(out, (char)v);
}

static void put_bytes(struct strbuf *out, unsigned field, const void *data, size_t len)
{
	put_varint(out, field << 3 | 2);
	put_varint(out, len);
	if (len)
		strbuf_add(out, data, len);
}

static void put_label(struct strbuf *series, const char *name, const char *value)
{
	struct strbuf pair = { 0 };

	put_bytes(&pair, 1, name, strlen(name));
	put_bytes(&pair, 2, value, strlen(value));
	series->oom |= pair.oom;
	put_bytes(series, 1, pair.s, pair.len);
	strbuf_free(&pair);
}

/* Two of ours may have become one for Prometheus: the first stays. */
static bool has_before(const struct push_labels *labels, uint32_t at, const char *name)
{
	char other[256];

	for (uint32_t i = 0; i < at; i++) {
		push_label_name(labels->list[i].name, other, sizeof(other));
		if (strcmp(other, name) == 0)
			return true;
	}
	return false;
}

static void put_labels(struct strbuf *series, const struct push_item *item)
{
	put_label(series, "__name__", parts_name(item->kind));
	put_label(series, "__delta__", "false");
	for (uint32_t i = 0; i < item->labels->n; i++) {
		char name[256];

		push_label_name(item->labels->list[i].name, name, sizeof(name));
		if (!has_before(item->labels, i, name))
			put_label(series, name, item->labels->list[i].value);
	}
}

static int put_profile(struct strbuf *sample, const struct profile *p, struct err *e)
{
	_cleanup_(sink_closep) struct sink *pprof = NULL;
	const char *bytes;
	size_t len;
	int rc = sink_open_memory(&pprof, e);

	if (rc == 0)
		rc = sink_gzip(pprof, e);
	if (rc == 0)
		rc = pprof_write(p, (module_id){ 0 }, pprof, e);
	if (rc == 0)
		rc = sink_commit(pprof, e);
	if (rc < 0)
		return rc;
	bytes = sink_memory(pprof, &len);
	put_bytes(sample, 1, bytes, len);
	return 0;
}

static void put_uuid(struct strbuf *sample, const uint8_t id[16])
{
	char text[40];
	size_t n = 0;

	for (int i = 0; i < 16; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%02x",
				      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
	put_bytes(sample, 2, text, n);
}

int push_pyroscope_body(const struct push_item *item, struct sink *out, struct err *e)
{
	struct strbuf sample = { 0 }, series = { 0 }, request = { 0 };
	int rc = put_profile(&sample, item->profile, e);

	if (rc == 0) {
		put_uuid(&sample, item->id);
		put_labels(&series, item);
		put_bytes(&series, 2, sample.s, sample.len);
		put_bytes(&request, 1, series.s, series.len);
		if (sample.oom || series.oom || request.oom)
			rc = err_set(e, -ENOMEM, "out of memory");
		else
			sink_write(out, request.s, request.len);
	}
	strbuf_free(&sample);
	strbuf_free(&series);
	strbuf_free(&request);
	return rc;
}

/* Connect answers a good call with status 200 and the type that was asked in; a page is somebody else's. */
enum push_verdict push_pyroscope_verdict(const struct http_answer *a, uint64_t *ret_rejected,
					 char *why, size_t cap)
{
	enum push_verdict verdict = push_status_verdict(a, why, cap);

	*ret_rejected = 0;
	if (verdict != PUSH_TAKEN || strncmp(a->type, "application/proto", 17) == 0)
		return verdict;
	snprintf(
		why, cap,
		"status %d with \"%.60s\", which is not what Pyroscope answers: is it its address?",
		a->status, a->type);
	return PUSH_LATER;
}
