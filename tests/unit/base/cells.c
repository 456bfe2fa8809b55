/* Cells made by the maker: what they have, how they end, and that nothing is left of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cell.h"
#include "base/cell_call.h"
#include "base/cells.h"
#include "base/clock.h"

static uint64_t in_s(uint32_t s)
{
	return now_ns() + s * 1000000000ull;
}

static char gathered[32] = "nothing"; /* what memscope has after the maker was made */

/* In capitals, what is in the file that came with the question. */
static void shout(const struct cell_given *given)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	char text[64] = "";
	ssize_t n;

	if (talk_take(given->channel, 64, true, in_s(10), &t) < 0)
		_exit(1);
	n = pread(t.fds[0], text, sizeof(text), 0);
	for (ssize_t i = 0; i < n; i++)
		text[i] = (char)toupper(text[i]);
	talk_send(given->channel, t.what + 1, text, n > 0 ? (size_t)n : 0, NULL, 0, in_s(10));
}

static void say_what_it_has(const struct cell_given *given)
{
	talk_send(given->channel, 0, gathered, strlen(gathered), NULL, 0, in_s(10));
}

static void say_who(const struct cell_given *given)
{
	pid_t pid = getpid();

	talk_send(given->channel, 0, &pid, sizeof(pid), NULL, 0, in_s(10));
	for (;;)
		pause(); /* which it may not: a loop */
}

static void say_nothing(const struct cell_given *given)
{
	(void)given;
	for (;;)
		pause();
}

static void die(const struct cell_given *given)
{
	(void)given;
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV); /* which it may not */
	*(volatile char *)1 = 0;
}

static void send_a_descriptor(const struct cell_given *given)
{
	talk_send(given->channel, 7, "", 0, &given->channel, 1, in_s(10));
}

static void say_more_than_it_may(const struct cell_given *given)
{
	static char much[4096];

	talk_send(given->channel, 0, much, sizeof(much), NULL, 0, in_s(10));
}

#define KIND(fn)                                                                                   \
	static const struct cell_kind kind_##fn = {                                                \
		.name = #fn, .work = fn, .data_bytes = 16 << 20, .cpu_s = 20, .files = 8           \
	};                                                                                         \
	CELL_KIND(kind_##fn)

KIND(shout);
KIND(say_what_it_has);
KIND(say_who);
KIND(say_nothing);
KIND(die);
KIND(send_a_descriptor);
KIND(say_more_than_it_may);

static const struct cell_kind unknown = { .name = "unknown", .work = die };

static int file_of(const char *text)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

static void ask_to_shout(const char *text, const char *loud)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	_cleanup_(closep) int fd = file_of(text);
	struct cell_link l;
	struct cell_end end;

	assert_int_equal(cell_open(&kind_shout, &l), 0);
	assert_int_equal(talk_send(l.channel, 3, "", 0, &fd, 1, in_s(10)), 0);
	assert_int_equal(talk_take(l.channel, 100, false, in_s(10), &t), 0);
	cell_close(&l, &end);
	assert_int_equal(t.what, 4);
	assert_string_equal(t.data, loud);
	assert_true(WIFEXITED(end.status));
	assert_int_equal(WEXITSTATUS(end.status), 0);
	assert_in_range(end.cpu_ns, 1, 1000000000);
}

static void it_answers_about_a_file_that_it_is_sent(void **state)
{
	(void)state;
	ask_to_shout("names", "NAMES");
}

static void what_was_gathered_since_is_not_in_it(void **state)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	struct cell_link l;

	(void)state;
	strcpy(gathered, "a secret of another container");
	assert_int_equal(cell_open(&kind_say_what_it_has, &l), 0);
	assert_int_equal(talk_take(l.channel, 100, false, in_s(10), &t), 0);
	cell_close(&l, NULL);
	assert_string_equal(t.data, "nothing");
}

