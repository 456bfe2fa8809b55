#include "analyse/wait_lang.h"

#include "analyse/messengers.h"
#include "analyse/name_match.h"

#include <string.h>

/*
 * The image of the interpreter of `module`'s frames: that of the first native frame which executes these, or of its
 * caller. NULL: there are none.
 */
static const char *interpreter_of_path(const struct frame_path *path, const char *module)
{
	bool lang = false;

	for (uint32_t place = path->n; place > 0; place--) {
		const struct frame *f = &path->frames[place - 1];

		if (lang && f->kind != FRAME_LANG)
			return f->module;
		lang |= f->kind == FRAME_LANG && strcmp(f->module, module) == 0;
	}
	return NULL;
}

/*
 * CPython waits for its GIL by pthread_cond_timedwait(), from its own code, and for nothing else so: its locks are
 * semaphores (Python/ceval_gil.h, Python/thread_pthread.h, 3.8 to 3.13).
 */
static bool is_gil(const struct dict *d, const struct frame_path *path)
{
	const char *interpreter = interpreter_of_path(path, "[Python]");
	bool timed = false;

	for (uint32_t i = path->n; interpreter && i-- > 0;) {
		const struct frame *f = &path->frames[i];

		if (frame_in_kernel(f))
			continue;
		if (!messenger_module(f->module))
			return timed && strcmp(f->module, interpreter) == 0;
		timed |= name_matches("pthread_cond_timedwait*", dict_str(d, f->name)) ||
			 name_matches("__pthread_cond_timedwait*", dict_str(d, f->name));
	}
	return false;
}

/* HotSpot waits for all by conditions of its own: what the thread asked for says the function that Java has called. */
static const struct {
	const char *function;
	enum wait_kind kind;
} java_waits[] = {
	{ "ObjectMonitor::*", WAIT_MONITOR }, { "ObjectSynchronizer::*", WAIT_MONITOR },
	{ "JVM_MonitorWait", WAIT_MONITOR },  { "JVM_Sleep*", WAIT_TIMER },
	{ "JavaThread::sleep*", WAIT_TIMER },
};

static enum wait_kind java_wait(const struct dict *d, const struct frame_path *path)
{
	for (uint32_t i = path->n; i-- > 0;) {
		const struct frame *f = &path->frames[i];

		if (f->kind == FRAME_LANG)
			break;
		for (size_t k = 0; k < sizeof(java_waits) / sizeof(java_waits[0]); k++)
			if (frame_is_user(f) &&
			    name_matches(java_waits[k].function, dict_str(d, f->name)))
				return java_waits[k].kind;
	}
	return WAIT_LOCK;
}

/*
 * Ruby waits for its GVL by a condition, from its own code (thread_pthread.c, 2.7 to 3.4). So it does for what only another thread
 * ends, in these methods, and in timers.
 */
static bool is_gvl(const struct dict *d, const struct frame_path *path)
{
	static const char *const sleepers[] = { "Thread*",     "Mutex*",       "Queue*",
						"SizedQueue*", "Monitor*",     "ConditionVariable*",
						"Ractor*",     "Kernel#sleep", "Process*",
						"IO.select",   "Fiber*" };
	const char *interpreter = interpreter_of_path(path, "[Ruby]");
	bool condition = false, own = false;

	for (uint32_t i = path->n; interpreter && i-- > 0;) {
		const struct frame *f = &path->frames[i];
		const char *name = dict_str(d, f->name);

		if (frame_in_kernel(f))
			continue;
		if (f->kind == FRAME_LANG) {
			return own && !NAME_IN(sleepers, name);
		}
		if (!own && messenger_module(f->module))
			condition |= name_matches("pthread_cond_*", name) ||
				     name_matches("__pthread_cond_*", name);
		else if (condition && strcmp(f->module, interpreter) == 0)
			own = true;
		else
			return false;
	}
	return false;
}

enum wait_kind wait_kind_by_lang(const struct dict *d, const struct frame_path *path)
{
	if (is_gil(d, path))
		return WAIT_GIL;
	return is_gvl(d, path) ? WAIT_GVL : java_wait(d, path);
}
