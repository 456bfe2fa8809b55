#include "base/cleanup.h"
#include "base/grow.h"
#include "collect/events/event_parts.h"
#include "collect/overhead/trap_cost.h"
#include "collect/probes/uprobes.h"
#include "collect/session/session_wire.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define USUAL_IMAGES 512
#define OPEN_TRIES   8 /* of a file, by processes that map it */
/* A hit on an instruction that is emulated, and on one that is stepped over, where it cannot be measured: as in placement.h. */
#define TRAP_NS 520.0
#define STEP_NS 9300.0

void event_failed(struct event_probes *ep, uint32_t spec, uint32_t n, const char *fmt, ...)
{
	va_list ap;

	ep->items[spec].failed += n;
	va_start(ap, fmt);
	vsnprintf(ep->items[spec].failed_why, sizeof(ep->items[spec].failed_why), fmt, ap);
	va_end(ap);
}

uint32_t event_probes_failed(const struct event_probes *ep, uint32_t spec, const char **ret_why)
{
	*ret_why = ep->items[spec].failed_why;
	return ep->items[spec].failed;
}

double event_probes_trap_ns(const struct event_probes *ep, uint32_t number)
{
	const struct event *ev = &ep->events[number];
	bool is_site = ep->specs[ev->spec].kind > EVENT_TRACEPOINT;

	return is_site ? ep->trap_ns[ev->stepped ? TRAP_STEPPED : TRAP_EMULATED] : 0;
}

double event_probes_return_ns(const struct event_probes *ep)
{
	return ep->trap_ns[TRAP_STEPPED];
}

static double measured(struct event_probes *ep, enum trap_kind kind, double usual)
{
	_cleanup_(trap_cost_closep) struct trap_cost *trap = NULL;
	double ns = trap_cost_open(ep->session, kind, &trap) == 0 ? trap_cost_ns(trap) : 0;

	return ns > 0 ? ns : usual;
}

void event_sites_measure(struct event_probes *ep)
{
	ep->trap_ns[TRAP_EMULATED] = measured(ep, TRAP_EMULATED, TRAP_NS);
	ep->trap_ns[TRAP_STEPPED] = measured(ep, TRAP_STEPPED, STEP_NS);
}

void event_probes_in(struct event_probes *ep, struct dict *d, struct proc_table *procs,
		     bool file_scope)
{
	ep->dict = d;
	ep->procs = procs;
	ep->file_scope = file_scope;
}

static bool has_events(const struct event_probes *ep, uint32_t spec)
{
	bool any = false;

	for (uint32_t i = 0; i < ep->n; i++)
		any |= ep->events[i].spec == spec;
	return any;
}

/* An item may be of it: no better is known. One of any file is, unless it was found in another. */
static void open_failed(struct event_probes *ep, module_id module, int code)
{
	const char *path = dict_str(ep->dict, dict_module_get(ep->dict, module)->path);

	for (uint32_t i = 0; i < ep->n_specs; i++)
		if (event_may_be_of(&ep->specs[i], path) &&
		    (*ep->specs[i].file || !has_events(ep, i)))
			event_failed(ep, i, 1, "%s cannot be opened: %s", path, strerror(-code));
}

/* Who mapped it may have ended before it was opened: the next one that does is asked. */
static int look_into(struct event_probes *ep, struct event_file *f)
{
	int r;

	f->fd = proc_table_open_module(ep->procs, f->module, NULL);
	f->tries++;
	if (f->fd < 0 && f->tries == OPEN_TRIES)
		open_failed(ep, f->module, f->fd);
	if (f->fd < 0)
		return 0;
	f->is_known = true;
	r = event_places_find(ep, f);
	if (!f->n)
		close(TAKE_FD(f->fd));
	return r;
}

static int file_at(struct event_probes *ep, module_id module)
{
	for (uint32_t i = 0; i < ep->n_files; i++)
		if (ep->files[i].module.ix == module.ix)
			return (int)i;
	if (!GROW(ep->files, ep->n_files, ep->cap_files))
		return -ENOMEM;
	ep->files[ep->n_files] = (struct event_file){ .module = module, .fd = -1 };
	return (int)ep->n_files++;
}

/* The file of a module, looked into: its number; -ENOMEM. */
static int file_of(struct event_probes *ep, module_id module)
{
	int i = file_at(ep, module), r;

	if (i < 0 || ep->files[i].is_known || ep->files[i].tries == OPEN_TRIES)
		return i;
	r = look_into(ep, &ep->files[i]);
	return r < 0 ? r : i;
}

static bool is_attached(const struct event_probes *ep, pid_t pid, uint32_t file)
{
	for (uint32_t i = 0; i < ep->n_attached; i++)
		if (ep->attached[i].pid == pid && ep->attached[i].file == file)
			return true;
	return false;
}

/* What is attached of one item; places are those of `f`. */
struct ask {
	uint64_t *offs, *semaphores, *cookies;
	uint32_t n;
};

static void ask_fini(struct ask *a)
{
	free(a->offs);
}