static pid_t begin_endless(struct cell_link *ret)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	pid_t pid;

	assert_int_equal(cell_open(&kind_say_who, ret), 0);
	assert_int_equal(talk_take(ret->channel, 100, false, in_s(10), &t), 0);
	assert_int_equal(t.len, sizeof(pid));
	memcpy(&pid, t.data, sizeof(pid));
	assert_int_equal(kill(pid, 0), 0);
	return pid;
}

static void it_ends_when_it_is_told_to(void **state)
{
	struct cell_link l;
	struct cell_end end;
	pid_t pid = begin_endless(&l);

	(void)state;
	cell_kill(&l);
	cell_close(&l, &end);
	assert_true(WIFSIGNALED(end.status));
	assert_int_equal(WTERMSIG(end.status), SIGKILL);
	assert_int_equal(kill(pid, 0), -1);
}

static void it_ends_when_nobody_wants_it(void **state)
{
	struct cell_link l;
	pid_t pid = begin_endless(&l);
	uint64_t until = in_s(5);

	(void)state;
	cell_close(&l, NULL);
	while (kill(pid, 0) == 0 && now_ns() < until)
		usleep(1000);
	assert_int_equal(kill(pid, 0), -1);
}

static void one_that_breaks_is_one_only(void **state)
{
	struct cell_link l;
	struct cell_end end;

	(void)state;
	assert_int_equal(cell_open(&kind_die, &l), 0);
	cell_close(&l, &end);
	assert_true(WIFSIGNALED(end.status));
	assert_int_equal(WTERMSIG(end.status), SIGSEGV);
	ask_to_shout("after", "AFTER");
}

static void what_is_no_kind_is_no_cell(void **state)
{
	struct cell_link l;

	(void)state;
	assert_int_equal(cell_open(&unknown, &l), -EINVAL);
}

static void descriptors_that_nobody_wants_are_closed(void **state)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	struct cell_link l;
	int before, after;

	(void)state;
	assert_int_equal(cell_open(&kind_send_a_descriptor, &l), 0);
	before = dup(0);
	close(before);
	assert_int_equal(talk_take(l.channel, 100, false, in_s(10), &t), 0);
	after = dup(0);
	close(after);
	assert_int_equal(t.what, 7);
	assert_int_equal(t.fds[0], -1);
	assert_int_equal(before, after);
	cell_close(&l, NULL);
}

static void more_than_is_wanted_is_refused(void **state)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	struct cell_link l;

	(void)state;
	assert_int_equal(cell_open(&kind_say_more_than_it_may, &l), 0);
	assert_int_equal(talk_take(l.channel, 4095, false, in_s(10), &t), -EFBIG);
	cell_close(&l, NULL);
}

static void silence_has_an_end(void **state)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	struct cell_link l;

	(void)state;
	begin_endless(&l);
	assert_int_equal(talk_take(l.channel, 100, false, now_ns() + 20000000, &t), -ETIMEDOUT);
	cell_close(&l, NULL);
}

/* More than there may be at a time: the rest have their turn. */
/* Less for each that was waited for in vain, and no less for other questions. */
static void patience_ends(void **state)
{
	static struct cell_patience patience, other;
	struct cell_call call = {
		.kind = &kind_say_nothing, .seconds = 2, .patience = &patience, .answer_max = 8
	};
	uint64_t took[3];
	struct talk t;

	(void)state;
	for (int i = 0; i < 3; i++) {
		uint64_t begin = now_ns();

		call.patience = i < 2 ? &patience : &other;
		assert_int_equal(cell_call(&call, &t, NULL), -ETIMEDOUT);
		took[i] = now_ns() - begin;
	}
	assert_true(took[0] >= 2000000000 && took[2] >= 2000000000);
	assert_true(took[1] >= 1000000000 && took[1] < 2000000000);
}

