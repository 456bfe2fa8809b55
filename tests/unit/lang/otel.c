/*
 * Contexts of processes and threads as OTEP 4719 and 4947 have them, whole, changed meanwhile, and untrue.
 */
#include "lang/otel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BASE 0x7f0000010000ULL

/* The header at BASE, the payload at BASE + 64. */
static uint8_t memory[4096];
static int reads, change_at; /* the read before which the time of publication changes; 0: never */
static struct otel_process process;

static bool read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	if (++reads == change_at)
		memory[16]++;
	if (addr < BASE || addr - BASE > sizeof(memory) || len > sizeof(memory) - (addr - BASE))
		return false;
	memcpy(buf, memory + (addr - BASE), len);
	return true;
}

static const struct lang_memory mem = { read_memory, NULL };

static void put_header(uint32_t version, uint32_t bytes, uint64_t published_ns)
{
	uint64_t at = BASE + 64;

	memcpy(memory, "OTEL_CTX", 8);
	memcpy(memory + 8, &version, 4);
	memcpy(memory + 12, &bytes, 4);
	memcpy(memory + 16, &published_ns, 8);
	memcpy(memory + 24, &at, 8);
}

/* A protobuf field of bytes at `to`; returns behind it. */
static uint8_t *field(uint8_t *to, uint8_t no, const void *bytes, size_t len)
{
	*to++ = (uint8_t)(no << 3 | 2);
	if (len > 127)
		*to++ = (uint8_t)(len | 0x80);
	*to++ = (uint8_t)(len > 127 ? len >> 7 : len);
	memcpy(to, bytes, len);
	return to + len;
}

static uint8_t *attribute(uint8_t *to, uint8_t no, const char *key, const uint8_t *value,
			  size_t len)
{
	uint8_t kv[1024], *end = field(kv, 1, key, strlen(key));

	end = field(end, 2, value, len);
	return field(to, no, kv, (size_t)(end - kv));
}

static uint8_t *text_attribute(uint8_t *to, uint8_t no, const char *key, const char *text)
{
	uint8_t value[256], *end = field(value, 1, text, strlen(text));

	return attribute(to, no, key, value, (size_t)(end - value));
}

/* The two attributes of threads in field `no`; two keys. */
static uint8_t *thread_attributes(uint8_t *to, uint8_t no, const char *schema)
{
	uint8_t value[64], values[256], array[300], *end = values, *v;

	to = text_attribute(to, no, "threadlocal.schema_version", schema);
	v = field(value, 1, "http.route", 10);
	end = field(end, 1, value, (size_t)(v - value));
	v = field(value, 1, "user", 4);
	end = field(end, 1, value, (size_t)(v - value));
	v = field(array, 5, values, (size_t)(end - values));
	return attribute(to, no, "threadlocal.attribute_key_map", array, (size_t)(v - array));
}

static int fresh(void **state)
{
	uint8_t *end;

	(void)state;
	memset(memory, 0, sizeof(memory));
	memset(&process, 0xee, sizeof(process));
	reads = change_at = 0;
	end = text_attribute(memory + 64, 1, "service.name", "shop");
	end = thread_attributes(end, 1, "tls_v1");
	put_header(2, (uint32_t)(end - memory - 64), 1234);
	return 0;
}

static void keys_are_those_of_the_resource(void **state)
{
	(void)state;
	assert_int_equal(otel_process_read(&mem, BASE, 0, &process), 0);
	assert_int_equal(process.published_ns, 1234);
	assert_int_equal(process.schema, OTEL_SCHEMA_TLS);
	assert_int_equal(process.n_keys, 2);
	assert_string_equal(process.keys[0], "http.route");
	assert_string_equal(process.keys[1], "user");
}

static void or_beside_the_resource(void **state)
{
	uint8_t resource[256], payload[1024], *end;

	(void)state;
	end = text_attribute(resource, 1, "service.name", "shop");
	end = field(payload, 1, resource, (size_t)(end - resource));
	end = thread_attributes(end, 2, "tlsdesc_v1_dev");
	assert_int_equal(otel_payload_decode(payload, (size_t)(end - payload), &process), 0);
	assert_int_equal(process.schema, OTEL_SCHEMA_TLS);
	assert_int_equal(process.n_keys, 2);
	assert_string_equal(process.keys[1], "user");
}

