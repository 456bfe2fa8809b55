/*
 * Hooks of an interpreter that is played here.
 */
#include "../../../user/preload/python.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* --- what alloc.c and exact.c have */

static unsigned seen;

static void *ours_malloc(void *ctx, size_t size)
{
	const struct python_domain *d = ctx;

	seen += python_on;
	return d->next.malloc(d->next.ctx, size);
}

static void *ours_calloc(void *ctx, size_t n, size_t size)
{
	const struct python_domain *d = ctx;

	return d->next.calloc(d->next.ctx, n, size);
}

static void *ours_realloc(void *ctx, void *p, size_t size)
{
	const struct python_domain *d = ctx;

	return d->next.realloc(d->next.ctx, p, size);
}

static void ours_free(void *ctx, void *p)
{
	const struct python_domain *d = ctx;

	d->next.free(d->next.ctx, p);
}

const struct python_allocator python_hooks = { NULL, ours_malloc, ours_calloc, ours_realloc,
					       ours_free };

void exact_interpreter(const struct exact_interpreter *of)
{
	(void)of;
}

/* --- the interpreter */

static struct python_allocator domains[3];
static int (*pending)(void *);
static void *owner, *thread; /* states */
static int initialized, ending, n_interpreters;
static const char *name;

static void *base_malloc(void *ctx, size_t size)
{
	(void)ctx;
	return malloc(size);
}

static void *base_calloc(void *ctx, size_t n, size_t size)
{
	(void)ctx;
	return calloc(n, size);
}

static void *base_realloc(void *ctx, void *p, size_t size)
{
	(void)ctx;
	return realloc(p, size);
}

static void base_free(void *ctx, void *p)
{
	(void)ctx;
	free(p);
}

static void get_allocator(int domain, struct python_allocator *ret)
{
	*ret = domains[domain];
}

static void set_allocator(int domain, const struct python_allocator *to)
{
	domains[domain] = *to;
}

static void *this_thread(void)
{
	return thread;
}

static int is_initialized(void)
{
	return initialized;
}

static int add_pending_call(int (*f)(void *), void *ctx)
{
	(void)ctx;
	pending = f;
	return 0;
}

static void *interpreters(void)
{
	return n_interpreters ? &n_interpreters : NULL;
}

static void *interpreter_after(void *interpreter)
{
	return n_interpreters > 1 ? interpreter : NULL;
}

static const char *allocator_name(void)
{
	return name;
}

static void *current(void)
{
	return owner;
}

static int finalizing(void)
{
	return ending;
}

static const struct python_allocator base = { domains, base_malloc, base_calloc, base_realloc,
					      base_free };

static int begin(void **unused)
{
	(void)unused;
	api.get_allocator = get_allocator;
	api.set_allocator = set_allocator;
	api.this_thread = this_thread;
	api.is_initialized = is_initialized;
	api.add_pending_call = add_pending_call;
	api.interpreters = interpreters;
	api.interpreter_after = interpreter_after;
	api.allocator_name = allocator_name;
	api.is.current = current;
	api.is.finalizing = finalizing;
	for (int i = 0; i < 3; i++)
		domains[i] = base;
	for (int i = 0; i < PYTHON_DOMAINS; i++)
		python_domains[i].known = false;
	wanted = state = python_on = python_pending = seen = 0;
	pending = NULL;
	owner = thread = &owner;
	initialized = n_interpreters = 1;
	ending = 0;
	name = "pymalloc";
	return 0;
}

static void a_call(int domain)
{
	void *p = domains[domain].malloc(domains[domain].ctx, 100);

	assert_non_null(p);
	domains[domain].free(domains[domain].ctx, p);
}

/* --- */

static void hooks_are_exchanged_when_the_interpreter_calls_and_put_back_so(void **unused)
{
	(void)unused;
	assert_int_equal(python_want(true), PYTHON_WANTED);
	assert_true(same(&domains[2], &base)); /* not by the thread that asks */
	pending(NULL);
	assert_int_equal(python_want(true), PYTHON_HOOKED);
	assert_true(same(&domains[0], &base)); /* raw memory comes from malloc */
	a_call(1);
	a_call(2);
	assert_int_equal(seen, 2);
	python_want(false);
	a_call(2); /* still ours, and hands on */
	assert_int_equal(seen, 2);
	pending(NULL);
	assert_true(same(&domains[1], &base) && same(&domains[2], &base));
	pending(NULL); /* one that came late */
	assert_true(same(&domains[2], &base));
}

static void a_thread_that_holds_the_lock_exchanges_them_at_once_and_no_other(void **unused)
{
	static int other;

	(void)unused;
	initialized = 0; /* a command that has just been started */
	python_want(true);
	assert_null(pending);
	python_try();
	initialized = 1;
	thread = &other;
	python_try();
	thread = owner = NULL;
	python_try();
	assert_true(same(&domains[2], &base));
	assert_int_equal(python_pending, 1);
	thread = owner = &owner;
	python_try();
	assert_false(same(&domains[2], &base));
	assert_int_equal(python_pending, 0);
}

/* As tracemalloc does. */
static void *above_malloc(void *ctx, size_t size)
{
	const struct python_allocator *saved = ctx;

	return saved->malloc(saved->ctx, size);
}

static void hooks_that_another_has_kept_stay_and_never_come_twice(void **unused)
{
	struct python_allocator saved, above;
	void *p;

	(void)unused;
	python_want(true);
	pending(NULL);
	saved = domains[2];
	above = saved;
	above.ctx = &saved;
	above.malloc = above_malloc;
	domains[2] = above;
	python_want(false);
	pending(NULL);
	assert_ptr_equal(domains[2].malloc, above_malloc);
	assert_true(same(&domains[1], &base));
	python_want(true);
	pending(NULL); /* before it they would be a circle */
	assert_ptr_equal(domains[2].malloc, above_malloc);
	assert_int_equal(python_want(true), PYTHON_REFUSED);
	p = domains[2].malloc(domains[2].ctx, 8);
	assert_non_null(p);
	assert_int_equal(seen, 1); /* through those that it has kept */
	free(p);
	domains[2] = saved;
	python_want(false);
	pending(NULL);
	assert_true(same(&domains[2], &base));
}

static void debug_hooks_several_interpreters_and_the_end_are_left_alone(void **unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++) {
		begin(NULL);
		name = i == 0 ? "pymalloc_debug" : NULL;
		n_interpreters = i == 1 ? 2 : 1;
		python_want(true);
		ending = i == 2; /* between the two */
		pending(NULL);
		assert_true(same(&domains[2], &base));
		assert_int_equal(python_want(true), PYTHON_REFUSED);
	}
}

static void without_an_interpreter_there_is_nothing_to_do(void **unused)
{
	(void)unused;
	memset(&api, 0, sizeof(api));
	assert_int_equal(python_want(true), PYTHON_NONE);
	assert_int_equal(python_want(false), PYTHON_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			hooks_are_exchanged_when_the_interpreter_calls_and_put_back_so, begin),
		cmocka_unit_test_setup(
			a_thread_that_holds_the_lock_exchanges_them_at_once_and_no_other, begin),
		cmocka_unit_test_setup(hooks_that_another_has_kept_stay_and_never_come_twice,
				       begin),
		cmocka_unit_test_setup(debug_hooks_several_interpreters_and_the_end_are_left_alone,
				       begin),
		cmocka_unit_test_setup(without_an_interpreter_there_is_nothing_to_do, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
