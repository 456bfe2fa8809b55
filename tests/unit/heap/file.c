/* A small heap as a file and back, equal in all that is asked of it; what is damaged is refused; what does not fit leaves nothing. */
#include "heap/snapshot/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { N = 3, AT = 0x10000, BYTES = 2 * HEAP_PAGE };

static uint8_t memory[BYTES] __attribute__((aligned(4096)));

static const struct heap_map maps[] = {
	{ .start = AT, .end = AT + BYTES, .rss = BYTES, .kind = HEAP_MAP_BRK }
};

static const struct site_place frames[] = {
	{ .function = "malloc", .module = "libc.so.6" },
	{ .function = "make_session", .file = "/src/server.c", .module = "server", .line = 88 },
	{ .function = "main", .file = "/src/server.c", .module = "server", .line = 9 },
};

/* Three blocks: a variable keeps the first, that the second; the third is lost. */
static struct snapshot *make(void)
{
	static const struct copy_run runs[] = { { AT, BYTES, 0 } };
	static const struct stopped_thread threads[] = {
		{ .tid = 7, .n_regs = 2, .regs = { 3, 5 } }
	};
	struct copy_parts parts = { .maps = maps,
				    .threads = threads,
				    .runs = runs,
				    .n_maps = 1,
				    .n_threads = 1,
				    .n_runs = 1,
				    .facts = { .bytes = BYTES, .pause_ns = 1234 },
				    .has_bytes = true,
				    .bytes = memory };
	struct snapshot *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	memcpy(memory + 8, "a text of the program", 22);
	assert_int_equal(copy_of_parts(&parts, &s->copy), 0);
	heap_blocks_allocator(&s->blocks, "glibc");
	s->blocks.max = 100;
	for (uint64_t i = 0; i < N; i++)
		heap_blocks_add(&s->blocks, AT + 64 * i, 64, 64);
	assert_int_equal(types_init(&s->types), 0);
	types_add(&s->types, TYPE_RTTI, "Session", 0x4000);
	s->types.of = calloc(N, sizeof(*s->types.of));
	s->types.object = calloc(N, 1);
	s->types.of[1] = 1;
	s->types.object[1] = 16;
	s->graph = graph_new(N);
	graph_count(s->graph, 0);
	graph_count(s->graph, 2);
	assert_int_equal(graph_lay_out(s->graph), 0);
	graph_add(s->graph, 0, 1, 24);
	graph_add(s->graph, 2, 1, 8);
	graph_finish(s->graph);
	s->reverse = graph_reversed(s->graph);
	s->roots = calloc(1, sizeof(*s->roots));
	s->roots[0] = (struct snapshot_root){ 0, SNAPSHOT_ROOT_GLOBAL, 0, 0x8000, NULL };
	s->n_roots = 1;
	s->collections.of = calloc(N, sizeof(*s->collections.of));
	s->collections.rows = calloc(1, sizeof(*s->collections.rows));
	s->collections.rows[0] = (struct collection){
		.kind = COLLECTION_LIST, .in = BLOCK_NONE, .table = 2, .elements = 5
	};
	s->collections.n = 1;
	s->collections.of[2] = 1;
	s->collections.of[0] = COLLECTION_TEXT | 21;
	s->sites = sites_new(N);
	assert_non_null(s->sites);
	s->sites->traced_ns = 5000000000;
	s->sites->lost = 2;
	sites_set(s, 1, sites_add(s->sites, &frames[1], frames, 3), 1500000000);
	s->facts.pid = 4711;
	strcpy(s->facts.comm, "prog");
	s->facts.labels[0] = (struct snapshot_label){ "env", "prod" };
	s->facts.n_labels = 1;
	return s;
}

static bool name_of(void *ctx, const struct snapshot_root *root, char *name, size_t cap)
{
	(void)ctx;
	return snprintf(name, cap, "variable_%llx", (unsigned long long)root->at) > 0;
}

