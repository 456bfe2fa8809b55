/*
 * The recording of every call, with an area of our own and no unwind tables: stacks are of one frame.
 */
#include "../../../user/preload/exact.c"

#include <alloca.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucontext.h>

#include <cmocka.h>

#define N_NODES 64
#define N_SLOTS 256
#define N_SITES 8

static int area_fd = -1;
static struct exact_area *area; /* memscope's mapping */

static void open_area(uint32_t lines)
{
	struct exact_area a = {
		.magic = EXACT_MAGIC, .on = 1, .used_nodes = 1, .used_sites = ROOT + 1
	};

	a.node_slots = 8192;
	a.site_slots = a.node_slots + N_SLOTS * 4;
	a.nodes = a.site_slots + N_SLOTS * 4;
	a.sites = a.nodes + N_NODES * sizeof(struct exact_node);
	a.lines = (a.sites + N_SITES * sizeof(struct ms_alloc_site) + 255) & ~255ULL;
	a.n_nodes = N_NODES;
	a.n_sites = N_SITES;
	a.n_node_slots = a.n_site_slots = N_SLOTS;
	a.n_lines = lines;
	a.bytes = a.lines + lines * sizeof(struct exact_line);
	area_fd = memfd_create("test", MFD_CLOEXEC);
	assert_int_equal(ftruncate(area_fd, (off_t)a.bytes), 0);
	area = mmap(NULL, a.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, area_fd, 0);
	assert_ptr_not_equal(area, MAP_FAILED);
	*area = a;
	assert_int_equal(exact_begin(area_fd), 0);
}

static void close_area(void)
{
	exact_end();
	munmap(area, area->bytes);
	close(area_fd);
}

static struct ms_alloc_site *site(uint32_t ix)
{
	return (struct ms_alloc_site *)((char *)area + area->sites) + ix;
}

static __attribute__((noinline)) void as_malloc(uintptr_t p, size_t size)
{
	exact_allocated((void *)p, size, (void *)0x1000, EXACT_CALLER);
	__asm__ volatile("");
}

/* From one place, whoever calls this. */
static __attribute__((noinline)) void allocated(uintptr_t p, size_t size)
{
	as_malloc(p, size);
	__asm__ volatile("");
}

static __attribute__((noinline)) void freed(uintptr_t p)
{
	exact_freed((void *)p, EXACT_CALLER, false);
	__asm__ volatile("");
}

static void what_is_freed_is_known_by_its_address(void **state)
{
	open_area(16);
	for (int i = 0; i < 10; i++)
		allocated(0x10000 + (uintptr_t)i * 32, 100);
	for (int i = 0; i < 9; i++)
		freed(0x10000 + (uintptr_t)i * 32);
	freed(0x777000);
	assert_int_equal(area->used_sites, 3);
	assert_int_equal(site(2)->allocs, 10);
	assert_int_equal(site(2)->bytes, 1000);
	assert_int_equal(site(2)->frees, 9);
	assert_int_equal(site(2)->cross_frees, 0);
	assert_int_equal(site(ROOT)->live, 100);
	assert_int_equal(site(ROOT)->highest, 1000);
	assert_int_equal(area->counts[EXACT_UNKNOWN], 1);
	close_area();
}

static void nothing_is_lost_when_lines_spill_over(void **state)
{
	const uintptr_t n = 16 * EXACT_WAYS;

	open_area(16);
	for (uintptr_t i = 0; i < n; i++)
		allocated(0x10000 + i * 16, 8); /* 16 blocks for 8 ways, of each line */
	assert_int_equal(area->counts[EXACT_FULL], 0);
	allocated(0x900000, 8);
	assert_int_equal(area->counts[EXACT_FULL], 1);
	assert_int_equal(area->counts[EXACT_FULL_BYTES], 8);
	for (uintptr_t i = 0; i < n; i++)
		freed(0x10000 + i * 16);
	assert_int_equal(area->counts[EXACT_UNKNOWN], 0);
	assert_int_equal(site(2)->allocs, n + 1);
	assert_int_equal(site(2)->untracked, 1);
	assert_int_equal(site(2)->frees, n);
	assert_int_equal(site(ROOT)->live, 0);
	freed(0x900000);
	assert_int_equal(area->counts[EXACT_UNKNOWN], 1);
	close_area();
}

