/*
 * Sets of labels by number, with a session that only has a table of rows; and contexts of threads, as the kernel sends them.
 */
#include "collect/stream/label_sets.h"
#include "collect/stream/label_source.h"
#include "collect/stream/otel_labels.h"
#include "proc/proc_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include <bpf/bpf.h>
#include <cmocka.h>

static struct ms_label_source row;
static bool has_row;
static ingest_own_labels_fn labels_of;
static void *labels_of_ctx;
static drain_fn on_context;
static void *on_context_ctx;

int session_map_fd(const struct session *s, enum session_map map)
{
	(void)s;
	assert_int_equal(map, SESSION_LABEL_SOURCES);
	return 7;
}

void session_label_sources(struct session *s)
{
	(void)s;
}

bool session_name_of(const struct session *s, pid_t pid, uint64_t *ret_start_ns,
		     uint32_t *ret_exec_id)
{
	(void)s;
	(void)pid;
	(void)ret_start_ns;
	(void)ret_exec_id;
	return false;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	(void)fd;
	(void)key;
	memcpy(value, &row, sizeof(row));
	return has_row ? 0 : -1;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	(void)fd;
	(void)key;
	(void)flags;
	memcpy(&row, value, sizeof(row));
	has_row = true;
	return 0;
}

void ingest_on_own_labels(struct ingest *in, ingest_own_labels_fn fn, void *ctx)
{
	(void)in;
	labels_of = fn;
	labels_of_ctx = ctx;
}

void drain_on(struct drain *d, enum drain_kind kind, drain_fn fn, void *ctx)
{
	(void)d;
	assert_int_equal(kind, DRAIN_CONTEXT);
	on_context = fn;
	on_context_ctx = ctx;
}

static const struct proc_id seven = { .pid = 7, .exec_id = 1, .start_ns = 99 };
static struct dict *dict;
static struct label_sets *sets;

static int begin(void **state)
{
	(void)state;
	dict = dict_new();
	sets = label_sets_new(NULL, dict, NULL);
	label_sets_begin(sets, NULL);
	has_row = false;
	return 0;
}

static int end(void **state)
{
	(void)state;
	label_sets_free(sets);
	dict_free(dict);
	return 0;
}

static struct label label(const char *key, const char *value)
{
	return (struct label){ .key = label_sets_key(sets, key), .str = dict_string(dict, value) };
}

static void a_set_is_its_processs(void **state)
{
	struct label set[2] = { label("route", "/a"), label("pid", "x") }, got[INGEST_OWN_LABELS];
	struct proc_id later = seven;

	(void)state;
	later.exec_id = 2;
	assert_true(label_sets_add(sets, &seven, 5, set, 2, true));
	assert_true(label_sets_has(sets, &seven, 5));
	assert_false(label_sets_has(sets, &later, 5));
	assert_int_equal(labels_of(labels_of_ctx, &later, 5, got), 0);
	assert_int_equal(labels_of(labels_of_ctx, &seven, 5, got), 2);
	assert_string_equal(dict_str(dict, got[0].key), "route");
	assert_string_equal(dict_str(dict, got[1].key),
			    "app.pid"); /* memscope has a label pid itself */
	assert_string_equal(dict_str(dict, got[1].str), "x");
}

static void there_is_room_for_so_many(void **state)
{
	struct label one = label("route", "/a");

	(void)state;
	for (uint32_t i = 1; i <= LABEL_SETS; i++)
		assert_true(label_sets_add(sets, &seven, i, &one, 1, true));
	assert_false(label_sets_add(sets, &seven, LABEL_SETS + 1, &one, 1, true));
	assert_int_equal(label_sets_stats(sets).left_out, 1);
	/* Of spans the caller has counted them. */
	assert_true(label_sets_add(sets, &seven, LABEL_SETS + 1, &one, 1, false));
	assert_int_equal(label_sets_stats(sets).sets, LABEL_SETS);
}

