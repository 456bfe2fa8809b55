/* What a cell says of a Go program: places as reading them here does, and nothing that does not hold together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/put.h"
#include "cell_fixture.h"
#include "lang/go_cell.h"
#include "unit/lang/goroutines_image.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

static int open_image(void *ctx)
{
	int fd = memfd_create("image", MFD_CLOEXEC);

	(void)ctx;
	assert_int_equal(write(fd, go_code.bytes, go_code.len), go_code.len);
	return fd;
}

/* Its table is Go's, but it does not say which version made it. */
static void a_program_without_a_version_is_none(void **state)
{
	_cleanup_(go_program_freep) struct go_program *here = go_image_program(), *p = NULL;
	_cleanup_(closep) int fd = open_image(NULL);
	struct err e;

	(void)state;
	assert_non_null(here);
	assert_int_equal(go_program_ask(fd, &p, &e), -ENOENT);
}

static void what_is_no_go_program_has_no_sentence(void **state)
{
	_cleanup_(closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct go_program *p = NULL;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(go_program_ask(fd, &p, &e), -ENOENT);
	assert_null(p);
	assert_string_equal(e.msg, "");
}

static void places_are_asked_for_one_after_the_other(void **state)
{
	_cleanup_(go_program_freep) struct go_program *p = go_image_program();
	struct go_places places = GO_PLACES(open_image, NULL);

	(void)state;
	for (uint64_t vaddr = p->main - 8; vaddr < p->main + 64; vaddr += 4) {
		struct go_place here, there;

		assert_true(go_image_place(NULL, vaddr, &here));
		assert_true(go_places_find(&places, vaddr, &there));
		assert_int_equal(there.vaddr, vaddr);
		assert_int_equal(there.delta, here.delta);
		assert_int_equal(there.kind, here.kind);
		assert_int_equal(there.runtime, here.runtime);
		assert_int_equal(there.main, here.main);
		assert_int_equal(there.entry, here.entry);
	}
	go_places_end(&places);
	assert_false(places.gave_up);
}

static int no_file(void *ctx)
{
	(void)ctx;
	return -ENOENT;
}

static void a_cell_that_dies_is_not_asked_again(void **state)
{
	_cleanup_(go_program_freep) struct go_program *p = go_image_program();
	struct go_places places = GO_PLACES(open_image, NULL), none = GO_PLACES(no_file, NULL);
	struct go_place place;

	(void)state;
	assert_true(go_places_find(&places, p->main, &place));
	kill_the_cell();
	assert_false(go_places_find(&places, p->main + 1, &place));
	assert_true(places.gave_up);
	assert_true(places.is_bad);
	assert_false(go_places_find(&places, p->main, &place));
	/* That there is no file now says nothing of it. */
	assert_false(go_places_find(&none, p->main, &place));
	assert_true(none.gave_up);
	assert_false(none.is_bad);
}

static void answers_that_are_late_are_waited_for_so_long_in_all(void **state)
{
	_cleanup_(go_program_freep) struct go_program *p = go_image_program();
	struct go_places places = GO_PLACES(open_image, NULL);
	struct go_place place;

	(void)state;
	assert_true(go_places_find(&places, p->main, &place));
	assert_true(places.left_ns < GO_PLACES_NS);
	places.left_ns = 0;
	assert_false(go_places_find(&places, p->main + 1, &place));
	assert_true(places.is_bad);
}

static int take(const struct go_program *p, size_t len, struct go_program **ret)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	*ret = NULL;
	put_u32(&b, 0);
	strbuf_add(&b, p, len);
	return go_program_take(bytes_of(b.s, b.len), ret, NULL);
}

static void programs_that_do_not_hold_together_are_refused(void **state)
{
	_cleanup_(go_program_freep) struct go_program *here = go_image_program(), *p = NULL;
	struct go_program good = *here, bent;

	(void)state;
	good.places = (void *)(uintptr_t)0x41414141;
	good.n_places = good.cap_places = 1000;
	good.layout.goid = 1;
	assert_int_equal(take(&good, sizeof(good), &p), 0);
	assert_null(p->places);
	assert_int_equal(p->cap_places, 0);
	assert_int_equal(p->layout.goid, here->layout.goid);
	assert_int_equal(take(&good, sizeof(good) - 1, &(struct go_program *){ NULL }), -EBADMSG);
	bent = good;
	bent.version = 0x020000;
	assert_int_equal(take(&bent, sizeof(bent), &(struct go_program *){ NULL }), -EBADMSG);
	bent = good;
	bent.n_allgs = REFS_MAX + 1;
	assert_int_equal(take(&bent, sizeof(bent), &(struct go_program *){ NULL }), -EBADMSG);
	bent = good;
	bent.n_reasons = REFS_MAX + 1;
	assert_int_equal(take(&bent, sizeof(bent), &(struct go_program *){ NULL }), -EBADMSG);
}

static bool take_place(uint8_t kind, uint8_t flags, size_t less)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	struct go_place place;

	put_u32(&b, 16);
	put_u8(&b, kind);
	put_u8(&b, flags);
	return go_place_take(bytes_of(b.s, b.len - less), 1, &place);
}

static void places_that_do_not_hold_together_are_refused(void **state)
{
	(void)state;
	assert_true(take_place(GO_FRAME_NONE, 7, 0));
	assert_false(take_place(GO_FRAME_NONE, 7, 1));
	assert_false(take_place(GO_FRAME_NONE + 1, 7, 0));
	assert_false(take_place(GO_FRAME_NONE, 8, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_without_a_version_is_none),
		cmocka_unit_test(what_is_no_go_program_has_no_sentence),
		cmocka_unit_test(places_are_asked_for_one_after_the_other),
		cmocka_unit_test(a_cell_that_dies_is_not_asked_again),
		cmocka_unit_test(answers_that_are_late_are_waited_for_so_long_in_all),
		cmocka_unit_test(programs_that_do_not_hold_together_are_refused),
		cmocka_unit_test(places_that_do_not_hold_together_are_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
