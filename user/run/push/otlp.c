/*
 * OpenTelemetry's profiles over HTTP, opentelemetry-proto 1.11.0: a POST of ExportProfilesServiceRequest to
 * /v1development/profiles, gzipped; the signal is in development, and what reads another version may refuse it. Statuses, Retry-After
 * and partial success: docs/specification.md there, "OTLP/HTTP".
 *
 *   ExportProfilesServiceResponse  1 partial_success {1 rejected_profiles, 2 error_message}
 */
#include "render/formats/otlp.h"
#include "run/push/protocol.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* As collectors know them: waits are "off_cpu". A period of 0 would be of an unknown type to some. */
static struct profile *as_otel(const struct push_item *item)
{
	const struct profile *p = item->profile;
	uint32_t n = profile_n_types(p);
	struct profile_meta meta = *profile_get_meta(p);
	struct value_type types[PROFILE_MAX_TYPES];
	_cleanup_(profile_freep) struct profile *new = NULL;
	int rc;

	for (uint32_t i = 0; i < n; i++) {
		types[i] = *profile_type(p, i);
		if (item->kind == PROFILE_OFFCPU && strcmp(types[i].name, "blocked") == 0 &&
		    strcmp(types[i].unit, "nanoseconds") == 0)
			types[i].name = OTLP_OFF_CPU;
	}
	if (meta.period <= 0)
		meta.period = 1;
	new = profile_new(profile_dict(p), types, n);
	rc = new ? profile_set_meta(new, &meta) : -ENOMEM;
	for (uint32_t i = 0; rc == 0 && i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);

		rc = profile_add(new, s.stack, s.labels, s.values);
	}
	return rc == 0 ? TAKE_PTR(new) : NULL;
}

int push_otlp_body(const struct push_item *item, struct sink *out, struct err *e)
{
	const char *names[PUSH_LABELS_MAX], *values[PUSH_LABELS_MAX];
	struct otlp_resource of = { names, values, item->labels->n };
	_cleanup_(profile_freep) struct profile *p = as_otel(item);
	int rc = p ? sink_gzip(out, e) : err_set(e, -ENOMEM, "out of memory");

	for (uint32_t i = 0; i < of.n; i++) {
		names[i] = item->labels->list[i].name;
		values[i] = item->labels->list[i].value;
	}
	memcpy(of.id, item->id, sizeof(of.id));
	return rc == 0 ? otlp_export(p, &of, out, e) : rc;
}

static int take_varint(struct bytes *b, uint64_t *ret)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64 && b->len; shift += 7) {
		uint8_t byte = *b->data++;

		b->len--;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = v;
			return 0;
		}
	}
	return -EBADMSG;
}

/* The next field: a number in *ret_value, or bytes. -ENODATA: there is none. */
static int take_field(struct bytes *b, unsigned *ret_field, uint64_t *ret_value,
		      struct bytes *ret_bytes)
{
	uint64_t key, len;

	if (!b->len)
		return -ENODATA;
	if (take_varint(b, &key) < 0)
		return -EBADMSG;
	*ret_field = (unsigned)(key >> 3);
	*ret_value = 0;
	*ret_bytes = (struct bytes){ 0 };
	switch (key & 7) {
	case 0:
		return take_varint(b, ret_value);
	case 1:
		return bytes_skip(b, 8);
	case 2:
		return take_varint(b, &len) < 0 ? -EBADMSG : bytes_take(b, len, ret_bytes);
	case 5:
		return bytes_skip(b, 4);
	default:
		return -EBADMSG;
	}
}

/* false: the body is no ExportProfilesServiceResponse. */
static bool read_answer(struct bytes body, uint64_t *ret_rejected, struct bytes *ret_message)
{
	struct bytes part, inner = { 0 };
	uint64_t value;
	unsigned field;
	int rc;

	while ((rc = take_field(&body, &field, &value, &part)) == 0)
		if (field == 1)
			inner = part;
	while (rc == -ENODATA && (rc = take_field(&inner, &field, &value, &part)) == 0) {
		if (field == 1)
			*ret_rejected = value;
		else if (field == 2)
			*ret_message = part;
		rc = -ENODATA;
	}
	return rc == -ENODATA;
}

enum push_verdict push_otlp_verdict(const struct http_answer *a, uint64_t *ret_rejected, char *why,
				    size_t cap)
{
	enum push_verdict verdict = push_status_verdict(a, why, cap);
	struct bytes message = { 0 };

	*ret_rejected = 0;
	if (verdict == PUSH_FAILED) /* "all other status codes MUST NOT be retried" */
		return PUSH_REFUSED;
	if (verdict != PUSH_TAKEN)
		return a->status == 408 ? PUSH_REFUSED : verdict;
	if (a->too_long) {
		snprintf(why, cap, "an answer that is too long");
		return PUSH_REFUSED;
	}
	if (strncmp(a->type, "text/", 5) == 0 || !read_answer(a->body, ret_rejected, &message)) {
		snprintf(
			why, cap,
			"status %d with \"%.60s\", which is not what a collector answers: is it its "
			"address?",
			a->status, a->type);
		*ret_rejected = 0;
		return PUSH_LATER;
	}
	if (*ret_rejected)
		snprintf(why, cap, "%.*s", (int)(message.len < 200 ? message.len : 200),
			 message.data ? (const char *)message.data : "");
	return PUSH_TAKEN;
}
