/*
 * Whose call it is: the states of a thread, and where its stack is. Part of exact.c.
 *
 * A state serves one call at a time. A signal's handler that meets a call which is being recorded
 * (on whatever stack), or a coroutine that a handler has changed to, takes the thread's next state:
 * what it has interrupted finds its own as it left it, whenever it goes on, and if ever.
 */
#ifndef MEMSCOPE_PRELOAD_EXACT_THREADS_H
#define MEMSCOPE_PRELOAD_EXACT_THREADS_H

/* --- its stack ---------------------------------------------------------------------------------- */

static uint64_t hex(const char **at)
{
	uint64_t v = 0;

	for (;; (*at)++) {
		char c = **at;

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (uint64_t)(c - 'a' + 10);
		else
			return v;
	}
}

/* What belongs to the thread is there. */
static uint64_t thread_pointer(void)
{
#if defined(__x86_64__)
	uint64_t tp;

	/* It begins with its own address (System V ABI, AMD64, "Thread-Local Storage"); clang has no builtin for it before 14. */
	__asm__("mov %%fs:0, %0" : "=r"(tp));
	return tp;
#else
	return (uint64_t)(uintptr_t)__builtin_thread_pointer();
#endif
}

/*
 * The stack that the thread was started with. The C library puts what belongs to a thread at the end
 * of its stack. What is below may be mapped with other memory as one, of which parts come and go: so
 * only what a whole walk has come through is known to be the stack (is_proven). The main thread's has
 * the kernel's words at its end, is never mapped together with another, and grows.
 */
static SLOW void find_stack(struct thread *t)
{
	uint64_t inside = t->is_main ? getauxval(AT_RANDOM) : thread_pointer();
	uint64_t start = 0, end = 0, before = 0;
	size_t used = 0, from = 0;
	char *buf = (char *)t->copy;
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);

	t->floor = t->low; /* what cannot be found out is not asked again */
	while (fd >= 0) {
		char *newline = memchr(buf + from, '\n', used - from);
		const char *line = buf + from;
		long n;

		if (newline) {
			before = end;
			start = hex(&line);
			line++;
			end = hex(&line);
			if (inside >= start && inside < end && line[1] == 'r') {
				t->floor = t->is_main ? before : start;
				t->low = t->is_main ? start : inside;
				t->high = t->is_main ? end : inside;
				break;
			}
			from = (size_t)(newline - buf) + 1;
			continue;
		}
		used -= from;
		memmove(buf, buf + from, used);
		from = 0;
		n = syscall(SYS_read, fd, buf + used, sizeof(t->copy) - used);
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	if (fd >= 0)
		syscall(SYS_close, fd);
	t->copy_len = 0;
}

static inline bool is_own(const struct thread *t, uint64_t sp)
{
	return sp - t->low < t->high - t->low;
}

/* sp is below what is known to be the thread's stack: -> whether it is that after all. */
static SLOW bool grown(struct thread *t, uint64_t sp)
{
	int before = errno;

	if (no_syscalls || !t->is_main || sp < t->floor || sp >= t->low)
		return false;
	find_stack(t);
	errno = before;
	if (sp < t->low)
		t->floor = t->low; /* something else is there */
	return is_own(t, sp);
}

/* A walk that guessed nothing led from `sp` to a frame at `to`, through words that the kernel has read. */
static void is_proven(struct thread *t, uint64_t sp, uint64_t to)
{
	if (t->is_main || sp < t->floor || sp >= t->low || to < sp || to >= t->high)
		return;
	if (to >= t->low || t->high - to <= thread_bytes)
		t->low = (sp & ~4095ULL) < t->floor ? t->floor : sp & ~4095ULL;
}

/* --- its states --------------------------------------------------------------------------------- */

/* A dead thread's may be taken, but for one in the middle of a call. */
static bool is_vacant(const struct thread *t, uint32_t *ret_owner, long pid)
{
	*ret_owner = __atomic_load_n(&t->tid, __ATOMIC_ACQUIRE);
	if (!*ret_owner)
		return true;
	return !__atomic_load_n(&t->busy, __ATOMIC_RELAXED) &&
	       syscall(SYS_tgkill, pid, *ret_owner, 0) != 0 && errno == ESRCH;
}

/* What another thread has left, or new; NULL: there are too many, or no memory. A few are asked each
 * time: that is a system call each, and a thread that finds none asks again at its next call. */