static void those_of_a_process_that_is_forgotten_make_room(void **state)
{
	struct proc_table *procs = proc_table_new(dict);
	struct label_sets *of = label_sets_new(NULL, dict, procs);
	struct label one = label("route", "/a");

	(void)state;
	for (uint32_t i = 1; i <= LABEL_SETS; i++)
		assert_true(label_sets_add(of, &seven, i, &one, 1, true));
	assert_true(label_sets_add(of, &seven, LABEL_SETS + 1, &one, 1, true));
	assert_int_equal(label_sets_stats(of).sets, 1);
	assert_false(label_sets_has(of, &seven, 1));
	assert_true(label_sets_has(of, &seven, LABEL_SETS + 1));
	label_sets_free(of);
	proc_table_free(procs);
}

static void a_process_of_gos_stays_one(void **state)
{
	struct ms_label_source go = { .kind = MS_LABELS_GO }, otel = { .kind = MS_LABELS_OTEL };
	struct proc_id later = seven;

	(void)state;
	assert_true(label_sets_read(sets, &seven, &go));
	assert_int_equal(row.start_ns, seven.start_ns);
	assert_true(label_sets_read(sets, &seven, &otel));
	assert_int_equal(row.kind, MS_LABELS_GO);
	later.exec_id = 2; /* it runs another program */
	assert_true(label_sets_read(sets, &later, &otel));
	assert_int_equal(row.kind, MS_LABELS_OTEL);
}

/* A record with this span, and one attribute of key 0. */
static void send(struct otel_labels *o, uint32_t number, uint32_t span, bool of_wait)
{
	struct ms_context_rec rec = { .kind = MS_EV_CONTEXT,
				      .set = number,
				      .proc = { .tgid = 7, .exec_id = 1, .start_ns = 99 },
				      .of_wait = of_wait,
				      .len = 32 };

	(void)o;
	memset(rec.bytes, span ? 0xab : 0, 16);
	memcpy(rec.bytes + 16, &span, sizeof(span));
	rec.bytes[26] = 4;
	memcpy(rec.bytes + 28, "\0\2/a", 4);
	assert_int_equal(on_context(on_context_ctx, &rec, rec.bytes), DRAIN_TAKEN);
}

static void numbers_of_spans_are_labels_and_are_counted(void **state)
{
	struct otel_labels *o = otel_labels_new(sets, NULL, dict, NULL);
	struct label got[INGEST_OWN_LABELS];

	(void)state;
	send(o, 1, 0x0100, false);
	assert_int_equal(labels_of(labels_of_ctx, &seven, 1, got), 2);
	assert_string_equal(dict_str(dict, got[0].key), "trace_id");
	assert_string_equal(dict_str(dict, got[1].key), "span_id");
	assert_string_equal(dict_str(dict, got[1].str), "0001000000000000");
	/* Nobody has said what the attribute is called. */
	assert_int_equal(otel_labels_stats(o).unknown_keys, 1);
	send(o, 1, 0x0100, false); /* again: nothing new */
	for (uint32_t i = 2; i < OTEL_SPANS; i++)
		send(o, i, i, false);
	assert_false(otel_labels_stats(o).spans_full[0]);
	send(o, OTEL_SPANS, OTEL_SPANS, false);
	assert_true(otel_labels_stats(o).spans_full[0]);
	assert_false(otel_labels_stats(o).spans_full[1]);
	assert_int_equal(label_sets_stats(sets).left_out, 0);
	send(o, OTEL_SPANS + 1, 0, false); /* attributes alone */
	assert_true(label_sets_has(sets, &seven, OTEL_SPANS + 1));
	assert_int_equal(label_sets_stats(sets).sets, 1);
	otel_labels_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_set_is_its_processs, begin, end),
		cmocka_unit_test_setup_teardown(there_is_room_for_so_many, begin, end),
		cmocka_unit_test_setup_teardown(those_of_a_process_that_is_forgotten_make_room,
						begin, end),
		cmocka_unit_test_setup_teardown(a_process_of_gos_stays_one, begin, end),
		cmocka_unit_test_setup_teardown(numbers_of_spans_are_labels_and_are_counted, begin,
						end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
