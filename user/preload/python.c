#include "preload/python.h"

#include "preload/exact.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* CPython's functions; all are there from 3.8 on, unless it says otherwise. */
static struct {
	void (*get_allocator)(int domain, struct python_allocator *ret);
	void (*set_allocator)(int domain, const struct python_allocator *to);
	void *(*this_thread)(void); /* the state of this thread … */
	int (*is_initialized)(void);
	int (*add_pending_call)(int (*f)(void *), void *ctx);
	void *(*interpreters)(void);
	void *(*interpreter_after)(void *interpreter);
	const char *(*allocator_name)(void); /* NULL: 3.13 has none */
	struct exact_interpreter is;
} api;

struct python_domain python_domains[PYTHON_DOMAINS] = {
	{ .number = 1, .names = { "PyMem_Malloc", "PyMem_Calloc", "PyMem_Realloc" } },
	{ .number = 2, .names = { "PyObject_Malloc", "PyObject_Calloc", "PyObject_Realloc" } },
};

uint32_t python_pending, python_on;
static uint32_t wanted, state;

/* --- CPython ---------------------------------------------------------------------------------- */

static void *function(const char *name)
{
	void *f = dlsym(RTLD_DEFAULT, name);

	if (!f)
		dlerror();
	return f;
}

static int on_library(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	*(unsigned long long *)ctx = info->dlpi_adds; /* how many were ever loaded */
	return 1;
}

/* Looks where it has not looked before: what is not found makes the C library allocate its error, which would be
 * recorded. It is kept from being unloaded, as we are. */
static bool find(void)
{
	static unsigned long long looked;
	unsigned long long loaded = 0;
	Dl_info at;
	void *library;

	if (api.set_allocator)
		return true;
	dl_iterate_phdr(on_library, &loaded);
	if (loaded == looked)
		return false;
	looked = loaded;
	if (!function("PyMem_SetAllocator"))
		return false;
	api.get_allocator =
		(void (*)(int, struct python_allocator *))function("PyMem_GetAllocator");
	api.this_thread = (void *(*)(void))function("PyGILState_GetThisThreadState");
	api.is_initialized = (int (*)(void))function("Py_IsInitialized");
	api.add_pending_call = (int (*)(int (*)(void *), void *))function("Py_AddPendingCall");
	api.interpreters = (void *(*)(void))function("PyInterpreterState_Head");
	api.interpreter_after = (void *(*)(void *))function("PyInterpreterState_Next");
	api.allocator_name = (const char *(*)(void))function("_PyMem_GetCurrentAllocatorName");
	api.is.current = (void *(*)(void))function("_PyThreadState_UncheckedGet");
	if (!api.is.current) /* 3.13 */
		api.is.current = (void *(*)(void))function("PyThreadState_GetUnchecked");
	api.is.finalizing = (int (*)(void))function("Py_IsFinalizing"); /* 3.13 */
	if (!api.is.finalizing)
		api.is.finalizing = (int (*)(void))function("_Py_IsFinalizing");
	if (!api.get_allocator || !api.this_thread || !api.is_initialized ||
	    !api.add_pending_call || !api.interpreters || !api.interpreter_after ||
	    !api.is.current || !api.is.finalizing || !dladdr((void *)api.is.current, &at))
		return false;
	library = dlopen(at.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	if (library)
		dlclose(library);
	else
		dlerror(); /* the program itself */
	for (int i = 0; i < PYTHON_DOMAINS; i++) {
		struct python_domain *d = &python_domains[i];

		d->malloc = function(d->names[0]);
		d->calloc = function(d->names[1]);
		d->realloc = function(d->names[2]);
	}
	exact_interpreter(&api.is);
	api.set_allocator =
		(void (*)(int, const struct python_allocator *))function("PyMem_SetAllocator");
	return api.set_allocator;
}

static bool same(const struct python_allocator *a, const struct python_allocator *b)
{
	return a->ctx == b->ctx && a->malloc == b->malloc && a->calloc == b->calloc &&
	       a->realloc == b->realloc && a->free == b->free;
}

/* Debug hooks hand out other addresses than they get: blocks that come from malloc would count twice. */
static bool is_debugging(void)
{
	const char *name = api.allocator_name ? api.allocator_name() : getenv("PYTHONMALLOC");

	return (name && strstr(name, "debug")) || (!api.allocator_name && getenv("PYTHONDEVMODE"));
}

/* --- hooks: all that follows needs the interpreter's lock --------------------------------------- */

static struct python_allocator ours(struct python_domain *d)
{
	struct python_allocator a = python_hooks;

	a.ctx = d;
	return a;
}

/* May this domain's be exchanged? What ours handed on to before, they do for ever. */
static bool put_in(struct python_domain *d)
{
	struct python_allocator now, mine = ours(d);

	api.get_allocator(d->number, &now);
	if (same(&now, &mine))
		return true;
	if (d->known && !same(&now, &d->next))
		return false;
	d->next = now;
	d->known = true;
	api.set_allocator(d->number, &mine);
	return true;
}

static void take_out(struct python_domain *d)
{
	struct python_allocator now, mine = ours(d);

	if (!d->known)
		return;
	api.get_allocator(d->number, &now);
	if (same(&now, &mine))
		api.set_allocator(d->number, &d->next);
}

/* With several interpreters there may be several locks, and one set of hooks. */
static bool may_exchange(void)
{
	void *first = api.interpreters();

	return first && !api.interpreter_after(first);
}

static void exchange(void)
{
	bool good = true;

	__atomic_store_n(&python_pending, 0, __ATOMIC_RELAXED);
	if (api.is.finalizing() || !may_exchange() || (wanted && is_debugging())) {
		state = PYTHON_REFUSED;
		return;
	}
	for (int i = 0; i < PYTHON_DOMAINS; i++)
		if (wanted)
			good &= put_in(&python_domains[i]);
		else
			take_out(&python_domains[i]);
	state = good ? PYTHON_HOOKED : PYTHON_REFUSED;
}

/* In the main thread, between two instructions of its program. */
static int on_call(void *ctx)
{
	(void)ctx;
	if (__atomic_load_n(&python_pending, __ATOMIC_ACQUIRE))
		exchange();
	return 0;
}

/* --- */

void python_try(void)
{
	void *now = api.is.current();

	/* Not in the middle of creating or ending a thread's state. */
	if (now && now == api.this_thread() && api.is_initialized())
		exchange();
}

void python_look(void)
{
	find();
}

enum python_state python_want(bool want)
{
	if (!want && !api.set_allocator)
		return PYTHON_NONE;
	if (want && !find())
		return PYTHON_NONE;
	__atomic_store_n(&python_on, want, __ATOMIC_RELEASE);
	if (wanted != want) {
		wanted = want;
		state = PYTHON_WANTED;
		__atomic_store_n(&python_pending, 1, __ATOMIC_RELEASE);
		if (api.is_initialized() && !api.is.finalizing())
			api.add_pending_call(on_call, NULL);
	}
	return (enum python_state)__atomic_load_n(&state, __ATOMIC_RELAXED);
}