static void an_address_that_comes_again_ends_the_block_that_had_it(void **state)
{
	open_area(16);
	allocated(0x10000, 100);
	allocated(0x10000, 50);
	assert_int_equal(area->counts[EXACT_REUSED], 1);
	assert_int_equal(site(ROOT)->live, 50);
	freed(0x10000);
	assert_int_equal(site(ROOT)->live, 0);
	close_area();
}

static void a_realloc_that_fails_leaves_its_block(void **state)
{
	struct exact_old old;

	open_area(16);
	allocated(0x10000, 100);
	exact_realloc_begins((void *)0x10000, EXACT_CALLER, &old);
	assert_true(old.was_there);
	exact_realloc_ends((void *)0x10000, false, EXACT_CALLER, &old);
	assert_int_equal(site(2)->frees, 0);
	exact_realloc_begins((void *)0x10000, EXACT_CALLER, &old);
	exact_realloc_ends((void *)0x10000, true, EXACT_CALLER, &old);
	assert_int_equal(site(2)->frees, 1);
	exact_realloc_begins((void *)0x20000, EXACT_CALLER, &old);
	assert_false(old.was_there);
	exact_realloc_ends((void *)0x20000, true, EXACT_CALLER, &old);
	assert_int_equal(area->counts[EXACT_UNKNOWN], 1);
	close_area();
}

static pid_t last_tid;

static void *of_thread(void *p)
{
	last_tid = gettid();
	allocated((uintptr_t)p, 10);
	freed(0x10000);
	return NULL;
}

static void sites_are_each_threads_and_one_too_many_is_counted(void **state)
{
	pthread_t thread;

	open_area(64);
	allocated(0x10000, 100);
	for (uintptr_t i = 1; i <= N_SITES; i++) {
		pthread_create(&thread, NULL, of_thread, (void *)(0x10000 + i * 4096));
		pthread_join(thread, NULL);
	}
	assert_int_equal(site(2)->allocs, 1);
	assert_int_equal(site(2)->cross_frees, 1);
	assert_int_equal(site(3)->allocs, 1);
	assert_int_equal(site(ROOT)->allocs,
			 3); /* of N_SITES + 1 in all, 2 records of which are taken */
	assert_int_equal(area->counts[EXACT_SITES_FULL], 3);
	assert_int_equal(site(ROOT)->live, N_SITES * 10);
	close_area();
}

static void threads_that_have_ended_leave_their_place(void **state)
{
	pthread_t thread;
	uint32_t before;

	open_area(64);
	pthread_create(&thread, NULL, of_thread, (void *)0x30000);
	pthread_join(thread, NULL);
	before = n_threads;
	for (int i = 0; i < 20; i++) {
		pthread_create(&thread, NULL, of_thread, (void *)0x30000);
		pthread_join(thread, NULL);
		/* join() returns a moment before the kernel has forgotten it. */
		while (syscall(SYS_tgkill, getpid(), last_tid, 0) == 0)
			usleep(100);
	}
	assert_in_range(n_threads, before, before + 1);
	close_area();
}

static void a_forked_child_records_nothing(void **state)
{
	int status;

	open_area(16);
	allocated(0x10000, 100);
	if (fork() == 0) {
		allocated(0x20000, 100);
		freed(0x10000);
		_exit(0);
	}
	wait(&status);
	assert_int_equal(status, 0);
	assert_int_equal(site(2)->allocs, 1);
	assert_int_equal(site(ROOT)->live, 100);
	close_area();
}

static uintptr_t busy_before, busy_after;

static void on_signal(int number)
{
	(void)number;
	busy_before = mine->busy;
	allocated(0x50000, 7);
	busy_after = mine->busy;
}

/* As if a signal's handler, on the alternate stack, met a call that is being recorded at `sp`. */
static void meet(uintptr_t sp)
{
	mine->busy = sp;
	raise(SIGUSR1);
	mine->busy = 0;
	assert_int_equal(busy_before, sp);
	assert_int_equal(busy_after, sp);
}

