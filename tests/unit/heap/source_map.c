/* The map of positions in sources that a GHC program carries, in each form that versions have, made by hand. */
#include "heap/ghc/source_map.h"

#include "ghc_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <zstd.h>

#include <cmocka.h>

/* Places among the static objects. */
enum {
	HEAD = 0,
	NODE = 64,
	SECOND = 1600,
	INFOS = 3200,
	ENTRIES = 3400,
	TEXTS = 4096,
	LISTS = 5120
};

#define AT(place) (GHC_STATIC + (uint64_t)(place))
#define INFO(i)   (GHC_CODE + 256 + 64ULL * (i))

static struct ghc_fixture f;
static uint32_t n_texts; /* bytes of texts so far */

static int fresh(void **state)
{
	(void)state;
	ghc_fixture_init(&f);
	n_texts = 0;
	return 0;
}

static int done(void **state)
{
	(void)state;
	ghc_fixture_fini(&f);
	return 0;
}

/* Where it begins among the texts. */
static uint32_t text(const char *t)
{
	uint32_t from = n_texts;

	memcpy(ghc_fixture_at(&f, AT(TEXTS + from), strlen(t) + 1), t, strlen(t) + 1);
	n_texts += (uint32_t)strlen(t) + 1;
	return from;
}

static void words(uint64_t at, uint32_t n, const uint64_t *w)
{
	for (uint32_t i = 0; i < n; i++)
		ghc_put(&f, at + 8 * i, w[i], 8);
}

static uint64_t put_numbers(uint64_t at, uint32_t n, const uint32_t *numbers)
{
	for (uint32_t i = 0; i < n; i++)
		ghc_put(&f, at + 4 * i, numbers[i], 4);
	return at + 4 * n;
}

/* --- what is found --- */

static char found[1024];

static bool any(void *ctx, uint64_t info)
{
	(void)ctx;
	return info != INFO(1); /* nobody asks for the second one */
}

static void on_source(void *ctx, uint64_t info, const struct ghc_source *s)
{
	size_t len = strlen(found);

	(void)ctx;
	snprintf(found + len, sizeof(found) - len, "%llu %s.%s %s\n",
		 (unsigned long long)((info - INFO(0)) / 64), s->module, s->label, s->position);
}

static uint64_t look(void)
{
	*found = '\0';
	return ghc_source_map_read(&f.g, AT(HEAD), any, on_source, NULL);
}

static const char expected[] = "0 Main.load app/Main.hs:12:5-30\n2 Main. \n";

/* --- forms --- */

static void put_head(uint64_t node)
{
	ghc_put(&f, AT(HEAD), node, 8);
}

static void a_list_of_lists(void **state)
{
	const uint64_t first[] = { INFO(0),       AT(TEXTS),     AT(TEXTS),     AT(TEXTS),
				   AT(TEXTS + 1), AT(TEXTS + 6), AT(TEXTS + 11) };
	const uint64_t second[] = { INFO(1), 0, 0, 0, 0, 0, 0 };
	const uint64_t third[] = { INFO(2),   AT(TEXTS),     AT(TEXTS), AT(TEXTS),
				   AT(TEXTS), AT(TEXTS + 6), AT(TEXTS) };

	(void)state;
	text("");
	text("load");
	text("Main");
	text("app/Main.hs:12:5-30");
	words(AT(ENTRIES), 7, first);
	words(AT(ENTRIES + 64), 7, second);
	words(AT(ENTRIES + 128), 7, third);
	words(AT(LISTS), 4, (const uint64_t[]){ AT(ENTRIES), AT(ENTRIES + 64), 0, 0 });
	words(AT(LISTS + 64), 2, (const uint64_t[]){ AT(ENTRIES + 128), 0 });
	/* The first node has the last list. */
	words(AT(NODE), 1, (const uint64_t[]){ AT(LISTS) });
	words(AT(NODE + 8 * 126), 2, (const uint64_t[]){ 1, AT(SECOND) });
	words(AT(SECOND), 1, (const uint64_t[]){ AT(LISTS + 64) });
	words(AT(SECOND + 8 * 126), 2, (const uint64_t[]){ 1, 0 });
	put_head(AT(NODE));
	assert_int_equal(look(), 3);
	assert_string_equal(found, expected);
	ghc_put(&f, AT(ENTRIES), GHC_STATIC, 8); /* no code */
	assert_int_equal(look(), 0);
}

