#include "dwfl_walk.h"

#include "abi.h"

#include <elfutils/libdwfl.h>
#include <string.h>
#include <unistd.h>

struct dwfl_walk {
	Dwfl *dwfl;
	const struct sample *s;
	uint64_t *frames;
	uint32_t n, max;
	bool below;
};

/* No separate debug files, no debuginfod: the same CFI for both. */
static int no_debuginfo(Dwfl_Module *m, void **userdata, const char *name, Dwarf_Addr base,
			const char *file, const char *link, GElf_Word crc, char **ret_name)
{
	return -1;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	if (*thread_arg)
		return 0;
	*thread_arg = arg;
	return 1;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	*thread_arg = arg;
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *ret_word, void *arg)
{
	struct dwfl_walk *w = arg;
	const struct sample *s = w->s;
	uint64_t off = addr - s->regs[7];

	w->below |= addr < s->regs[7];
	if (addr < s->regs[7] || s->stack_len < 8 || off > s->stack_len - 8)
		return false;
	memcpy(ret_word, s->stack + off, 8);
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct sample *s = ((struct dwfl_walk *)arg)->s;
	Dwarf_Word regs[SAMPLES_N_REGS];

	memcpy(regs, s->regs, sizeof(regs));
	return dwfl_thread_state_registers(thread, 0, SAMPLES_N_REGS, regs);
}

static const Dwfl_Callbacks files = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = no_debuginfo,
};

static const Dwfl_Thread_Callbacks threads = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

struct dwfl_walk *dwfl_walk_new(const struct process *p, const char **ret_why)
{
	struct dwfl_walk *w = calloc(1, sizeof(*w));

	w->dwfl = dwfl_begin(&files);
	dwfl_report_begin(w->dwfl);
	for (uint32_t i = 0; i < p->n; i++) {
		const struct mapping *m = &p->maps[i];
		bool known = !m->image || !m->image->elf;

		/* A file with several executable mappings is one module. */
		for (uint32_t k = 0; k < i && !known; k++)
			known = p->maps[k].image == m->image && p->maps[k].bias == m->bias;
		if (!known && !dwfl_report_elf(w->dwfl, m->image->name, m->image->name,
					       dup(m->image->fd), m->bias, true))
			fprintf(stderr, "# libdw: %s: %s\n", m->image->name, dwfl_errmsg(-1));
	}
	dwfl_report_end(w->dwfl, NULL, NULL);
	if (!dwfl_attach_state(w->dwfl, NULL, (pid_t)p->pid, &threads, w)) {
		*ret_why = dwfl_errmsg(-1);
		dwfl_walk_free(w);
		return NULL;
	}
	return w;
}

void dwfl_walk_free(void *walk)
{
	struct dwfl_walk *w = walk;

	dwfl_end(w->dwfl);
	free(w);
}

static int on_frame(Dwfl_Frame *frame, void *arg)
{
	struct dwfl_walk *w = arg;
	Dwarf_Addr pc;
	bool exact;

	if (w->n == w->max || !dwfl_frame_pc(frame, &pc, &exact))
		return DWARF_CB_ABORT;
	w->frames[w->n] = pc | (exact && w->n ? MS_FRAME_EXACT << MS_FRAME_TAG_SHIFT : 0);
	w->n++;
	return DWARF_CB_OK;
}

uint32_t dwfl_walk_stack(struct dwfl_walk *w, const struct sample *s, uint64_t *frames,
			 uint32_t max, const char **ret_end, bool *ret_below)
{
	int r;

	w->s = s;
	w->frames = frames;
	w->n = 0;
	w->max = max;
	w->below = false;
	r = dwfl_getthread_frames(w->dwfl, s->tid, on_frame, w);
	*ret_end = r < 0 ? dwfl_errmsg(-1) : r > 0 ? "too deep" : NULL;
	*ret_below = w->below;
	return w->n;
}