static void a_call_that_meets_another_is_recorded_beside_it(void **state)
{
	static char stack[1 << 16];
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	struct thread *t;

	open_area(16);
	allocated(0x10000, 100);
	assert_int_equal(sigaltstack(&alternate, NULL), 0);
	sigaction(SIGUSR1, &act, NULL);
	meet((uintptr_t)stack - 4096);
	freed(0x50000);
	meet((uintptr_t)stack + sizeof(stack) + 4096);
	assert_int_equal(site(ROOT)->live, 107);
	freed(0x50000);
	/* Within the thread's own stack, above what it meets: not one that was left by a jump. */
	alternate.ss_sp = alloca(sizeof(stack));
	assert_int_equal(sigaltstack(&alternate, NULL), 0);
	meet((uintptr_t)alternate.ss_sp - 256);
	assert_int_equal(site(ROOT)->live, 107);
	freed(0x50000);
	alternate.ss_flags = SS_DISABLE;
	sigaltstack(&alternate, NULL);
	/* When all of the thread's states are in the middle of a call, it is counted. */
	assert_non_null(mine->next);
	for (t = mine; t; t = t->next)
		t->busy = 16;
	for (int i = 0; i < STATES + 2; i++) {
		allocated(0x60000 + (uintptr_t)i * 32, 1);
		for (t = mine; t; t = t->next)
			t->busy = 16;
	}
	for (t = mine; t; t = t->next)
		t->busy = 0;
	assert_int_equal(outside[EXACT_REENTERED], 4);
	assert_int_equal(site(ROOT)->live, 100 + STATES - 2);
	close_area();
	assert_int_equal(outside[EXACT_REENTERED], 0);
}

static void a_call_that_a_jump_has_left_is_counted_and_its_state_used_again(void **state)
{
	struct thread *t;

	open_area(16);
	allocated(0x10000, 100);
	t = mine;
	t->busy = (uintptr_t)__builtin_frame_address(0) - 4096;
	allocated(0x20000, 100);
	assert_int_equal(outside[EXACT_LEFT], 1);
	assert_int_equal(t->busy, 0);
	assert_int_equal(site(ROOT)->live, 200);
	assert_ptr_equal(mine, t);
	close_area();
}

/* --- how much of the program's stack a call takes --- */

#define PAINTED 16384

static ucontext_t here, there;
static uint8_t painted[PAINTED] __attribute__((aligned(16)));

static uint8_t *top;

/* All below the caller's frame, and what that needs to call something. */
static __attribute__((noinline)) void paint(void)
{
	top = (uint8_t *)__builtin_frame_address(0) - 64;
	for (uint8_t *p = painted; p < top; p++)
		*(volatile uint8_t *)p = 0xa5;
}

static size_t painted_used(void)
{
	const uint8_t *p = painted;

	while (p < top && *p == 0xa5)
		p++;
	return (size_t)(top - p);
}

static void a_call(void)
{
	paint();
	allocated(0x10000, 100);
	freed(0x10000);
}

static size_t of_coroutine(void (*f)(void))
{
	getcontext(&there);
	there.uc_stack.ss_sp = painted;
	there.uc_stack.ss_size = PAINTED;
	there.uc_link = &here;
	makecontext(&there, f, 0);
	assert_int_equal(swapcontext(&here, &there), 0);
	return painted_used();
}

/* A thread's first call, which has its stack to find, and later ones: on a coroutine's small stack. */
static void *measure(void *ctx)
{
	size_t *most = ctx;

	most[0] = of_coroutine(a_call);
	most[1] = of_coroutine(a_call);
	return NULL;
}

static void a_call_takes_less_than_a_kib_of_the_stack(void **state)
{
	size_t most[2];
	pthread_t thread;

	open_area(16);
	pthread_create(&thread, NULL, measure, most);
	pthread_join(thread, NULL);
	print_message("bytes of the stack: first call %zu, later ones %zu\n", most[0], most[1]);
#if defined(__SANITIZE_ADDRESS__)
	close_area();
	skip(); /* which leaves room around each variable */
#endif
	assert_in_range(most[0], 64, 1024);
	assert_in_range(most[1], 64, 1024);
	assert_int_equal(site(2)->allocs + site(ROOT)->allocs, 2);
	close_area();
}

static __attribute__((noinline)) int deep(int left)
{
	volatile char room[4096] = { (char)left };

	if (left > 0)
		return deep(left - 1) + room[0];
	allocated(0x20000, 1);
	return room[0];
}

/* From here on any system call but SYS_exit ends the process. */
static void filter(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog all = { sizeof(filter) / sizeof(*filter), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all))
		_exit(2);
}

static void *of_filtered_thread(void *ctx)
{
	while (!__atomic_load_n((int *)ctx, __ATOMIC_ACQUIRE))
		;
	filter();
	allocated(0x30000, 1);
	syscall(SYS_exit, 0);
	return NULL;
}