static struct thread *state_take(uint32_t tid, long pid)
{
	static uint32_t turn;
	uint32_t n = __atomic_load_n(&n_threads, __ATOMIC_ACQUIRE), owner, tries;
	struct thread *t;

	tries = n < STATE_TRIES ? n : STATE_TRIES;
	for (uint32_t i = 0; i < tries; i++) {
		uint32_t at = __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED) % n;

		t = __atomic_load_n(&threads[at % THREADS], __ATOMIC_ACQUIRE);
		if (t && is_vacant(t, &owner, pid) &&
		    __atomic_compare_exchange_n(&t->tid, &owner, tid, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return t;
	}
	n = __atomic_fetch_add(&n_threads, 1, __ATOMIC_RELAXED);
	if (n >= THREADS) {
		__atomic_fetch_sub(&n_threads, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t == MAP_FAILED)
		return NULL;
	t->tid = tid;
	t->slot = n;
	__atomic_store_n(&threads[n], t, __ATOMIC_RELEASE);
	return t;
}

/* `of`: whose next one it is to be; NULL: the thread's first. */
static SLOW struct thread *state_new(const struct thread *of)
{
	int before = errno;
	struct thread *t;
	long tid, pid;

	if (no_syscalls)
		return NULL;
	tid = syscall(SYS_gettid);
	pid = syscall(SYS_getpid);
	t = state_take((uint32_t)tid, pid);
	if (t) {
		t->busy = t->last = t->deleted = 0;
		t->seen = t->n = 0;
		t->epoch = 0;
		t->next = NULL;
		t->is_main = tid == pid;
		t->many = t->slot >= LARGE_STATES;
		t->low = t->high = t->floor = 0;
		if (of) {
			t->floor = of->floor;
			t->low = of->low;
			t->high = of->high;
		} else {
			find_stack(t);
		}
	}
	errno = before;
	return t;
}

/* A handler may come at any instruction: this is one. false: it serves another call. */
static inline bool claim(struct thread *t, uintptr_t sp)
{
	uintptr_t none = 0;
#if defined(__x86_64__)
	bool got;

	__asm__ volatile("cmpxchgq %3, %1"
			 : "=@ccz"(got), "+m"(t->busy), "+a"(none)
			 : "r"(sp)
			 : "memory");
	return got;
#else
	return __atomic_compare_exchange_n(&t->busy, &none, sp, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
#endif
}

/*
 * The call that the state serves was left by a jump: its frame was on the thread's own stack, below
 * or where this call's is. A handler on an alternate stack may be there too, but the kernel knows.
 */
static bool was_left(const struct thread *t, uintptr_t sp)
{
	stack_t alternate;

	return !no_syscalls && sp >= t->busy && is_own(t, t->busy) && is_own(t, sp) &&
	       syscall(SYS_sigaltstack, NULL, &alternate) == 0 &&
	       !(alternate.ss_flags & SS_ONSTACK);
}

/* What one of its states has found out of the thread's stack, another may have had no time for. */
static void share_stack(struct thread *first)
{
	for (struct thread *t = first; t; t = t->next)
		for (const struct thread *s = first; s; s = s->next)
			if (s->high == t->high && s->low < t->low)
				t->low = s->low;
}

/* The first of the thread's states that serves no call; NULL: this one is not recorded. */
static SLOW struct thread *claim_other(uintptr_t sp)
{
	struct thread *t = mine;

	if (!t) {
		t = state_new(NULL);
		/* A handler that came meanwhile may have made one: then there are two. */
		if (t && mine) {
			__atomic_store_n(&t->tid, 0, __ATOMIC_RELEASE);
			t = mine;
		}
		mine = t;
		if (!t) {
			count_outside(EXACT_NO_THREAD);
			return NULL;
		}
	}
	share_stack(t);
	for (int level = 0; t && level < STATES; level++, t = t->next) {
		if (claim(t, sp))
			return t;
		if (was_left(t, sp)) {
			count_outside(EXACT_LEFT);
			t->epoch = t->n = 0; /* it may be half-written */
			t->busy = sp;
			return t;
		}
		if (!t->next && level + 1 < STATES)
			t->next = state_new(t);
	}
	count_outside(EXACT_REENTERED);
	return NULL;
}

#endif