static void there_may_be_many(void **state)
{
	struct cell_link l[100];
	int fd = file_of("x");

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(cell_open(&kind_shout, &l[i]), 0);
	for (int i = 0; i < 100; i++) {
		_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };

		assert_int_equal(talk_send(l[i].channel, 1, "", 0, &fd, 1, in_s(10)), 0);
		assert_int_equal(talk_take(l[i].channel, 100, false, in_s(20), &t), 0);
		assert_string_equal(t.data, "X");
		cell_close(&l[i], NULL);
	}
	close(fd);
}

static void *ask_often(void *arg)
{
	for (int i = 0; i < 25; i++)
		ask_to_shout("thread", "THREAD");
	return arg;
}

static void any_thread_may_ask(void **state)
{
	pthread_t threads[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_often, NULL), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static pid_t only_child(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/thread-self/children", "re");
	int pid, more;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &pid), 1);
	assert_int_not_equal(fscanf(f, "%d", &more), 1);
	return pid;
}

static void a_maker_that_is_gone_is_made_anew(void **state)
{
	pid_t before = only_child();

	(void)state;
	assert_int_equal(kill(before, SIGKILL), 0);
	assert_int_equal(waitpid(before, NULL, 0), before);
	ask_to_shout("anew", "ANEW");
	assert_int_not_equal(only_child(), before);
}

/* A process that has made one of its own is killed; its maker, whose number it said, follows. */
static void the_maker_ends_with_who_made_it(void **state)
{
	uint64_t until = in_s(5);
	pid_t child, its = 0;
	int p[2];

	(void)state;
	its = only_child();
	assert_int_equal(kill(its, SIGKILL), 0);
	assert_int_equal(waitpid(its, NULL, 0), its);
	assert_int_equal(pipe(p), 0);
	child = fork();
	if (child == 0) {
		struct cell_link l;

		/* Its parent's is gone, so it makes its own. */
		its = cell_open(&kind_say_what_it_has, &l) == 0 ? only_child() : 0;
		_exit(write(p[1], &its, sizeof(its)) != sizeof(its) || pause());
	}
	assert_int_equal(read(p[0], &its, sizeof(its)), sizeof(its));
	assert_true(its > 0);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	while (kill(its, 0) == 0 && now_ns() < until)
		usleep(1000);
	assert_int_equal(kill(its, 0), -1);
	close(p[0]);
	close(p[1]);
}

static void its_user_is_nobody_else(void **state)
{
	char path[64], line[256];
	_cleanup_(fclosep) FILE *f = NULL;
	unsigned int user = 0;
	struct cell_link l;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	pid = begin_endless(&l);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "Uid: %u", &user);
	cell_close(&l, NULL);
	assert_int_equal(user, 0x70000000 + (unsigned int)pid);
}

static int begin(void **state)
{
	(void)state;
	return cells_begin();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_answers_about_a_file_that_it_is_sent),
		cmocka_unit_test(what_was_gathered_since_is_not_in_it),
		cmocka_unit_test(it_ends_when_it_is_told_to),
		cmocka_unit_test(it_ends_when_nobody_wants_it),
		cmocka_unit_test(one_that_breaks_is_one_only),
		cmocka_unit_test(what_is_no_kind_is_no_cell),
		cmocka_unit_test(descriptors_that_nobody_wants_are_closed),
		cmocka_unit_test(more_than_is_wanted_is_refused),
		cmocka_unit_test(silence_has_an_end),
		cmocka_unit_test(patience_ends),
		cmocka_unit_test(there_may_be_many),
		cmocka_unit_test(any_thread_may_ask),
		cmocka_unit_test(a_maker_that_is_gone_is_made_anew),
		cmocka_unit_test(its_user_is_nobody_else),
		cmocka_unit_test(the_maker_ends_with_who_made_it),
	};

	if (!(cell_walls() & CELL_CALLS)) {
		print_message("1..0 # SKIP no seccomp here\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, begin, NULL);
}