static char folder[64], path[128];

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/memscope-file-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/x.snapshot", folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static void write_file(enum file_contents contents)
{
	struct snapshot_write how = { contents, name_of, NULL };
	struct snapshot_writer *w = NULL;
	struct snapshot *s = make();
	struct err e = { 0 };
	uint64_t bytes = 0;
	struct stat st;

	assert_int_equal(snapshot_writer_new(path, &w, &e), 0);
	assert_int_equal(snapshot_writer_put(w, s, &how, &bytes, &e), 0);
	snapshot_writer_free(w);
	snapshot_free(s);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(st.st_size, bytes);
}

static struct snapshot *read_file(void)
{
	struct snapshot *s = NULL;
	struct err e = { 0 };

	if (snapshot_file_open(path, folder, &s, &e) < 0)
		fail_msg("%s", e.msg);
	return s;
}

/* Of the file: `len` bytes from `at` on are overwritten. */
static void overwrite(uint64_t at, const void *bytes, size_t len)
{
	int fd = open(path, O_RDWR);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, len, (off_t)at), len);
	close(fd);
}

/* --- */

static void what_is_written_is_what_is_read(void **state)
{
	struct snapshot *s;
	uint32_t len;

	(void)state;
	write_file(FILE_CONTENTS_NONE);
	assert_true(snapshot_file_is(path));
	s = read_file();
	assert_int_equal(s->facts.pid, 4711);
	assert_string_equal(s->facts.comm, "prog");
	assert_int_equal(s->facts.n_labels, 1);
	assert_string_equal(s->facts.labels[0].key, "env");
	assert_string_equal(s->facts.labels[0].value, "prod");
	assert_int_equal(copy_facts(s->copy).pause_ns, 1234);
	assert_int_equal(s->blocks.n, N);
	assert_int_equal(s->blocks.rows[2].addr, AT + 128);
	assert_string_equal(heap_blocks_owner(&s->blocks, s->blocks.rows[2].owner)->allocator,
			    "glibc");
	assert_int_equal(snapshot_bytes(s, 2), 64);
	assert_int_equal(s->types.n, 2);
	assert_string_equal(s->types.type[s->types.of[1]].name, "Session");
	assert_int_equal(s->types.type[1].by, TYPE_RTTI);
	assert_int_equal(s->types.type[1].blocks, 1);
	assert_int_equal(s->types.type[1].bytes, 64);
	assert_int_equal(s->types.object[1], 16);
	assert_null(collection_of_node(&s->collections, 0));
	assert_true(collection_text(&s->collections, 0, &len));
	assert_int_equal(len, 21);
	assert_int_equal(graph_edges(s->graph), 2);
	assert_int_equal(s->graph->edges[0].to, 1);
	assert_int_equal(s->graph->edges[0].at, 24);
	assert_int_equal(s->reverse->first[2] - s->reverse->first[1], 2);
	assert_int_equal(s->n_roots, 1);
	assert_int_equal(s->graph_roots[0].kind, SNAPSHOT_ROOT_GLOBAL);
	assert_string_equal(s->roots[0].name, "variable_8000");
	assert_null(collection_of_node(&s->collections, 1));
	assert_int_equal(collection_of_node(&s->collections, 2)->elements, 5);
	assert_int_equal(collection_of_node(&s->collections, 2)->kind, COLLECTION_LIST);
	snapshot_free(s);
}

static void who_allocated_a_block_and_when_is_in_the_file(void **state)
{
	char name[SITE_NAME_MAX];
	struct snapshot *s;

	(void)state;
	write_file(FILE_CONTENTS_NONE);
	s = read_file();
	assert_non_null(s->sites);
	assert_int_equal(s->sites->traced_ns, 5000000000);
	assert_int_equal(s->sites->lost, 2);
	assert_int_equal(s->sites->known, 1);
	assert_int_equal(s->sites->known_bytes, 64);
	assert_int_equal(sites_of(s->sites, 0), 0);
	assert_int_equal(s->sites->age_ms[0], SITES_OLDER);
	assert_int_equal(s->sites->age_ms[1], 1500);
	sites_name(s->sites, sites_of(s->sites, 1), name);
	assert_string_equal(name, "make_session (server.c:88)");
	assert_int_equal(s->sites->stack[s->sites->stack_of[1]].n, 3);
	assert_string_equal(sites_text(s->sites, s->sites->frame[2].function), "main");
	snapshot_free(s);
}