static void under_seccomp_no_system_call_is_made(void **state)
{
	int status, go = 0;
	pid_t child = fork();

	if (child == 0) {
		uintptr_t elsewhere[64] = { 0 };
		pthread_t thread;

		open_area(16);
		allocated(0x10000, 1);
		pthread_create(&thread, NULL, of_filtered_thread, &go);
		area->no_syscalls = 1;
		allocated(0x10020, 1);
		__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
		filter();
		deep(64);                             /* the stack has grown */
		mine->low = mine->floor = mine->high; /* and this is none of the thread's */
		exact_allocated((void *)0x40000, 1, (void *)0x1000, elsewhere);
		mine->busy = 1; /* and a state is wanted */
		mine->next = NULL;
		allocated(0x50000, 1);
		syscall(SYS_exit, outside[EXACT_NO_THREAD] == 1 && outside[EXACT_REENTERED] == 1 &&
						  site(ROOT)->live == 4
					  ? 0
					  : 1);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

static void errno_is_left_alone(void **state)
{
	open_area(16);
	errno = 77;
	allocated(0x10000, 100);
	freed(0x10000);
	assert_int_equal(errno, 77);
	close_area();
}

static void nothing_is_recorded_where_memscope_says_no(void **state)
{
	open_area(16);
	area->on = 0;
	allocated(0x10000, 100);
	assert_int_equal(area->used_sites, ROOT + 1);
	close_area();
	allocated(0x10000, 100);
	open_area(16);
	allocated(0x20000, 1);
	assert_int_equal(site(2)->allocs, 1);
	close_area();
}

static void what_is_no_area_is_refused(void **state)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_int_equal(exact_begin(fd), -EINVAL);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(exact_begin(fd), -EINVAL);
	close(fd);
}

/* --- frames of a language --- */

/* What CPython up to 3.10 has, as far as it is read. */
struct py_code {
	uint64_t pad[4];
	uint32_t first_line, pad2;
	uint64_t name, linetable;
};
struct py_frame {
	struct py_frame *back;
	struct py_code *code;
	uint32_t lasti, pad;
};
struct py_state {
	struct py_frame *frame;
};
static struct py_code py_code[2];
static struct py_frame py_frames[2];
static struct py_state py_state, *py_current;
static int py_finalizing;

static void *py_current_state(void)
{
	return py_current;
}

static int py_is_finalizing(void)
{
	return py_finalizing;
}

/* The function from which blocks come executes frames of Python. */
static void open_area_of_python(void)
{
	const struct exact_interpreter of = { py_current_state, py_is_finalizing };
	struct exact_tables *set;

	open_area(16);
	exact_interpreter(&of);
	set = &area->sets[1];
	set->pool = set->tables = set->rules = area->nodes;
	set->lang_gen = 1;
	set->lang = (struct ms_lang_row){ .lang = MS_LANG_PYTHON,
					  .thread = MS_THREAD_GLOBAL,
					  .n_ranges = 1 };
	set->lang.off = (uint64_t)(uintptr_t)&py_current;
	set->lang.range[0].start = (uint64_t)(uintptr_t)allocated;
	set->lang.range[0].end = set->lang.range[0].start + 64;
	set->lang.python = (struct ms_python){
		.tstate_frame = offsetof(struct py_state, frame),
		.cframe_frame = PYTHON_DIRECT,
		.frame_code = offsetof(struct py_frame, code),
		.frame_previous = offsetof(struct py_frame, back),
		.frame_instr = offsetof(struct py_frame, lasti),
		.code_first_line = offsetof(struct py_code, first_line),
		.code_name = offsetof(struct py_code, name),
		.code_linetable = offsetof(struct py_code, linetable),
		.boundary_kind = MS_PYTHON_EACH,
		.instr_kind = MS_PYTHON_LASTI,
		.frame_bytes = sizeof(struct py_frame),
	};
	area->tables_seq = 1;
	py_frames[0] = (struct py_frame){ &py_frames[1], &py_code[0], 10, 0 };
	py_frames[1] = (struct py_frame){ NULL, &py_code[1], 20, 0 };
	py_code[0] = (struct py_code){ .first_line = 1, .name = 0x1234, .linetable = 0x5678 };
	py_code[1] = py_code[0];
	py_state.frame = &py_frames[0];
	py_current = &py_state;
	py_finalizing = 0;
}

/* The words of a site's frame of Python: behind the allocator's function and before the native one. */
static void python_words(uint32_t ix, uint64_t ret[2])
{
	const struct exact_node *nodes = (const void *)((char *)area + area->nodes);
	const struct exact_node *n = &nodes[site(ix)->key.user.lo];

	for (int i = 0; i < 2; i++) {
		n = &nodes[n->caller];
		ret[i] = n->pc;
	}
	n = &nodes[n->caller];
	assert_true(n->pc - (uintptr_t)allocated < 64 && n->executes);
}

static void a_stack_has_the_frames_of_a_language_and_is_another_when_they_are(void **state)
{
	const uint64_t at = MS_FRAME_LANG << MS_FRAME_TAG_SHIFT;
	uint64_t words[2], cookie;

	open_area_of_python();
	/* From one place: the native stack is the same. */
	for (uint32_t i = 0; i < 8; i++) {
		if (i == 2)
			py_frames[0].lasti = 12;
		if (i == 4)
			py_code[0].name = 0x4321; /* freed, and its memory used again */
		if (i == 6)
			py_frames[0].code = &py_code[1];
		allocated(0x10000 + i * 32, 100);
	}
	assert_int_equal(area->used_sites, ROOT + 1 + 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(site(2 + i)->allocs, 2);
	python_words(2, words);
	assert_int_equal(words[0], at | (uintptr_t)&py_code[0]);
	assert_int_equal((uint32_t)words[1], 10);
	cookie = words[1] >> 32;
	python_words(3, words);
	assert_int_equal((uint32_t)words[1], 12);
	assert_int_equal(words[1] >> 32, cookie);
	python_words(4, words);
	assert_int_not_equal(words[1] >> 32, cookie);
	python_words(5, words);
	assert_int_equal(words[0], at | (uintptr_t)&py_code[1]);
	close_area();
}

static void frames_of_a_language_that_are_not_there_are_no_frames(void **state)
{
	void *gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t words[2];

	/* Without the lock, and while the interpreter is being finalized: another thread frees them. */
	for (int i = 0; i < 2; i++) {
		open_area_of_python();
		py_frames[0].code = gone;
		allocated(0x10000, 100);
		python_words(2, words);
		assert_int_equal(words[0] & MS_FRAME_ADDR_MASK, (uintptr_t)gone);
		py_finalizing = i == 1;
		if (i == 0) {
			static struct py_state other, *of_thread = &other;

			/* The state is the thread's own; the lock is another's. */
			area->sets[1].lang.off = (uint64_t)(uintptr_t)&of_thread;
			other = py_state;
			area->sets[1].lang_gen = 2;
			area->tables_seq = 3;
		}
		mprotect(gone, 4096, PROT_NONE);
		allocated(0x20000, 100);
		python_words(3, words);
		assert_int_equal(words[0] & MS_FRAME_ADDR_MASK, 0);
		assert_int_equal((uint32_t)words[1], MS_LOST_FRAME);
		close_area();
		mprotect(gone, 4096, PROT_READ | PROT_WRITE);
	}
	/* Offsets that are wrong: no page is loaded from that the kernel does not know. */
	open_area_of_python();
	py_frames[0].code = (void *)0x123456789000;
	allocated(0x10000, 100);
	python_words(2, words);
	assert_int_equal((uint32_t)words[1], MS_LOST_FRAME);
	py_current = NULL;
	allocated(0x20000, 100);
	python_words(3, words);
	assert_int_equal((uint32_t)words[1], MS_LOST_STATE);
	close_area();
	munmap(gone, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_freed_is_known_by_its_address),
		cmocka_unit_test(nothing_is_lost_when_lines_spill_over),
		cmocka_unit_test(an_address_that_comes_again_ends_the_block_that_had_it),
		cmocka_unit_test(a_realloc_that_fails_leaves_its_block),
		cmocka_unit_test(sites_are_each_threads_and_one_too_many_is_counted),
		cmocka_unit_test(threads_that_have_ended_leave_their_place),
		cmocka_unit_test(a_forked_child_records_nothing),
		cmocka_unit_test(a_call_that_meets_another_is_recorded_beside_it),
		cmocka_unit_test(a_call_that_a_jump_has_left_is_counted_and_its_state_used_again),
		cmocka_unit_test(a_call_takes_less_than_a_kib_of_the_stack),
		cmocka_unit_test(under_seccomp_no_system_call_is_made),
		cmocka_unit_test(errno_is_left_alone),
		cmocka_unit_test(nothing_is_recorded_where_memscope_says_no),
		cmocka_unit_test(what_is_no_area_is_refused),
		cmocka_unit_test(a_stack_has_the_frames_of_a_language_and_is_another_when_they_are),
		cmocka_unit_test(frames_of_a_language_that_are_not_there_are_no_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
