#include "collect/stream/wakers.h"
#include "run_fixture.h"

static struct run_config cfg = { .sources = { [SOURCE_OFFCPU] = true } };
static waker_event_fn on_event;
static void *on_event_ctx;
static stack_id wait, waker; /* as ingest has them; 0: not come yet */

void wakers_listen(struct wakers *w, waker_event_fn fn, void *ctx)
{
	on_event = fn;
	on_event_ctx = ctx;
}

uint64_t wakers_left_out(const struct wakers *w)
{
	return 0;
}

bool ingest_place(struct ingest *in, const struct event_key *key, stack_id *ret_stack,
		  labels_id *ret_labels)
{
	*ret_stack = wait;
	*ret_labels = (labels_id){ 0 };
	return wait.ix;
}

bool ingest_place_stack(struct ingest *in, const struct event_key *key, stack_id *ret_stack)
{
	*ret_stack = waker;
	return waker.ix;
}

static stack_id stack_of(struct dict *d, const char *leaf, const char *root)
{
	struct line lines[] = { { .function = dict_string(d, leaf) },
				{ .function = dict_string(d, root) } };
	location_id frames[] = { dict_location_lines(d, (module_id){ 0 }, 1, &lines[0], 1),
				 dict_location_lines(d, (module_id){ 0 }, 1, &lines[1], 1) };

	return dict_stack(d, frames, 2);
}

/* Names of a stack, root first. */
static const char *names_of(const struct dict *d, stack_id s)
{
	static char text[512];
	char rest[256] = "";

	for (; s.ix; s = dict_stack_parent(d, s)) {
		const struct location *l = dict_location_get(d, dict_stack_leaf(d, s));

		snprintf(text, sizeof(text), "%s %s", dict_str(d, l->lines[0].function), rest);
		memcpy(rest, text, sizeof(rest) - 1);
	}
	return text;
}

static void a_wait_has_its_wakers_stack_on_top_leaf_first(void **state)
{
	const struct profile_row *row = &profile_rows[PROFILE_WAKERS];
	const struct component *c = component_named("wakers");
	struct run *r = bare_run(&cfg);
	void *self = alone(r, "wakers");
	struct waker_event event = {
		.kind = WAKER_TASK, .pid = 7, .comm = "kworker/1:2", .count = 2, .ns = 30
	};
	struct profile *p;
	struct profile_sample s;

	(void)state;
	assert_true(c->wanted(&cfg));
	r->profiles[PROFILE_WAKERS] = p = profile_new(r->dict, row->types, row->n_types);
	wait = stack_of(r->dict, "read", "serve");
	waker = (stack_id){ 0 };
	assert_int_equal(c->open(self, NULL), 0);
	on_event(on_event_ctx, &event);
	assert_int_equal(profile_n_samples(p), 0); /* its stack has not come */
	assert_false(pipeline_has(r, PROFILE_WAKERS));
	waker = stack_of(r->dict, "write", "produce");
	c->drained(self, 0);
	assert_int_equal(profile_n_samples(p), 1);
	s = profile_sample(p, 0);
	assert_string_equal(names_of(r->dict, s.stack),
			    "serve read [woken by] write produce kworker/1:2 ");
	assert_true(s.values[0] == 2 && s.values[1] == 30);
	assert_int_equal(dict_label_find(r->dict, s.labels, "waker_pid")->num, 7);
	/* Threads of the kernel that do the same are one. */
	event.of_kernel = true;
	on_event(on_event_ctx, &event);
	assert_string_equal(names_of(r->dict, profile_sample(p, 1).stack),
			    "serve read [woken by] write produce kworker ");
	event.kind = WAKER_INTERRUPT;
	on_event(on_event_ctx, &event);
	assert_string_equal(names_of(r->dict, profile_sample(p, 2).stack),
			    "serve read [woken by] write produce [interrupt] ");
	assert_null(dict_label_find(r->dict, profile_sample(p, 2).labels, "waker_pid"));
	event.kind = WAKER_UNKNOWN;
	on_event(on_event_ctx, &event);
	assert_string_equal(names_of(r->dict, profile_sample(p, 3).stack),
			    "serve read [woken by] [unknown] ");
	assert_int_equal(c->finish(self, NULL), 0);
	assert_int_equal(profile_total(p, 1), 120);
	cfg.no_wakers = true;
	assert_false(c->wanted(&cfg));
	cfg.no_wakers = false;
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_has_its_wakers_stack_on_top_leaf_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