/* A file that is whole, of a snapshot that `spoil` has been at. */
static void assert_refused(void (*spoil)(struct sites *sites))
{
	struct snapshot_write how = { FILE_CONTENTS_NONE, name_of, NULL };
	struct snapshot *s = make(), *got = NULL;
	struct snapshot_writer *w = NULL;
	struct err e = { 0 };
	uint64_t bytes = 0;

	spoil(s->sites);
	assert_int_equal(snapshot_writer_new(path, &w, &e), 0);
	assert_int_equal(snapshot_writer_put(w, s, &how, &bytes, &e), 0);
	snapshot_writer_free(w);
	snapshot_free(s);
	assert_int_equal(snapshot_file_open(path, folder, &got, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "stack leads nowhere"));
}

static void set_stack(struct sites *s)
{
	s->stack_of[2] = s->n_stacks;
}

static void set_site(struct sites *s)
{
	s->stack[1].site = s->n_sites;
}

static void set_frames(struct sites *s)
{
	s->stack[1].first = 1;
}

static void lose_stacks(struct sites *s)
{
	s->n_stacks = 0;
}

static void a_stack_that_leads_nowhere_is_refused(void **state)
{
	(void)state;
	assert_refused(set_stack);
	assert_refused(set_site);
	assert_refused(set_frames);
	assert_refused(lose_stacks);
}

static void each_kind_has_a_number_of_its_own(void **state)
{
	(void)state;
	for (int i = 0; i < SNAPSHOT_ROOT_KINDS; i++)
		assert_int_equal(file_root_kind(file_root_number((uint32_t)i)), i);
	for (int i = 0; i < TYPE_WAYS; i++)
		assert_int_equal(file_type_by(file_type_number((uint32_t)i)), i);
	assert_int_equal(file_root_kind(0), -1);
	assert_int_equal(file_root_kind(1000), -1);
}

static void an_address_is_found_in_its_block(void **state)
{
	uint32_t offset = 0;
	struct snapshot *s;

	(void)state;
	write_file(FILE_CONTENTS_NONE);
	s = read_file();
	assert_int_equal(block_index_find(s->index, AT + 64 + 9, &offset), 1);
	assert_int_equal(offset, 9);
	assert_int_equal(block_index_find(s->index, AT - 1, &offset), BLOCK_NONE);
	assert_int_equal(block_index_find(s->index, AT + 64 * N, &offset), BLOCK_NONE);
	snapshot_free(s);
}

static void without_contents_no_byte_can_be_read(void **state)
{
	const struct heap_memory *mem;
	uint8_t bytes[8];
	struct snapshot *s;
	uint64_t len = 8;
	uint32_t n;

	(void)state;
	write_file(FILE_CONTENTS_NONE);
	s = read_file();
	mem = copy_memory(s->copy);
	assert_false(mem->read(mem->ctx, AT, bytes, 8));
	assert_null(copy_bytes(s->copy, AT, &len));
	assert_int_equal(copy_threads(s->copy, &n)->tid, 7);
	assert_int_equal(n, 1);
	assert_int_equal(copy_threads(s->copy, &n)->n_regs, 0);
	snapshot_free(s);
}

