/*
 * Every form of operator new and delete, counted once each by the program itself.
 *
 *   new_truth
 *
 * Sizes of over-aligned forms are multiples of the alignment (libstdc++ rounds the rest up).
 *
 * run → site NAME CALLS BYTES LIVE_CALLS LIVE_BYTES (each form); total …; end
 */
#include "target.h"

#include <new>

enum { ROUNDS = 200 };
static const std::align_val_t wide{ 64 };

/*
 * Each form in two functions: libstdc++ has no frame pointers, so the function that calls operator
 * new is not in a frame-pointer chain, but its caller is. C linkage: the test knows them by name.
 */
#define FORM(name, call)                                                                           \
	static NOINLINE void *name##_inner(size_t n)                                               \
	{                                                                                          \
		return call;                                                                       \
	}                                                                                          \
	extern "C" NOINLINE void *name(size_t n)                                                   \
	{                                                                                          \
		return name##_inner(n);                                                            \
	}

FORM(new_plain, ::operator new(n))
FORM(new_array, ::operator new[](n))
FORM(new_nothrow, ::operator new(n, std::nothrow))
FORM(new_array_nothrow, ::operator new[](n, std::nothrow))
FORM(new_aligned, ::operator new(n, wide))
FORM(new_array_aligned, ::operator new[](n, wide))
FORM(new_aligned_nothrow, ::operator new(n, wide, std::nothrow))
FORM(new_array_aligned_nothrow, ::operator new[](n, wide, std::nothrow))

/* The two or three ways to delete what each form made, in turn. */
static void delete_plain(void *p, size_t n, int turn)
{
	if (turn == 0)
		::operator delete(p);
	else if (turn == 1)
		::operator delete(p, n);
	else
		::operator delete(p, std::nothrow);
}

static void delete_array(void *p, size_t n, int turn)
{
	if (turn == 0)
		::operator delete[](p);
	else if (turn == 1)
		::operator delete[](p, n);
	else
		::operator delete[](p, std::nothrow);
}

static void delete_aligned(void *p, size_t n, int turn)
{
	if (turn == 0)
		::operator delete(p, wide);
	else if (turn == 1)
		::operator delete(p, n, wide);
	else
		::operator delete(p, wide, std::nothrow);
}

static void delete_array_aligned(void *p, size_t n, int turn)
{
	if (turn == 0)
		::operator delete[](p, wide);
	else if (turn == 1)
		::operator delete[](p, n, wide);
	else
		::operator delete[](p, wide, std::nothrow);
}

static struct form {
	const char *name;
	void *(*make)(size_t n);
	void (*destroy)(void *p, size_t n, int turn);
	uint64_t calls, bytes, live_calls, live_bytes;
} forms[] = {
	{ "new_plain", new_plain, delete_plain, 0, 0, 0, 0 },
	{ "new_array", new_array, delete_array, 0, 0, 0, 0 },
	{ "new_nothrow", new_nothrow, delete_plain, 0, 0, 0, 0 },
	{ "new_array_nothrow", new_array_nothrow, delete_array, 0, 0, 0, 0 },
	{ "new_aligned", new_aligned, delete_aligned, 0, 0, 0, 0 },
	{ "new_array_aligned", new_array_aligned, delete_array_aligned, 0, 0, 0, 0 },
	{ "new_aligned_nothrow", new_aligned_nothrow, delete_aligned, 0, 0, 0, 0 },
	{ "new_array_aligned_nothrow", new_array_aligned_nothrow, delete_array_aligned, 0, 0, 0,
	  0 },
};

static void run(struct form *f, uint64_t *seed)
{
	for (int i = 0; i < ROUNDS; i++) {
		size_t n = 64 * (1 + random_next(seed) % 40);
		void *p = f->make(n);

		f->calls++;
		f->bytes += n;
		if (i % 4 == 3) {
			f->live_calls++;
			f->live_bytes += n;
			continue;
		}
		f->destroy(p, n, i % 4);
	}
}

int main()
{
	uint64_t seed = 7;

	say_ready();
	for (;;) {
		uint64_t calls = 0, bytes = 0, live_calls = 0, live_bytes = 0;

		next_command();
		for (struct form &f : forms) {
			run(&f, &seed);
			say("site %s %llu %llu %llu %llu", f.name, (unsigned long long)f.calls,
			    (unsigned long long)f.bytes, (unsigned long long)f.live_calls,
			    (unsigned long long)f.live_bytes);
			calls += f.calls;
			bytes += f.bytes;
			live_calls += f.live_calls;
			live_bytes += f.live_bytes;
		}
		say("total %llu %llu %llu %llu", (unsigned long long)calls,
		    (unsigned long long)bytes, (unsigned long long)live_calls,
		    (unsigned long long)live_bytes);
		say("end");
	}
}