static void other_schemas_have_a_name(void **state)
{
	uint8_t payload[1024], *end = thread_attributes(payload, 1, "go_pprof_labels_v1");

	(void)state;
	assert_int_equal(otel_payload_decode(payload, (size_t)(end - payload), &process), 0);
	assert_int_equal(process.schema, OTEL_SCHEMA_OTHER);
	assert_string_equal(process.schema_name, "go_pprof_labels_v1");
	assert_int_equal(otel_payload_decode(payload, 0, &process), 0);
	assert_int_equal(process.schema, OTEL_SCHEMA_NONE);
}

static void a_context_that_changes_is_read_again(void **state)
{
	(void)state;
	change_at = 3; /* before the header is read again */
	assert_int_equal(otel_process_read(&mem, BASE, 0, &process), -EAGAIN);
	assert_int_equal(otel_process_read(&mem, BASE, 0, &process), 0);
	assert_int_equal(otel_process_read(&mem, BASE, process.published_ns, &process), -EALREADY);
	memset(memory + 16, 0, 8); /* it is being changed */
	assert_int_equal(otel_process_read(&mem, BASE, 0, &process), -EAGAIN);
}

static void what_is_no_context_is_refused(void **state)
{
	(void)state;
	put_header(3, 64, 1);
	assert_int_equal(otel_process_read(&mem, BASE, 0, &process), -EOPNOTSUPP);
	put_header(2, OTEL_PAYLOAD_MAX + 1, 1);
	assert_int_equal(otel_process_read(&mem, BASE, 0, &process), -EBADMSG);
	put_header(2, sizeof(memory), 1); /* reaches behind the memory */
	assert_int_equal(otel_process_read(&mem, BASE, 0, &process), -EBADMSG);
	memory[64] = 7; /* no kind of field */
	put_header(2, 64, 1);
	assert_int_equal(otel_process_read(&mem, BASE, 0, &process), -EBADMSG);
	memory[0] = 'X';
	assert_int_equal(otel_process_read(&mem, BASE, 0, &process), -ENOENT);
	assert_int_equal(otel_process_read(&mem, 16, 0, &process), -ENOENT);
}

static void keys_beyond_the_numbers_of_a_byte_are_left_out(void **state)
{
	static uint8_t values[4096], array[4200], payload[4400];
	uint8_t *end = values, *v, value[4] = { 0x0a, 1, 'k' };

	(void)state;
	for (int i = 0; i < 300; i++)
		end = field(end, 1, value, 3);
	v = field(array, 5, values, (size_t)(end - values));
	end = payload;
	*end++ = 1 << 3 | 2; /* an attribute of more than 1024 bytes, by hand */
	v = field(values, 2, array, (size_t)(v - array));
	end = field(payload, 1, "threadlocal.attribute_key_map", 29);
	memcpy(end, values, (size_t)(v - values));
	end += v - values;
	memmove(payload + 3, payload, (size_t)(end - payload));
	payload[0] = 1 << 3 | 2;
	payload[1] = (uint8_t)((end - payload) | 0x80);
	payload[2] = (uint8_t)((end - payload) >> 7);
	assert_int_equal(otel_payload_decode(payload, (size_t)(end - payload) + 3, &process), 0);
	assert_int_equal(process.n_keys, OTEL_KEYS_MAX);
	assert_string_equal(process.keys[OTEL_KEYS_MAX - 1], "k");
}

static void names_of_mappings(void **state)
{
	(void)state;
	assert_true(otel_is_context("/memfd:OTEL_CTX"));
	assert_true(otel_is_context("[anon_shmem:OTEL_CTX]"));
	assert_true(otel_is_context("[anon:OTEL_CTX]"));
	assert_false(otel_is_context("/tmp/memfd:OTEL_CTX"));
	assert_false(otel_is_context(""));
}

/* --- records --- */

