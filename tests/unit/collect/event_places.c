/* Where probes of events go, in a file of which all is known: this test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/events/event_parts.h"
#include "collect/probes/uprobes.h"
#include "preload/sites.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

static struct event events[MS_EVENTS_MAX];
static struct event_spec specs[4];
static struct event_file file;

/* Keep their numbers, as event_probes.c does. */
int event_add(struct event_probes *ep, uint32_t spec, const char *name, uint64_t id)
{
	assert_in_range(ep->n, 0, MS_EVENTS_MAX - 1);
	events[ep->n] = (struct event){ .spec = spec, .name = strdup(name), .id = id };
	ep->events = events;
	return (int)ep->n++;
}

bool event_has_number(const struct event_probes *ep, uint32_t number)
{
	(void)ep;
	(void)number;
	return true;
}

int event_set_row(const struct event_probes *ep, uint32_t number)
{
	(void)ep;
	(void)number;
	return 0;
}

void event_failed(struct event_probes *ep, uint32_t spec, uint32_t n, const char *fmt, ...)
{
	ep->items[spec].failed += n;
	snprintf(ep->items[spec].failed_why, sizeof(ep->items[spec].failed_why), "%s", fmt);
}

int known_function(int n);
__attribute__((noinline)) int known_function(int n)
{
	SITE_OF_ONE("memscope_test", "known", (uintptr_t)n);
	return n > 3 ? n : n * n;
}

static int first_image(struct dl_phdr_info *info, size_t size, void *ret)
{
	(void)size;
	*(uint64_t *)ret = info->dlpi_addr;
	return 1;
}

/* Of a code address in the file: the linker puts code at the same distance there. */
static uint64_t vaddr_of(const void *addr)
{
	uint64_t base = 0;

	dl_iterate_phdr(first_image, &base);
	return (uint64_t)(uintptr_t)addr - base;
}

static uint8_t byte_at(uint64_t off)
{
	uint8_t b = 0;

	assert_int_equal(pread(file.fd, &b, 1, (off_t)off), 1);
	return b;
}

/* The places of what is in `specs`, in this program, which is mapped as `path`. */
static struct event_probes look(uint32_t n, const char *path)
{
	struct event_probes ep = { .specs = specs, .n_specs = n, .dict = dict_new() };
	struct module m = { .kind = MODULE_ELF };

	memset(&file, 0, sizeof(file));
	memset(events, 0, sizeof(events));
	m.path = dict_string(ep.dict, path);
	file.module = dict_module(ep.dict, &m);
	file.fd = open("/proc/self/exe", O_RDONLY);
	assert_int_equal(event_places_find(&ep, &file), 0);
	return ep;
}

static struct event_probes find(const char *list, const char *path)
{
	struct err e;
	uint32_t n = 0;

	memset(specs, 0, sizeof(specs));
	assert_int_equal(events_parse(list, specs, &n, &e), 0);
	return look(n, path);
}

static struct event_probes find_timed(const char *list)
{
	struct err e;
	uint32_t n = 0;

	memset(specs, 0, sizeof(specs));
	assert_int_equal(counts_parse(list, specs, &n, &e), 0);
	return look(n, "/opt/bin/tool");
}

static void end(struct event_probes *ep)
{
	for (uint32_t i = 0; i < ep->n; i++)
		free(events[i].name);
	event_places_free(ep);
	dict_free(ep->dict);
	free(file.places);
	close(file.fd);
}

static void a_function_is_found_by_name_and_by_pattern(void **state)
{
	uint64_t vaddr = vaddr_of((void *)known_function);
	struct event_probes ep =
		find("uprobe:tool:known_function,p:tool:known_f*", "/opt/bin/tool");

	(void)state;
	assert_int_equal(known_function(2), 4);
	assert_int_equal(ep.n, 2);
	assert_string_equal(events[1].name, "known_function");
	assert_int_equal(file.n, 2);
	assert_int_equal(file.places[0].off, file.places[1].off);
	/* Some instructions behind its beginning at most, in a segment that is as far from the file's as all code. */
	assert_in_range(file.places[0].off & 0xfff, vaddr & 0xfff, (vaddr & 0xfff) + 32);
	assert_true(events[0].at_entry);
	end(&ep);
}

static void its_returns_are_instructions_that_return(void **state)
{
	struct event_probes ep = find("uretprobe:tool:known_function", "/opt/bin/tool");

	(void)state;
#if defined(__x86_64__)
	assert_true(file.n > 0);
	for (uint32_t i = 0; i < file.n; i++)
		assert_int_equal(byte_at(file.places[i].off), 0xc3);
	assert_true(events[0].at_entry); /* as far as the stack goes */
#else
	(void)byte_at;
	assert_int_equal(ep.items[0].failed, 1);
#endif
	end(&ep);
}

/* As c++ -c writes them. */
int cpp_known(int n) asm("_ZN4unit5KnownC1Ei");
int cpp_known(int n)
{
	return n + 1;
}

static void names_of_cxx_are_understood_without_parameters(void **state)
{
	static const struct {
		const char *item;
		bool is;
	} cases[] = {
		{ "unit::Known::Known", true },       { "tool:unit::Known::Known", true },
		{ "_ZN4unit5KnownC1Ei", true },       { "unit::Known::*", true },
		{ "unit::Known::Known(int)", false }, { "Known", false },
	};

	(void)state;
	assert_int_equal(cpp_known(1), 2);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct event_probes ep = find_timed(cases[i].item);
		uint32_t entries = 0, returns = 0;

		for (uint32_t k = 0; k < file.n; k++)
			*(file.places[k].is_return ? &returns : &entries) += 1;
		assert_int_equal(entries, cases[i].is);
#if defined(__x86_64__)
		/* Calls are timed where they return. */
		if (uprobes_cookies()) {
			assert_true((returns > 0) == cases[i].is);
			assert_null(events[0].untimed);
		}
#endif
		end(&ep);
	}
}