static void with_contents_every_byte_can_be_read(void **state)
{
	const struct heap_memory *mem;
	uint8_t bytes[BYTES];
	struct snapshot *s;
	uint64_t len = 0;
	uint32_t n;

	(void)state;
	write_file(FILE_CONTENTS_ALL);
	s = read_file();
	mem = copy_memory(s->copy);
	assert_true(mem->read(mem->ctx, AT, bytes, BYTES));
	assert_memory_equal(bytes, memory, BYTES);
	assert_memory_equal(copy_bytes(s->copy, AT + 8, &len), "a text of the program", 22);
	assert_int_equal(len, BYTES - 8);
	assert_int_equal(copy_threads(s->copy, &n)->regs[1], 5);
	snapshot_free(s);
}

static void a_file_that_is_damaged_anywhere_is_refused(void **state)
{
	struct stat st;

	(void)state;
	write_file(FILE_CONTENTS_NONE);
	assert_int_equal(stat(path, &st), 0);
	for (off_t at = 0; at < st.st_size; at += 7) {
		struct snapshot *s = NULL;
		struct err e = { 0 };
		uint8_t was, is;
		int fd = open(path, O_RDONLY);

		assert_int_equal(pread(fd, &was, 1, at), 1);
		close(fd);
		is = was ^ 0x55;
		overwrite((uint64_t)at, &is, 1);
		/* What no section has is of no section: between them, and at the end of the header. */
		if (snapshot_file_open(path, folder, &s, &e) < 0) {
			assert_int_equal(e.code, -EBADMSG);
			assert_non_null(strstr(e.msg, "snapshot"));
		} else {
			assert_int_equal(was, 0);
			assert_int_equal(s->blocks.n, N);
		}
		snapshot_free(s);
		overwrite((uint64_t)at, &was, 1);
	}
}

static void a_file_that_is_cut_off_is_refused(void **state)
{
	struct stat st;

	(void)state;
	write_file(FILE_CONTENTS_ALL);
	assert_int_equal(stat(path, &st), 0);
	for (off_t len = st.st_size - 1; len > 0; len -= 61) {
		struct snapshot *s = NULL;
		struct err e = { 0 };

		assert_int_equal(truncate(path, len), 0);
		assert_int_equal(snapshot_file_open(path, folder, &s, &e), -EBADMSG);
	}
}

static void a_writer_that_is_not_finished_leaves_nothing(void **state)
{
	struct snapshot_writer *w = NULL;
	struct err e = { 0 };
	struct dirent *ent;
	uint32_t n = 0;
	DIR *dir;

	(void)state;
	assert_int_equal(snapshot_writer_new(path, &w, &e), 0);
	snapshot_writer_free(w);
	dir = opendir(folder);
	while ((ent = readdir(dir)))
		n++;
	closedir(dir);
	assert_int_equal(n, 2);
}

static void an_older_file_of_that_name_is_replaced(void **state)
{
	struct snapshot *s;

	(void)state;
	write_file(FILE_CONTENTS_ALL);
	write_file(FILE_CONTENTS_NONE);
	s = read_file();
	assert_int_equal(s->facts.contents, FILE_CONTENTS_NONE);
	snapshot_free(s);
}

static void what_is_no_regular_file_is_not_written_to(void **state)
{
	struct snapshot_writer *w = NULL;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(snapshot_writer_new("/dev/null", &w, &e), -EEXIST);
	assert_non_null(strstr(e.msg, "no regular file"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define FACT(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		FACT(what_is_written_is_what_is_read),
		FACT(who_allocated_a_block_and_when_is_in_the_file),
		FACT(a_stack_that_leads_nowhere_is_refused),
		FACT(each_kind_has_a_number_of_its_own),
		FACT(an_address_is_found_in_its_block),
		FACT(without_contents_no_byte_can_be_read),
		FACT(with_contents_every_byte_can_be_read),
		FACT(a_file_that_is_damaged_anywhere_is_refused),
		FACT(a_file_that_is_cut_off_is_refused),
		FACT(a_writer_that_is_not_finished_leaves_nothing),
		FACT(an_older_file_of_that_name_is_replaced),
		FACT(what_is_no_regular_file_is_not_written_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