static uint8_t record[OTEL_RECORD_HEAD + 612];
static struct otel_record rec;

static uint16_t begin_record(void)
{
	memset(record, 0, sizeof(record));
	memset(record, 0xab, 16);
	record[23] = 7;
	record[24] = 1;
	return 0;
}

static uint16_t add(uint16_t size, uint8_t key, const char *text)
{
	uint8_t *to = record + OTEL_RECORD_HEAD + size;

	to[0] = key;
	to[1] = (uint8_t)strlen(text);
	memcpy(to + 2, text, strlen(text));
	size = (uint16_t)(size + 2 + strlen(text));
	memcpy(record + 26, &size, sizeof(size));
	return size;
}

static void a_record_has_numbers_and_attributes(void **state)
{
	uint16_t size = begin_record();

	(void)state;
	size = add(size, 0, "/old");
	size = add(size, 200, "");
	size = add(size, 0, "/new");
	assert_int_equal(otel_record_decode(record, OTEL_RECORD_HEAD + (size_t)size, &rec), 0);
	assert_int_equal(rec.n, 4);
	assert_int_equal(rec.labels[0].key, OTEL_TRACE);
	assert_string_equal(rec.labels[0].text, "abababababababababababababababab");
	assert_int_equal(rec.labels[1].key, OTEL_SPAN);
	assert_string_equal(rec.labels[1].text, "0000000000000007");
	assert_int_equal(rec.labels[2].key, 0);
	assert_string_equal(rec.labels[2].text, "/new"); /* the last one counts */
	assert_int_equal(rec.labels[3].key, 200);
	assert_int_equal(rec.key_most, 200);
	assert_false(rec.more);
}

static void numbers_that_are_0_are_none(void **state)
{
	(void)state;
	begin_record();
	memset(record, 0, 24);
	assert_int_equal(otel_record_decode(record, OTEL_RECORD_HEAD, &rec), 0);
	assert_int_equal(rec.n, 0);
	assert_int_equal(otel_record_decode(record, OTEL_RECORD_HEAD - 1, &rec), -EBADMSG);
}

static void attributes_that_are_not_whole_are_left_out(void **state)
{
	uint16_t size = begin_record();

	(void)state;
	size = add(size, 0, "/whole");
	size = add(size, 1, "cut");
	assert_int_equal(otel_record_decode(record, OTEL_RECORD_HEAD + (size_t)size - 1, &rec), 0);
	assert_int_equal(rec.n, 3);
	assert_true(rec.more);
	/* Its size says less than is there. */
	size = 8;
	memcpy(record + 26, &size, sizeof(size));
	assert_int_equal(otel_record_decode(record, sizeof(record), &rec), 0);
	assert_int_equal(rec.n, 3);
	assert_false(rec.more);
}

static void more_attributes_than_there_is_room_for(void **state)
{
	uint16_t size = begin_record();

	(void)state;
	for (uint8_t i = 0; i < 20; i++)
		size = add(size, i, "v");
	assert_int_equal(otel_record_decode(record, OTEL_RECORD_HEAD + (size_t)size, &rec), 0);
	assert_int_equal(rec.n, OTEL_LABELS_MAX);
	assert_int_equal(rec.labels[OTEL_LABELS_MAX - 1].key, OTEL_LABELS_MAX - 3);
	assert_true(rec.more);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(keys_are_those_of_the_resource, fresh),
		cmocka_unit_test_setup(or_beside_the_resource, fresh),
		cmocka_unit_test_setup(other_schemas_have_a_name, fresh),
		cmocka_unit_test_setup(a_context_that_changes_is_read_again, fresh),
		cmocka_unit_test_setup(what_is_no_context_is_refused, fresh),
		cmocka_unit_test_setup(keys_beyond_the_numbers_of_a_byte_are_left_out, fresh),
		cmocka_unit_test(names_of_mappings),
		cmocka_unit_test(a_record_has_numbers_and_attributes),
		cmocka_unit_test(numbers_that_are_0_are_none),
		cmocka_unit_test(attributes_that_are_not_whole_are_left_out),
		cmocka_unit_test(more_attributes_than_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
