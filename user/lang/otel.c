#include "lang/otel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct header {
	char signature[8];
	uint32_t version, payload_bytes;
	uint64_t published_ns, payload;
};

_Static_assert(sizeof(struct header) == 32, "as OTEP 4719 has it");

enum { HEADER_VERSION = 2 };

bool otel_is_context(const char *path)
{
	static const char *const names[] = { "/memfd:OTEL_CTX", "[anon_shmem:OTEL_CTX]",
					     "[anon:OTEL_CTX]" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(path, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* --- protobuf --- */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

struct bytes {
	const uint8_t *at;
	size_t len;
};

static bool take_varint(struct bytes *in, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (uint32_t shift = 0; shift < 64 && in->len; shift += 7) {
		uint8_t b = *in->at;

		in->at++;
		in->len--;
		value |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

/* The next field of a message; `ret_value` is empty when it is no bytes. false: there is none, or it is none. */
static bool take_field(struct bytes *in, uint64_t *ret_no, struct bytes *ret_value)
{
	uint64_t tag, len;

	*ret_value = (struct bytes){ 0 };
	if (!in->len || !take_varint(in, &tag))
		return false;
	*ret_no = tag >> 3;
	switch (tag & 7) {
	case VARINT:
		return take_varint(in, &len);
	case FIXED64:
		len = 8;
		break;
	case FIXED32:
		len = 4;
		break;
	case BYTES:
		if (!take_varint(in, &len))
			return false;
		break;
	default:
		return false;
	}
	if (len > in->len)
		return false;
	if ((tag & 7) == BYTES)
		*ret_value = (struct bytes){ in->at, len };
	in->at += len;
	in->len -= len;
	return true;
}

static bool is_text(const struct bytes *b, const char *text)
{
	return b->len == strlen(text) && memcmp(b->at, text, b->len) == 0;
}

static void copy_text(char *to, size_t room, const struct bytes *from)
{
	size_t len = from->len < room ? from->len : room - 1;

	if (len)
		memcpy(to, from->at, len);
	to[len] = '\0';
}

/* The text of an AnyValue. */
static struct bytes text_of(struct bytes value)
{
	struct bytes part, text = { 0 };
	uint64_t no;

	while (take_field(&value, &no, &part))
		if (no == 1)
			text = part;
	return text;
}

static void take_keys(struct bytes value, struct otel_process *p)
{
	struct bytes array, element;
	uint64_t no;

	p->n_keys = 0;
	while (take_field(&value, &no, &array))
		while (no == 5 && array.len) {
			uint64_t in;

			if (!take_field(&array, &in, &element))
				return;
			if (in != 1 || p->n_keys == OTEL_KEYS_MAX)
				continue;
			element = text_of(element);
			copy_text(p->keys[p->n_keys++], OTEL_KEY_BYTES, &element);
		}
}

static void take_schema(struct bytes value, struct otel_process *p)
{
	struct bytes text = text_of(value);

	copy_text(p->schema_name, sizeof(p->schema_name), &text);
	p->schema = is_text(&text, "tls_v1") || is_text(&text, "tlsdesc_v1_dev")
			    ? OTEL_SCHEMA_TLS
			    : OTEL_SCHEMA_OTHER;
}

static void take_attribute(struct bytes attribute, struct otel_process *p)
{
	struct bytes key = { 0 }, value = { 0 }, part;
	uint64_t no;

	while (take_field(&attribute, &no, &part)) {
		if (no == 1)
			key = part;
		else if (no == 2)
			value = part;
	}
	if (is_text(&key, "threadlocal.schema_version"))
		take_schema(value, p);
	else if (is_text(&key, "threadlocal.attribute_key_map"))
		take_keys(value, p);
}

/* Field 1 is an attribute of a Resource, or the Resource of a ProcessContext. */
int otel_payload_decode(const uint8_t *bytes, size_t len, struct otel_process *ret_process)
{
	struct bytes in = { bytes, len }, part, inner;
	uint64_t no, in_no;

	ret_process->schema = OTEL_SCHEMA_NONE;
	ret_process->schema_name[0] = '\0';
	ret_process->n_keys = 0;
	while (in.len) {
		if (!take_field(&in, &no, &part))
			return -EBADMSG;
		if (no > 2 || !part.len)
			continue;
		take_attribute(part, ret_process);
		while (no == 1 && take_field(&part, &in_no, &inner))
			if (in_no == 1)
				take_attribute(inner, ret_process);
	}
	return 0;
}

static bool read_header(const struct lang_memory *mem, uint64_t at, struct header *h)
{
	return mem->read(mem->ctx, at, h, sizeof(*h));
}

int otel_process_read(const struct lang_memory *mem, uint64_t at, uint64_t published_ns,
		      struct otel_process *ret_process)
{
	_cleanup_(freep) uint8_t *payload = NULL;
	struct header h, again;
	int r;

	if (!read_header(mem, at, &h) || memcmp(h.signature, "OTEL_CTX", 8) != 0)
		return -ENOENT;
	if (h.version != HEADER_VERSION)
		return -EOPNOTSUPP;
	if (!h.published_ns)
		return -EAGAIN;
	if (h.published_ns == published_ns)
		return -EALREADY;
	if (!h.payload_bytes || h.payload_bytes > OTEL_PAYLOAD_MAX)
		return -EBADMSG;
	payload = malloc(h.payload_bytes);
	if (!payload)
		return -ENOMEM;
	r = mem->read(mem->ctx, h.payload, payload, h.payload_bytes) ? 0 : -EBADMSG;
	if (!read_header(mem, at, &again) || again.published_ns != h.published_ns)
		return -EAGAIN;
	if (r == 0)
		r = otel_payload_decode(payload, h.payload_bytes, ret_process);
	ret_process->published_ns = h.published_ns;
	return r;
}

/* --- a thread's record --- */

static void add_number(struct otel_record *rec, uint16_t key, const uint8_t *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	struct otel_label *l = &rec->labels[rec->n];
	uint8_t any = 0;

	for (size_t i = 0; i < len; i++) {
		any |= bytes[i];
		l->text[2 * i] = digits[bytes[i] >> 4];
		l->text[2 * i + 1] = digits[bytes[i] & 15];
	}
	l->text[2 * len] = '\0';
	l->key = key;
	rec->n += any != 0;
}

static void add_attribute(struct otel_record *rec, uint16_t key, const struct bytes *text)
{
	uint32_t i = 0;

	while (i < rec->n && rec->labels[i].key != key)
		i++;
	if (i == OTEL_LABELS_MAX) {
		rec->more = true;
		return;
	}
	rec->labels[i].key = key;
	copy_text(rec->labels[i].text, OTEL_TEXT_BYTES, text);
	rec->n += i == rec->n;
	rec->key_most = key > rec->key_most ? key : rec->key_most;
}

int otel_record_decode(const uint8_t *bytes, size_t len, struct otel_record *ret_record)
{
	uint16_t size;

	ret_record->n = 0;
	ret_record->more = false;
	ret_record->key_most = 0;
	if (len < OTEL_RECORD_HEAD)
		return -EBADMSG;
	memcpy(&size, bytes + 26, sizeof(size));
	add_number(ret_record, OTEL_TRACE, bytes, 16);
	add_number(ret_record, OTEL_SPAN, bytes + 16, 8);
	bytes += OTEL_RECORD_HEAD;
	len -= OTEL_RECORD_HEAD;
	ret_record->more = size > len;
	len = size < len ? size : len;
	while (len >= 2 && bytes[1] <= len - 2) {
		struct bytes text = { bytes + 2, bytes[1] };

		add_attribute(ret_record, bytes[0], &text);
		bytes += 2 + text.len;
		len -= 2 + text.len;
	}
	ret_record->more |= len != 0;
	return 0;
}