/* With a number each, and the position as one text or as two. */
static void entries_behind_their_node(void **state)
{
	uint32_t none = text(""), label = text("load"), module = text("Main");
	uint32_t whole = text("app/Main.hs:12:5-30"), file = text("app/Main.hs"),
		 span = text("12:5-30");

	(void)state;
	for (int two = 0; two < 2; two++) {
		uint64_t at = AT(NODE + 24);

		words(AT(NODE), 3, (const uint64_t[]){ 0, AT(TEXTS), 3 });
		for (uint32_t i = 0; i < 3; i++) {
			uint32_t l = i ? none : label,
				 p = i     ? none
				     : two ? file
					   : whole,
				 s = i ? none : span;

			ghc_put(&f, at, INFO(i), 8);
			at = put_numbers(
				at + 8, two ? 8 : 6,
				(const uint32_t[]){ none, none, none, l, module, p, s, 0 });
		}
		put_head(AT(NODE));
		assert_int_equal(look(), 3);
		assert_string_equal(found, expected);
	}
	ghc_put(&f, AT(TEXTS + label), 7, 1); /* no text */
	assert_int_equal(look(), 0);
}

static void put_apart(bool shared, bool magic, uint32_t *ret_entries)
{
	uint32_t none = text(""), label = text("load"), module = text("Main"),
		 file = text("app/Main.hs"), span = text("12:5-30");
	uint64_t at = AT(ENTRIES);

	if (magic) {
		ghc_put(&f, at, 0x4950450049504500ULL, 8);
		at += 8;
	}
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t l = i ? none : label, p = i ? none : file, s = i ? none : span;

		ghc_put(&f, AT(INFOS + 8 * i), INFO(i), 8);
		at = shared ? put_numbers(at, 6, (const uint32_t[]){ none, 17, none, l, p, s })
			    : put_numbers(
				      at, 8,
				      (const uint32_t[]){ none, none, none, l, module, p, s, 0 });
	}
	*ret_entries = (uint32_t)(at - AT(ENTRIES));
	words(AT(NODE), 9,
	      (const uint64_t[]){ 0, 0, 3, AT(INFOS), AT(ENTRIES), *ret_entries, AT(TEXTS), n_texts,
				  shared ? (uint64_t)module << 32 : UINT64_MAX });
	put_head(AT(NODE));
}

static void infos_and_entries_in_arrays_of_their_own(void **state)
{
	uint32_t bytes;

	(void)state;
	for (int form = 0; form < 3; form++) {
		n_texts = 0;
		put_apart(form > 0, form == 2, &bytes);
		if (form == 2) { /* the texts have it, too */
			memmove(ghc_fixture_at(&f, AT(TEXTS + 8), n_texts),
				ghc_fixture_at(&f, AT(TEXTS), n_texts), n_texts);
			ghc_put(&f, AT(TEXTS), 0x4950450049504500ULL, 8);
		}
		assert_int_equal(look(), 3);
		assert_string_equal(found, expected);
	}
	ghc_put(&f, AT(NODE + 40), 8, 8); /* fewer entries than there are */
	assert_int_equal(look(), 0);
}

static void put_packed(int place, uint32_t bytes)
{
	uint8_t packed[1024];
	uint8_t *at = ghc_fixture_at(&f, AT(place), sizeof(packed));
	size_t n = ZSTD_compress(packed, sizeof(packed), at, bytes, 1);

	assert_false(ZSTD_isError(n));
	memset(at, 0, bytes);
	memcpy(at, packed, n);
}

static void entries_and_texts_may_be_compressed(void **state)
{
	uint32_t bytes;

	(void)state;
	put_apart(true, false, &bytes);
	put_packed(ENTRIES, bytes);
	put_packed(TEXTS, n_texts);
	ghc_put(&f, AT(NODE + 8), 1, 8);
	assert_int_equal(look(), 3);
	assert_string_equal(found, expected);
	ghc_put(&f, AT(TEXTS + 8), ~0ULL, 8); /* damaged */
	assert_int_equal(look(), 0);
}

static void rings_and_no_map_at_all_end(void **state)
{
	uint32_t bytes;

	(void)state;
	assert_int_equal(ghc_source_map_read(&f.g, 0, any, on_source, NULL), 0);
	assert_int_equal(look(), 0);
	put_head(1ULL << 60);
	assert_int_equal(look(), 0);
	put_apart(true, false, &bytes);
	ghc_put(&f, AT(NODE), AT(NODE), 8);
	assert_true(look() > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_list_of_lists, fresh, done),
		cmocka_unit_test_setup_teardown(entries_behind_their_node, fresh, done),
		cmocka_unit_test_setup_teardown(infos_and_entries_in_arrays_of_their_own, fresh,
						done),
		cmocka_unit_test_setup_teardown(entries_and_texts_may_be_compressed, fresh, done),
		cmocka_unit_test_setup_teardown(rings_and_no_map_at_all_end, fresh, done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
