#include "analyse/verdict_parts.h"

#include "base/units.h"

#include <string.h>

/* Parts of the samples. */
#define PROBES_PART 0.25 /* of the samples, in the traps of our own probes                  */
#define KERNEL_PART 0.50 /* of the samples: then it is said that they are in the kernel      */
#define JIT_PART    0.25 /* of the samples: then it is said that they compile the program     */
#define STANDS_OUT  0.10 /* of the samples: a function worth naming                        */
#define LEAST_SAMPLES                                                                              \
	10 /* fewer: a share is off by 30 points and more (95 %), so no function is named */
#define COMMAND_PART 0.25 /* of the CPU time: what a child runs is worth naming            */

/*
 * Where a timer interrupt lands that was held back while interrupts were off: the cost is that of
 * the code before. With cpu-clock these functions lead many lists and explain nothing.
 */
static bool is_where_interrupts_come_on(const struct top_row *row)
{
	static const char *const names_of[] = { "_raw_spin_unlock_irqrestore",
						"_raw_spin_unlock_irq",
						"finish_task_switch",
						"local_irq_enable",
						"pvm_irq_enable",
						"irqentry_exit_to_user_mode",
						"__local_bh_enable_ip",
						"handle_softirqs",
						"__do_softirq" };

	for (size_t i = 0; i < sizeof(names_of) / sizeof(names_of[0]); i++)
		if (strncmp(row->name, names_of[i], strlen(names_of[i])) == 0)
			return true;
	return false;
}

/* The function to name: the first by self that has a name and can be meant. */
static const struct top_row *find_first(const struct run_summary *s)
{
	for (uint32_t i = 0; i < s->oncpu.n_self && s->oncpu.samples > 0; i++) {
		const struct top_row *row = &s->oncpu.by_self[i];

		if (row->kind != FRAME_UNKNOWN && !is_where_interrupts_come_on(row))
			return row;
	}
	return NULL;
}

const struct top_row *verdict_hot(const struct run_summary *s)
{
	const struct top_row *top = find_first(s);

	return top && (double)top->self >= STANDS_OUT * (double)s->oncpu.samples ? top : NULL;
}

/* The program's own function that stands out with what libraries, an interpreter and the kernel do for it. */
struct own_function {
	const char *name; /* NULL: there is none */
	int64_t samples;
};

static struct own_function find_own(const struct run_summary *s)
{
	struct own_function own = { 0 };

	if (s->oncpu.n_interpreted > 0)
		own = (struct own_function){ s->oncpu.interpreted[0].name,
					     s->oncpu.interpreted[0].self };
	else if (s->oncpu.n_sites > 0 && s->oncpu.sites[0].function[0] &&
		 s->oncpu.sites[0].function[0] != '[')
		own = (struct own_function){ s->oncpu.sites[0].function, s->oncpu.sites[0].value };
	if ((double)own.samples < STANDS_OUT * (double)s->oncpu.samples)
		own.name = NULL;
	return own;
}

/* So much tracing that the CPU profile is one of the tracing. */
bool verdict_probes_lead(const struct run_summary *s)
{
	return s->oncpu.samples > 0 &&
	       (double)s->oncpu.probe_samples >= PROBES_PART * (double)s->oncpu.samples;
}

const struct nameless_row *verdict_nameless(const struct run_summary *s)
{
	const struct nameless_row *row = s->oncpu.nameless;
	const struct top_row *hot = verdict_hot(s);

	/* Frames of a language say more than the interpreter's code. */
	if (!row || s->oncpu.n_interpreted > 0 ||
	    (double)row->value < STANDS_OUT * (double)s->oncpu.samples)
		return NULL;
	return !hot || nameless_name(hot->name) || hot->self < row->value ? row : NULL;
}

/* What a profile is for in which no function stands out; NULL: not known. */
static const char *say_trunk(struct verdict *v, const struct run_summary *s)
{
	const struct top_row *trunk = s->oncpu.trunk;

	if (!trunk)
		return NULL;
	SAY(v, ", %s of it in or for %.100s",
	    unit_percent(trunk->total, (int64_t)s->oncpu.samples).s, trunk->name);
	return trunk->name;
}

static void say_nameless(struct verdict *v, const struct run_summary *s,
			 const struct nameless_row *row)
{
	const char *trunk = say_trunk(v, s);

	SAY(v, ", %s %sin %.100s (no names)", unit_percent(row->value, (int64_t)s->oncpu.samples).s,
	    trunk ? "" : "of it ", row->module);
	if (*row->caller && (!trunk || strcmp(trunk, row->caller) != 0))
		SAY(v, ", called by %.100s", row->caller);
}