/* Of another file, or a static one: a function of this name cannot be timed. That one can is not forgotten, nor overwritten. */
static void functions_of_one_name_are_told_apart_by_whether_they_can_be_timed(void **state)
{
#if defined(__x86_64__)
	struct event_probes ep = find_timed("known_function");
	uint32_t entries[2] = { 0 }, returns[2] = { 0 };
	struct event_place *places = file.places;

	(void)state;
	if (!uprobes_cookies()) {
		end(&ep);
		skip();
	}
	assert_int_equal(ep.n, 1);
	events[0].untimed = "it is of another file";
	for (int i = 0; i < 2; i++) {
		file.places = NULL;
		file.n = file.cap = 0;
		assert_int_equal(event_places_find(&ep, &file), 0);
		assert_int_equal(ep.n, 2);
		free(places);
		places = file.places;
	}
	assert_string_equal(events[0].untimed, "it is of another file");
	assert_string_equal(events[1].name, "tool:known_function");
	assert_null(events[1].untimed);
	for (uint32_t i = 0; i < file.n; i++)
		(file.places[i].is_return ? returns : entries)[file.places[i].number]++;
	assert_int_equal(entries[0] + returns[0], 0);
	assert_int_equal(entries[1], 1);
	assert_true(returns[1] > 0);
	end(&ep);
#else
	(void)state;
	skip();
#endif
}

/* The item that found them has those it found; what it finds of the same names is theirs. */
static void a_file_that_cannot_be_opened_may_be_an_items(void **state)
{
	static const struct {
		const char *item, *path;
		bool may;
	} cases[] = {
		{ "usdt:python:gc__start", "/lib/libc.so.6", true }, /* in any file */
		{ "p:c:malloc", "/lib/libc.so.6", true },
		{ "p:/opt/prog:main", "/opt/prog", true },
		{ "p:../prog:main", "/opt/prog", true },
		{ "p:python3:main", "/lib/libc.so.6", false },
		{ "page-faults", "/lib/libc.so.6", false },
		{ "sched:sched_switch", "/lib/libc.so.6", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct err e;
		uint32_t n = 0;

		memset(specs, 0, sizeof(specs));
		assert_int_equal(events_parse(cases[i].item, specs, &n, &e), 0);
		assert_int_equal(event_may_be_of(&specs[0], cases[i].path), cases[i].may);
	}
}

static void functions_that_have_no_number_are_counted(void **state)
{
	struct event_probes ep = find("p:tool:known_f*", "/opt/bin/tool");
	uint32_t before = file.n;

	(void)state;
	ep.n = MS_EVENTS_MAX; /* as if the others were of other items */
	assert_int_equal(event_places_find(&ep, &file), 0);
	assert_int_equal(file.n, 2 * before);
	assert_int_equal(ep.items[0].failed, 0);
	strcpy(specs[0].event, "mai?");
	assert_int_equal(event_places_find(&ep, &file), 0);
	assert_int_equal(file.n, 2 * before);
	assert_true(ep.items[0].failed > 0);
	assert_non_null(strstr(ep.items[0].failed_why, "more than"));
	end(&ep);
}

static void a_site_is_found_by_its_note(void **state)
{
	struct event_probes ep = find(
		"usdt:memscope_test:*,usdt:tool:memscope_test:known,usdt:other:memscope_test:known",
		"/opt/bin/tool");

	(void)state;
	assert_int_equal(ep.n, 2); /* none of a file of another name */
	assert_string_equal(events[0].name, "memscope_test:known");
	assert_int_equal(file.n, 2);
#if defined(__x86_64__)
	assert_int_equal(byte_at(file.places[0].off), 0x90);
#endif
	assert_false(events[0].at_entry);
	end(&ep);
}

static void libraries_and_versions_have_short_names(void **state)
{
	static const struct {
		const char *path, *item;
		bool is;
	} cases[] = {
		{ "/lib/libc.so.6", "p:c:known_function", true },
		{ "/lib/libc.so.6", "p:libc:known_function", true },
		{ "/lib/libc-2.31.so", "p:c:known_function", true },
		{ "/usr/bin/python3.11", "p:python3:known_function", true },
		{ "/lib/libcrypto.so.3", "p:c:known_function", false },
		{ "/usr/bin/tool", "p:too:known_function", false },
		{ "/usr/bin/tool", "p:/usr/bin/tool:known_function", true },
		{ "/usr/bin/tool", "p:/proc/self/exe:known_function", true }, /* the same file */
		{ "/usr/bin/tool", "p:/bin/sh:known_function", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct event_probes ep = find(cases[i].item, cases[i].path);

		assert_int_equal(file.n, cases[i].is);
		end(&ep);
	}
}

int proc_table_open_beside(struct proc_table *t, module_id m, const char *path, bool host)
{
	(void)t;
	(void)m;
	(void)path;
	(void)host;
	return -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_is_found_by_name_and_by_pattern),
		cmocka_unit_test(its_returns_are_instructions_that_return),
		cmocka_unit_test(names_of_cxx_are_understood_without_parameters),
		cmocka_unit_test(functions_of_one_name_are_told_apart_by_whether_they_can_be_timed),
		cmocka_unit_test(a_file_that_cannot_be_opened_may_be_an_items),
		cmocka_unit_test(functions_that_have_no_number_are_counted),
		cmocka_unit_test(a_site_is_found_by_its_note),
		cmocka_unit_test(libraries_and_versions_have_short_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
