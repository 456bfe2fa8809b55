#include "lang/go_cell.h"

#include "base/clock.h"
#include "base/file_cell.h"
#include "base/put.h"
#include "elf/gopclntab.h"
#include "lang/goroutines_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRAM, PLACES };
enum { PLACE = CALL_OWN };
enum { SECONDS_MAX = 10, CPU_S = 20, PLACE_BYTES = 6 };
enum { RUNTIME = 1, MAIN = 2, ENTRY = 4 };
enum {
	ANSWER_BYTES_MAX =
		sizeof(int32_t) + sizeof(struct go_program) + sizeof(((struct err *)0)->msg)
};

#define PLACE_NS 2000000000ull /* that one is waited for */

/* --- in the cell --- */

static int read_program(struct elf_file *elf, struct go_program **ret, struct err *e)
{
	_cleanup_(gopclntab_freep) struct gopclntab *tab = NULL;
	int r = elf_is_go(elf) ? gopclntab_open(elf, &tab, e) : -ENOENT;

	return r < 0 ? r : go_program_read(elf, tab, ret, e);
}

static void say_program(const struct cell_given *given, struct elf_file *elf, int r, struct err *e)
{
	_cleanup_(go_program_freep) struct go_program *p = NULL;
	_cleanup_(strbuf_free) struct strbuf b = { 0 };

	if (r == 0)
		r = read_program(elf, &p, e);
	put_u32(&b, (uint32_t)r);
	if (r == 0)
		strbuf_add(&b, p, sizeof(*p));
	else
		strbuf_add(&b, e->msg, strnlen(e->msg, sizeof(e->msg)));
	if (!strbuf_oom(&b))
		cell_answer(given, b.s, b.len);
}

static int say_place(int channel, const struct gopclntab *tab, uint64_t vaddr)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	struct go_place place = go_place_read(tab, vaddr);

	put_u32(&b, (uint32_t)place.delta);
	put_u8(&b, place.kind);
	put_u8(&b, (uint8_t)((place.runtime ? RUNTIME : 0) | (place.main ? MAIN : 0) |
			     (place.entry ? ENTRY : 0)));
	return strbuf_oom(&b) ? -ENOMEM
			      : talk_send(channel, PLACE, b.s, b.len, NULL, 0, UINT64_MAX);
}

/* Until nobody asks any more. */
static void say_places(const struct cell_given *given, struct elf_file *elf, int r)
{
	_cleanup_(gopclntab_freep) struct gopclntab *tab = NULL;
	int32_t code;

	if (r == 0)
		r = gopclntab_open(elf, &tab, NULL);
	code = r;
	r = cell_answer(given, &code, sizeof(code));
	while (r == 0 && code == 0) {
		_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
		struct bytes b;
		uint64_t vaddr;

		r = talk_take(given->channel, sizeof(vaddr), false, UINT64_MAX, &t);
		b = talk_bytes(&t);
		if (r == 0)
			r = t.what == PLACE ? bytes_u64(&b, &vaddr) : -EBADMSG;
		if (r == 0)
			r = say_place(given->channel, tab, vaddr);
	}
}

static void work(const struct cell_given *given)
{
	_cleanup_(talk_fini) struct talk q = { .fds = { -1, -1, -1 } };
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	struct err e = { 0 };
	struct bytes b;
	uint8_t what;
	int r;

	if (cell_question(given, &q) < 0)
		return;
	b = talk_bytes(&q);
	if (bytes_u8(&b, &what) < 0)
		return;
	r = elf_file_open(q.fds[0], "the program", &elf, &e);
	if (what == PLACES)
		say_places(given, elf, r);
	else
		say_program(given, elf, r, &e);
}

static const struct cell_kind cell = {
	.name = "Go",
	.work = work,
	.data_bytes = 1 << 30,
	.cpu_s = CPU_S,
	.files = 8,
};
CELL_KIND(cell);

/* --- the program --- */

int go_program_take(struct bytes answer, struct go_program **ret_program, struct err *e)
{
	struct go_program *p;
	uint32_t code;
	int r;

	if (bytes_u32(&answer, &code) < 0)
		return -EBADMSG;
	if (code)
		return file_cell_code((int)code, answer, e);
	if (answer.len != sizeof(*p))
		return -EBADMSG;
	p = malloc(sizeof(*p));
	if (!p)
		return err_set(e, -ENOMEM, "out of memory");
	memcpy(p, answer.data, sizeof(*p));
	r = go_program_check(p);
	if (r < 0)
		free(p);
	else
		*ret_program = p;
	return r;
}

