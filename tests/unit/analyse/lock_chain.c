#include "analyse/lock_chain.h"
#include "unit/profile_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct value_type waits[] = { { "blocked", "count" }, { "blocked", "nanoseconds" } };

#define LOCKED "LWLockAcquireOrWait;semop;futex_wait_[k];schedule_[k]"
#define DISK   "fdatasync;folio_wait_bit_[k];schedule_[k]"

static void add(struct fixture *f, const char *stack, int64_t count, int64_t ns)
{
	fixture_add(f, stack, (const int64_t[]){ count, ns });
}

/* The first wait for a mutex. */
static struct site_row lock_of(const struct profile *p)
{
	struct site_row rows[8];
	int n = sites_waits(p, 1, 0, rows, 8);

	for (int i = 0; i < n; i++)
		if (rows[i].role == WAIT_ROLE_MUTEX)
			return rows[i];
	fail_msg("no mutex");
	return rows[0];
}

static void the_wait_below_the_function_that_takes_the_lock_is_found(void **state)
{
	struct fixture f = fixture_new(waits, 2);
	struct site_row lock, under;

	add(&f, ";main;commit;XLogFlush;" LOCKED, 90, 900);
	add(&f, ";main;commit;XLogFlush;" DISK, 50, 500);
	add(&f, ";main;commit;XLogFlush;XLogWrite;" DISK, 30, 300);
	add(&f, ";main;checkpoint;" DISK, 80, 800);
	lock = lock_of(f.p);
	assert_string_equal(lock.function, "LWLockAcquireOrWait");
	assert_int_equal(lock_chain_find(f.p, 1, &lock, &under), 1);
	assert_string_equal(under.function, "fdatasync");
	assert_int_equal(under.wait, WAIT_DISK);
	assert_int_equal(under.value, 800);
	assert_int_equal(under.count, 80);
	fixture_free(&f);
}

static void what_only_a_far_caller_waits_for_is_not_under_the_lock(void **state)
{
	struct fixture f = fixture_new(waits, 2);
	struct site_row lock, under;

	add(&f, ";main;serve;handle;commit;XLogFlush;" LOCKED, 90, 900);
	add(&f, ";main;serve;write_log;" DISK, 80, 800);
	lock = lock_of(f.p);
	assert_int_equal(lock_chain_find(f.p, 1, &lock, &under), 0);
	fixture_free(&f);
}

static void a_wait_that_may_be_for_work_is_not_taken_for_the_reason(void **state)
{
	struct fixture f = fixture_new(waits, 2);
	struct site_row lock, under;

	add(&f, ";main;commit;XLogFlush;" LOCKED, 90, 900);
	add(&f, ";main;commit;XLogFlush;recv;sk_wait_data_[k];schedule_[k]", 80, 800);
	lock = lock_of(f.p);
	assert_int_equal(lock_chain_find(f.p, 1, &lock, &under), 0);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_wait_below_the_function_that_takes_the_lock_is_found),
		cmocka_unit_test(what_only_a_far_caller_waits_for_is_not_under_the_lock),
		cmocka_unit_test(a_wait_that_may_be_for_work_is_not_taken_for_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