static int ask_for(const struct event_probes *ep, const struct event_file *f, uint32_t spec,
		   bool is_return, struct ask *a)
{
	uint64_t *words = calloc(3 * (size_t)f->n, sizeof(*words));

	if (!words)
		return -ENOMEM;
	*a = (struct ask){ words, words + f->n, words + 2 * (size_t)f->n, 0 };
	for (uint32_t i = 0; i < f->n; i++) {
		if (ep->events[f->places[i].number].spec != spec ||
		    f->places[i].is_return != is_return)
			continue;
		a->offs[a->n] = f->places[i].off;
		a->semaphores[a->n] = f->places[i].semaphore;
		a->cookies[a->n++] = f->places[i].number;
	}
	return 0;
}

/* The places of an item in a file. How many are probed now; -ENOMEM. */
static int attach_item(struct event_probes *ep, uint32_t file, uint32_t spec, bool is_return,
		       pid_t pid)
{
	enum ms_event_program program = is_return ? MS_EVENT_RETURN : MS_EVENT_SITE;
	_cleanup_(ask_fini) struct ask a = { 0 };
	struct event_attached *at;
	int *fds, n;

	if (ask_for(ep, &ep->files[file], spec, is_return, &a) < 0 ||
	    !GROW(ep->attached, ep->n_attached, ep->cap_attached))
		return -ENOMEM;
	if (!a.n)
		return 0;
	fds = calloc(a.n, sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	n = uprobes_attach_sites(session_event_program(ep->session, program), ep->files[file].fd,
				 a.offs, a.semaphores, uprobes_cookies() ? a.cookies : NULL, a.n,
				 pid, fds);
	if (n < 0 && n != -ESRCH)
		event_failed(ep, spec, a.n, "%s",
			     n == -EMFILE ? "too many open files: raise the limit (ulimit -n)"
					  : strerror(-n));
	if (n == -ESRCH) {
		free(fds);
		return 0;
	}
	/* What failed is remembered with no probe: it is not tried again. */
	at = &ep->attached[ep->n_attached++];
	*at = (struct event_attached){ pid, file, spec, n > 0 ? (uint32_t)n : 0, is_return, fds };
	return n > 0 ? (int)a.n : 0;
}

static int attach_file(struct event_probes *ep, uint32_t file, pid_t pid)
{
	int sum = 0, r = 0;

	for (uint32_t i = 0; i < ep->n_specs && r >= 0; i++) {
		if (ep->specs[i].kind <= EVENT_TRACEPOINT || ep->items[i].stopped)
			continue;
		/* Returns first: a call without its return would never end. */
		r = ep->items[i].untimed ? 0 : attach_item(ep, file, i, true, pid);
		if (r >= 0)
			r = attach_item(ep, file, i, false, pid);
		sum += r > 0 ? r : 0;
	}
	return r < 0 ? r : sum;
}

int event_probes_add(struct event_probes *ep, pid_t pid)
{
	struct proc *p = ep->has_sites && ep->procs ? proc_table_live(ep->procs, pid) : NULL;
	pid_t scope = ep->file_scope ? -1 : pid;
	struct proc_image usual[USUAL_IMAGES], *images = usual;
	_cleanup_(freep) struct proc_image *many = NULL;
	uint32_t n = p ? proc_images(ep->procs, p, images, USUAL_IMAGES) : 0;
	int sum = 0, r;

	if (n > USUAL_IMAGES) {
		images = many = calloc(n, sizeof(*many));
		if (!many)
			return -ENOMEM;
		proc_images(ep->procs, p, images, n);
	}
	for (uint32_t i = 0; i < n; i++) {
		if (dict_module_get(ep->dict, images[i].module)->kind != MODULE_ELF)
			continue;
		r = file_of(ep, images[i].module);
		if (r >= 0)
			r = !ep->files[r].n || is_attached(ep, scope, (uint32_t)r)
				    ? 0
				    : attach_file(ep, (uint32_t)r, scope);
		if (r < 0)
			return r;
		sum += r;
	}
	return sum;
}

static void take_away(struct event_probes *ep, uint32_t i)
{
	uprobes_detach(ep->attached[i].fds, ep->attached[i].n_fds);
	free(ep->attached[i].fds);
	ep->attached[i] = ep->attached[--ep->n_attached];
}

void event_probes_drop(struct event_probes *ep, pid_t pid)
{
	for (uint32_t i = ep->n_attached; i-- > 0;)
		if (ep->attached[i].pid == pid)
			take_away(ep, i);
}

void event_sites_stop(struct event_probes *ep, uint32_t spec)
{
	ep->items[spec].stopped = true;
	for (uint32_t i = ep->n_attached; i-- > 0;)
		if (ep->attached[i].spec == spec)
			take_away(ep, i);
}

void event_probes_untime(struct event_probes *ep, uint32_t spec)
{
	ep->items[spec].untimed = true;
	for (uint32_t i = ep->n_attached; i-- > 0;)
		if (ep->attached[i].spec == spec && ep->attached[i].is_return)
			take_away(ep, i);
	for (uint32_t i = 0; i < ep->n; i++)
		if (ep->events[i].spec == spec)
			event_set_row(ep, i);
}

void event_sites_free(struct event_probes *ep)
{
	for (uint32_t i = 0; i < ep->n_files; i++) {
		free(ep->files[i].places);
		if (ep->files[i].fd >= 0)
			close(ep->files[i].fd);
	}
	free(ep->files);
	free(ep->attached);
	event_places_free(ep);
}
