#include "elf/demangle_cell.h"

#include "base/cell_talk.h"
#include "base/clock.h"

#include <string.h>

enum { DEMANGLE_NAME = 1 };
enum { ENDED_MAX = 3, CPU_S = 60 };

#define NAME_NS 3000000000ull /* that an answer is waited for */

/* --- in the cell --- */

/* Until nobody asks any more. */
static void work(const struct cell_given *given)
{
	char out[DEMANGLE_OUT_MAX];
	int r = 0;

	while (r == 0) {
		_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
		bool is_mangled;

		r = talk_take(given->channel, DEMANGLE_IN_MAX, false, UINT64_MAX, &t);
		if (r < 0)
			return;
		is_mangled = demangle(t.data, t.len, out);
		r = talk_send(given->channel, DEMANGLE_NAME, out, is_mangled ? strlen(out) : 0,
			      NULL, 0, UINT64_MAX);
	}
}

static const struct cell_kind cell = {
	.name = "names of classes",
	.work = work,
	.data_bytes = 64 << 20,
	.cpu_s = CPU_S,
	.files = 4,
};
CELL_KIND(cell);

/* --- who asks --- */

bool demangled_take(struct bytes answer, char out[DEMANGLE_OUT_MAX], bool *ret_bad)
{
	const unsigned char *text = (const unsigned char *)answer.data;

	*ret_bad = answer.len >= DEMANGLE_OUT_MAX;
	for (size_t i = 0; i < answer.len && !*ret_bad; i++)
		*ret_bad = text[i] < ' ' || text[i] == 0x7f;
	if (*ret_bad || !answer.len)
		return false;
	memcpy(out, text, answer.len);
	out[answer.len] = '\0';
	return true;
}

/* false: it gave no answer as it should. */
static bool ask(struct demangler *d, const char *name, size_t len, char out[DEMANGLE_OUT_MAX],
		bool *ret_mangled)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	uint64_t until = now_ns() + NAME_NS;
	bool is_bad;

	if (talk_send(d->link.channel, DEMANGLE_NAME, name, len, NULL, 0, until) < 0 ||
	    talk_take(d->link.channel, DEMANGLE_OUT_MAX, false, until, &t) < 0 ||
	    t.what != DEMANGLE_NAME)
		return false;
	*ret_mangled = demangled_take(talk_bytes(&t), out, &is_bad);
	return !is_bad;
}

bool demangler_answers(const struct demangler *d)
{
	return d->ended < ENDED_MAX;
}

bool demangler_ask(struct demangler *d, const char *name, size_t len, char out[DEMANGLE_OUT_MAX])
{
	bool is_mangled = false;

	if (len > DEMANGLE_IN_MAX || !demangler_answers(d))
		return false;
	if (!d->has_cell && cell_open(&cell, &d->link) < 0) {
		d->ended++;
		return false;
	}
	d->has_cell = true;
	if (ask(d, name, len, out, &is_mangled))
		return is_mangled;
	d->ended++;
	demangler_end(d);
	return false;
}

void demangler_end(struct demangler *d)
{
	if (d->has_cell) {
		cell_kill(&d->link);
		cell_close(&d->link, NULL);
	}
	d->has_cell = false;
}
