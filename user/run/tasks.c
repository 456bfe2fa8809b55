#include "run/tasks.h"

#include "analyse/sites.h"
#include "base/clock.h"
#include "base/hash.h"

#define LOOK_NS                                                                                    \
	97000000ULL    /* at least, between two looks: no round number, programs have those … */
#define LOOK_SHARE 200 /* … and so many times the CPU time that one takes                    */
#define STACKS_MAX 4096
#define AGES_MAX   16384 /* tasks that wait at one time */

struct task_stack {
	stack_id stack;
	struct task_use use;
	uint32_t last_look;
	UT_hash_handle hh;
};

struct task_key {
	uint64_t pid, at;
};

/* A task that waits, and where it did when it was seen last. */
struct task_age {
	struct task_key key;
	uint64_t waits_for, since_ns;
	stack_id stack;
	uint32_t last_look;
	UT_hash_handle hh;
};

static struct task_stack *stack_of(struct tasks *t, stack_id stack)
{
	struct task_stack *s;

	HASH_FIND(hh, t->stacks, &stack, sizeof(stack), s);
	return s;
}

static void left(struct tasks *t, stack_id stack)
{
	struct task_stack *s = stack_of(t, stack);

	if (s)
		s->use.left++;
}

/* How long it has been seen to wait for the same: a future may lie where the one before it lay. */
static int64_t age_of(struct tasks *t, const struct user_stacks_task *task)
{
	const struct task_key key = { (uint64_t)task->pid, task->at };
	struct task_age *a;
	bool is_new;

	HASH_FIND(hh, t->ages, &key, sizeof(key), a);
	is_new = !a;
	if (!a && HASH_COUNT(t->ages) < AGES_MAX)
		a = hash_new(t->ages, key, &key);
	if (!a)
		return 0;
	if (!is_new && (a->stack.ix != task->stack.ix || a->waits_for != task->waits_for)) {
		left(t, a->stack);
		is_new = true;
	}
	if (is_new) {
		a->stack = task->stack;
		a->waits_for = task->waits_for;
		a->since_ns = t->now_ns;
	}
	a->last_look = t->looks;
	return (int64_t)(t->now_ns - a->since_ns);
}

static void on_task(void *ctx, const struct user_stacks_task *task)
{
	struct tasks *t = ctx;
	int64_t age_ns = age_of(t, task);
	struct task_stack *s = stack_of(t, task->stack);

	if (!s && HASH_COUNT(t->stacks) < STACKS_MAX) {
		s = hash_new(t->stacks, stack, &task->stack);
		if (s)
			s->use.stack = task->stack;
	}
	if (!s) {
		t->left_out++;
		return;
	}
	s->use.of_task = task->of_task;
	s->use.seen++;
	s->use.looks += s->last_look != t->looks;
	s->last_look = t->looks;
	if (age_ns > s->use.longest_ns)
		s->use.longest_ns = age_ns;
}

/* Tasks that wait no more. */
static void forget(struct tasks *t)
{
	struct task_age *a, *next;

	HASH_ITER (hh, t->ages, a, next) {
		if (a->last_look == t->looks)
			continue;
		left(t, a->stack);
		HASH_DEL(t->ages, a);
		free(a);
	}
}

void tasks_tick(struct tasks *t, struct user_stacks *st, uint64_t now_ns)
{
	struct user_stacks_tasks look = { .task = on_task, .ctx = t };
	uint64_t began, took;

	if (now_ns < t->next_ns)
		return;
	began = thread_cpu_ns();
	t->now_ns = now_ns;
	t->looks++;
	user_stacks_tasks(st, &look);
	forget(t);
	if (!look.processes)
		t->looks--;
	t->seen += look.seen;
	t->ready += look.ready;
	t->changed += look.changed;
	t->more |= look.more;
	took = (thread_cpu_ns() - began) * LOOK_SHARE;
	t->next_ns = now_ns + (took > LOOK_NS ? took : LOOK_NS);
}

void tasks_report(struct tasks *t, const struct dict *d, struct run_summary *to)
{
	struct task_use *uses = calloc(HASH_COUNT(t->stacks) + 1ul, sizeof(*uses));
	uint32_t n = 0;

	for (const struct task_stack *s = t->stacks; s && uses; s = s->hh.next)
		uses[n++] = s->use;
	if (uses)
		to->tasks.n = row_count(tasks_rank(d, uses, n, t->looks, t->rows, TASK_ROWS));
	free(uses);
	to->tasks.rows = t->rows;
	to->tasks.looks = t->looks;
	to->tasks.seen = t->seen;
	to->tasks.ready = t->ready;
	to->tasks.changed = t->changed;
	to->tasks.left_out = t->left_out;
	to->tasks.more = t->more;
}

void tasks_free(struct tasks *t)
{
	hash_free(t->stacks);
	hash_free(t->ages);
}