int go_program_ask(int fd, struct go_program **ret_program, struct err *e)
{
	static struct cell_patience patience;
	static const uint8_t what = PROGRAM;
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	const struct cell_call call = { .kind = &cell,
					.question = &what,
					.len = sizeof(what),
					.fds = &fd,
					.n_fds = 1,
					.answer_max = ANSWER_BYTES_MAX,
					.seconds = SECONDS_MAX,
					.patience = &patience };
	struct err why = { 0 };
	int r = cell_call(&call, &t, NULL);

	if (r == 0) {
		r = go_program_take(talk_bytes(&t), ret_program, &why);
		if (r != -EBADMSG || why.code) {
			if (e)
				*e = why;
			return r;
		}
	}
	if (r == -ETIMEDOUT)
		return err_set(e, r, "Go's table of functions takes too long to read");
	return r == -EPIPE || r == -EBADMSG
		       ? err_set(e, -EBADMSG,
				 "the process that read Go's table of functions ended early")
		       : err_set(e, r, "no process to read Go's table of functions: %s",
				 strerror(-r));
}

/* --- places --- */

bool go_place_take(struct bytes b, uint64_t vaddr, struct go_place *ret)
{
	uint32_t delta;
	uint8_t kind, flags;

	if (bytes_u32(&b, &delta) < 0 || bytes_u8(&b, &kind) < 0 || bytes_u8(&b, &flags) < 0 ||
	    b.len || kind > GO_FRAME_NONE || flags > (RUNTIME | MAIN | ENTRY))
		return false;
	*ret = (struct go_place){ .vaddr = vaddr,
				  .delta = (int32_t)delta,
				  .kind = kind,
				  .runtime = flags & RUNTIME,
				  .main = flags & MAIN,
				  .entry = flags & ENTRY };
	return true;
}

static int begin(struct go_places *p)
{
	static const uint8_t what = PLACES;
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	_cleanup_(closep) int fd = p->open(p->ctx);
	uint64_t until = now_ns() + p->left_ns;
	uint32_t code;
	struct bytes b;
	int r = fd < 0 ? fd : cell_open(&cell, &p->link);

	if (r < 0)
		return r;
	p->has_cell = true;
	r = talk_send(p->link.channel, CALL_QUESTION, &what, sizeof(what), &fd, 1, until);
	if (r == 0)
		r = talk_take(p->link.channel, sizeof(code), false, until, &t);
	b = talk_bytes(&t);
	if (r == 0 && (t.what != CALL_ANSWER || bytes_u32(&b, &code) < 0 || code))
		r = -EBADMSG;
	return r;
}

static int ask(struct go_places *p, uint64_t vaddr, struct go_place *ret)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	uint64_t until = now_ns() + (p->left_ns < PLACE_NS ? p->left_ns : PLACE_NS);
	int r = talk_send(p->link.channel, PLACE, &vaddr, sizeof(vaddr), NULL, 0, until);

	if (r == 0)
		r = talk_take(p->link.channel, PLACE_BYTES, false, until, &t);
	if (r == 0 && (t.what != PLACE || !go_place_take(talk_bytes(&t), vaddr, ret)))
		r = -EBADMSG;
	return r;
}

bool go_places_find(void *places, uint64_t vaddr, struct go_place *ret)
{
	struct go_places *p = places;
	uint64_t began = now_ns(), took;
	int r = p->gave_up ? -EPIPE : 0;

	if (r == 0 && !p->has_cell)
		r = begin(p);
	if (r == 0)
		r = ask(p, vaddr, ret);
	took = now_ns() - began;
	p->left_ns -= took < p->left_ns ? took : p->left_ns;
	if (r < 0) {
		p->gave_up = true;
		p->is_bad |= p->has_cell;
		go_places_end(p);
	}
	return r == 0;
}

void go_places_end(struct go_places *p)
{
	if (p->has_cell) {
		cell_kill(&p->link);
		cell_close(&p->link, NULL);
	}
	p->has_cell = false;
}