/* A program that has just begun: what runs is not what the time goes to. */
static bool compilers_lead(const struct run_summary *s)
{
	return s->oncpu.samples > 0 &&
	       (double)s->oncpu.jit_samples >= JIT_PART * (double)s->oncpu.samples;
}

static void say_spread(struct verdict *v, const struct run_summary *s, const char *first,
		       int64_t self)
{
	say_trunk(v, s);
	SAY(v, ", %sspread over many functions (the first, %.100s, has %s)",
	    compilers_lead(s) ? "the rest " : "", first,
	    unit_percent(self, (int64_t)s->oncpu.samples).s);
}

void verdict_say_hot(struct verdict *v, const struct run_summary *s)
{
	const struct top_row *hot = verdict_hot(s), *first = find_first(s);
	struct own_function own = find_own(s);
	int64_t samples = (int64_t)s->oncpu.samples, kernel = (int64_t)s->oncpu.kernel_samples;

	/* A part of the interpreter that has no name is no answer where its user's functions have. */
	if (hot && hot->name[0] == '[' && s->oncpu.n_interpreted > 0)
		hot = NULL;
	if (samples > 0 && samples < LEAST_SAMPLES) {
		SAY(v, "; in which functions, %d sample%s cannot say", (int)samples,
		    samples == 1 ? "" : "s");
		return;
	}
	if (verdict_probes_lead(s)) {
		SAY(v, ", %s of it in the traps of memscope's own allocation probes",
		    unit_percent((int64_t)s->oncpu.probe_samples, samples).s);
		if (own.name)
			SAY(v, ", %s in or for %.100s", unit_percent(own.samples, samples).s,
			    own.name);
		return;
	}
	bool in_kernel = samples > 0 && (double)kernel >= KERNEL_PART * (double)samples;

	if (in_kernel)
		SAY(v, ", %s of it in the kernel", unit_percent(kernel, samples).s);
	if (compilers_lead(s))
		SAY(v, ", %s of it in the compilers (JIT) of its virtual machine",
		    unit_percent((int64_t)s->oncpu.jit_samples, samples).s);
	if (verdict_nameless(s)) {
		say_nameless(v, s, verdict_nameless(s));
		return;
	}
	if (hot && own.name && strcmp(own.name, hot->name) == 0 && own.samples > hot->self) {
		SAY(v, ", %s of it in or for %.100s", unit_percent(own.samples, samples).s,
		    own.name);
		return;
	}
	if (hot)
		SAY(v, ", %s of it in %.100s itself", unit_percent(hot->self, samples).s,
		    hot->name);
	if (own.name && (!hot || strcmp(own.name, hot->name) != 0))
		SAY(v, ", %s %sin or for %.100s", unit_percent(own.samples, samples).s,
		    hot || in_kernel ? "" : "of it ", own.name);
	if (hot || own.name)
		return;
	if (s->oncpu.n_interpreted > 0)
		say_spread(v, s, s->oncpu.interpreted[0].name, s->oncpu.interpreted[0].self);
	else if (first)
		say_spread(v, s, first->name, first->self);
}

/* A command that is the parent's own is no news; nor is which of many have the time, where the host is meant. */
static const struct command_row *find_command(const struct run_summary *s)
{
	const struct command_row *top = s->oncpu.commands;
	int64_t all = s->oncpu.cpu_ns;

	if (s->n_processes != 1 || s->seen_processes < 2 || !s->oncpu.n_commands || !*top->comm)
		return NULL;
	if (s->processes[0].comm && strcmp(s->processes[0].comm, top->comm) == 0)
		return NULL;
	return (double)top->cpu_ns >= COMMAND_PART * (double)all ? top : NULL;
}

const char *verdict_whose(const struct run_summary *s)
{
	return find_command(s) ? "it and its children" : "it";
}

void verdict_say_commands(struct verdict *v, const struct run_summary *s)
{
	const struct command_row *top = find_command(s);

	if (!top)
		return;
	/* Samples say how much of the CPU time; by themselves they may stand for a little more than all. */
	SAY(v, ", %s of it in %.64s",
	    unit_percent(top->cpu_ns < s->oncpu.cpu_ns ? top->cpu_ns : s->oncpu.cpu_ns,
			 s->oncpu.cpu_ns)
		    .s,
	    top->comm);
	if (top->processes > 1)
		SAY(v, " (%u processes)", top->processes);
}
