/* The part of dwarf_makes.h that runs in the child. */
#include "elf/dwarf.h"
#include "elf/dwarf_makes.h"
#include "elf/dwarf_out.h"
#include "elf/dwarf_read.h"
#include "elf/dwarf_type.h"

#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	NAME_MAX_BYTES = 512,
	NESTED_MAX = 16,    /* pointers to pointers, structs in structs */
	CFA_ABOVE_RBP = 16, /* where a frame is kept by rbp: its caller's and the return address */
	REG_RBP = 6,
};

struct makes {
	struct dwarf_out out;
	const struct result_moves *calls;
	uint32_t n;
	bool *done;
	Dwarf_Die unit;
};

/* The type that is pointed to, with what is known about it. */
struct pointed {
	Dwarf_Die die;
	char name[NAME_MAX_BYTES];
	Dwarf_Word bytes;
};

/* --- types --- */

/* "ns::" of what the type is in. */
static void put_scopes(Dwarf_Die *die, char *name, size_t cap)
{
	Dwarf_Die *scopes = NULL;
	int n = dwarf_getscopes_die(die, &scopes);
	size_t at = 0;

	*name = '\0';
	for (int i = n - 1; i > 0 && at < cap; i--) {
		int tag = dwarf_tag(&scopes[i]);
		const char *part = dwarf_diename(&scopes[i]);

		if (part && (tag == DW_TAG_namespace || tag == DW_TAG_structure_type ||
			     tag == DW_TAG_class_type))
			at += (size_t)snprintf(name + at, cap - at, "%s::", part);
	}
	free(scopes);
}

/* "ns::Session", "client_t"; "Session*" of what is a pointer itself. false: it has no name. */
static bool name_type(Dwarf_Die *die, int stars, char *name, size_t cap)
{
	char scopes[NAME_MAX_BYTES / 2];
	const char *own;

	while (dwarf_tag(die) == DW_TAG_pointer_type && stars < NESTED_MAX) {
		stars++;
		if (!dwarf_type_of(die, die) || !dwarf_type_strip(die, false)) {
			snprintf(name, cap, "void%.*s", stars, "****************");
			return true;
		}
	}
	own = dwarf_diename(die);
	if (!own || !*own)
		return false;
	put_scopes(die, scopes, sizeof(scopes));
	snprintf(name, cap, "%.200s%.250s%.*s", scopes, own, stars, "****************");
	return true;
}

/* The type that a pointer of type `die` points to; false: it is no pointer, or says nothing. */
static bool pointed_of(Dwarf_Die *die, struct pointed *ret)
{
	Dwarf_Die whole;

	if (!dwarf_type_strip(die, true) || dwarf_tag(die) != DW_TAG_pointer_type ||
	    !dwarf_type_of(die, &ret->die) || !dwarf_type_strip(&ret->die, false))
		return false;
	whole = ret->die;
	return dwarf_type_strip(&whole, true) && dwarf_tag(&whole) != DW_TAG_subroutine_type &&
	       dwarf_aggregate_size(&whole, &ret->bytes) == 0 && ret->bytes > 0 &&
	       name_type(&ret->die, 0, ret->name, sizeof(ret->name));
}

/* --- locations --- */

/* The register that an expression is, as a whole; UINT32_MAX: it is none. */
static uint32_t register_of(const Dwarf_Op *ops, size_t n)
{
	if (n < 1 || (n > 1 && ops[1].atom != DW_OP_piece))
		return UINT32_MAX;
	if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
		return ops[0].atom - DW_OP_reg0;
	return ops[0].atom == DW_OP_regx ? (uint32_t)ops[0].number : UINT32_MAX;
}

/*
 * Is the variable at `off` from the frame's base the slot that the move stores to? The base is the CFA (gcc) or rbp (clang);
 * which of the two there is follows from the function.
 */
static bool is_slot(Dwarf_Die *function, int64_t off, const struct result_move *move)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	if (move->kind != MOVE_SLOT || move->reg != REG_RBP ||
	    !dwarf_attr_integrate(function, DW_AT_frame_base, &attr) ||
	    dwarf_getlocation(&attr, &ops, &n) < 0 || n != 1)
		return false;
	if (ops[0].atom == DW_OP_call_frame_cfa)
		return off + CFA_ABOVE_RBP == move->off;
	return ops[0].atom == DW_OP_reg6 && off == move->off;
}

/* Does the result become what is at this place from `start` on? 0: in all of the function. */
static bool takes_result(Dwarf_Die *function, const struct result_moves *call,
			 Dwarf_Attribute *location, uint64_t start, const Dwarf_Op *ops, size_t n)
{
	uint32_t reg = register_of(ops, n);
	uint64_t addr;

	if (reg == call->reg && start == call->vaddr)
		return true;
	for (uint32_t i = 0; i < call->n; i++) {
		const struct result_move *move = &call->move[i];

		/* While it is still in the result's register, too, compilers name either. */
		if (start && start != move->behind && start != call->vaddr)
			continue;
		if (reg != UINT32_MAX &&
		    ((move->kind == MOVE_REGISTER && reg == move->reg && start) ||
		     (reg == call->reg && start == move->behind)))
			return true;
		if (n == 1 && ops[0].atom == DW_OP_fbreg &&
		    is_slot(function, (int64_t)ops[0].number, move))
			return true;
		if (n == 1 && move->kind == MOVE_ADDRESS &&
		    dwarf_type_address(location, &ops[0], &addr) && addr == move->vaddr)
			return true;
	}
	return false;
}

static bool is_taken_by(Dwarf_Die *function, Dwarf_Die *variable, const struct result_moves *call)
{
	Dwarf_Addr base, start, end;
	Dwarf_Attribute attr;
	ptrdiff_t off = 0;
	Dwarf_Op *ops;
	size_t n;

	if (!dwarf_attr_integrate(variable, DW_AT_location, &attr))
		return false;
	while ((off = dwarf_getlocations(&attr, off, &base, &start, &end, &ops, &n)) > 0)
		/* A place that is the same everywhere comes with all addresses. */
		if (takes_result(function, call, &attr, end == (Dwarf_Addr)-1 ? 0 : start, ops, n))
			return true;
	return false;
}

/* --- calls --- */

static void answer(struct makes *m, uint32_t i, const struct pointed *type, bool is_guess)
{
	uint32_t name = dwarf_out_string(&m->out, type->name);

	if (!name)
		return;
	dwarf_out_u8(&m->out, 'T');
	dwarf_out_put(&m->out, &m->calls[i].vaddr, 8);
	dwarf_out_u32(&m->out, name);
	dwarf_out_put(&m->out, &type->bytes, 8);
	dwarf_out_u8(&m->out, is_guess);
	m->done[i] = true;
}

/* --- members --- */

/* The register that has the variable at this moment. */
static bool is_in_register(Dwarf_Die *variable, uint32_t reg, uint64_t at)
{
	Dwarf_Addr base, start, end;
	Dwarf_Attribute attr;
	ptrdiff_t off = 0;
	Dwarf_Op *ops;
	size_t n;

	if (!dwarf_attr_integrate(variable, DW_AT_location, &attr))
		return false;
	while ((off = dwarf_getlocations(&attr, off, &base, &start, &end, &ops, &n)) > 0)
		if (start <= at && at < end && register_of(ops, n) == reg)
			return true;
	return false;
}

/* The type of the member that begins there, of a struct or of one in it. */
static bool member_at(Dwarf_Die *whole, uint64_t off, int depth, Dwarf_Die *ret_type)
{
	Dwarf_Die child, type;
	Dwarf_Word at, bytes;

	if (depth > NESTED_MAX || !dwarf_type_strip(whole, true) || dwarf_child(whole, &child) != 0)
		return false;
	do {
		Dwarf_Attribute attr;

		at = 0;
		if ((dwarf_tag(&child) != DW_TAG_member &&
		     dwarf_tag(&child) != DW_TAG_inheritance) ||
		    (dwarf_attr(&child, DW_AT_data_member_location, &attr) &&
		     dwarf_formudata(&attr, &at) < 0) ||
		    at > off || !dwarf_type_of(&child, &type) ||
		    dwarf_aggregate_size(&type, &bytes) < 0 || off >= at + bytes)
			continue;
		if (dwarf_type_strip(&type, true) && dwarf_tag(&type) == DW_TAG_pointer_type) {
			*ret_type = type;
			return at == off;
		}
		return member_at(&type, off - at, depth + 1, ret_type);
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

/* `p->items = malloc(…)`: the move stores it to a member of what this variable points to. */
static bool find_member(Dwarf_Die *variable, const struct result_moves *call, struct pointed *ret)
{
	Dwarf_Die type, member;
	struct pointed whole;

	if (!dwarf_type_of(variable, &type) || !pointed_of(&type, &whole))
		return false;
	for (uint32_t i = 0; i < call->n; i++)
		if (call->move[i].kind == MOVE_SLOT && call->move[i].off >= 0 &&
		    is_in_register(variable, call->move[i].reg, call->move[i].at) &&
		    member_at(&whole.die, (uint64_t)call->move[i].off, 0, &member) &&
		    pointed_of(&member, ret))
			return true;
	return false;
}

/* A variable of this scope that takes the result, and points to something. */
static bool find_variable(Dwarf_Die *scope, Dwarf_Die *function, const struct result_moves *call,
			  struct pointed *ret)
{
	Dwarf_Die child, type;

	if (dwarf_child(scope, &child) != 0)
		return false;
	do {
		int tag = dwarf_tag(&child);

		if (tag != DW_TAG_variable && tag != DW_TAG_formal_parameter)
			continue;
		if (is_taken_by(function, &child, call) && dwarf_type_of(&child, &type) &&
		    pointed_of(&type, ret))
			return true;
		if (find_member(&child, call, ret))
			return true;
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

static bool is_function(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
}

/* From the innermost block to the unit; the real function is the one that locations are relative to. */
static void look_at_call(struct makes *m, uint32_t i, Dwarf_Die *scopes, int n)
{
	Dwarf_Die *real = NULL, *inner = NULL, type;
	struct pointed found;

	for (int k = 0; k < n; k++) {
		inner = inner ? inner : is_function(&scopes[k]) ? &scopes[k] : NULL;
		if (!real && dwarf_tag(&scopes[k]) == DW_TAG_subprogram)
			real = &scopes[k];
	}
	if (!real)
		return;
	for (int k = 0; k < n; k++)
		if (find_variable(&scopes[k], real, &m->calls[i], &found))
			return answer(m, i, &found, false);
	if (dwarf_type_of(inner, &type) && pointed_of(&type, &found))
		answer(m, i, &found, true);
}

/* libdw's scopes of an address go on with those of where an inlined function was written: the ones around it are wanted. */
static void look_at(struct makes *m, uint32_t i)
{
	Dwarf_Die *at = NULL, *scopes = NULL;
	int n = dwarf_getscopes(&m->unit, m->calls[i].vaddr - 1, &at);

	if (n > 0) {
		n = dwarf_getscopes_die(&at[0], &scopes);
		if (n > 0)
			look_at_call(m, i, scopes, n);
	}
	free(scopes);
	free(at);
}

/* The first that is not below `vaddr`. */
static uint32_t first_from(const struct makes *m, uint64_t vaddr)
{
	uint32_t low = 0, high = m->n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (m->calls[mid].vaddr < vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void read_unit(struct makes *m)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t off = 0;

	while ((off = dwarf_ranges(&m->unit, off, &base, &start, &end)) > 0)
		for (uint32_t i = first_from(m, start + 1);
		     start && i < m->n && m->calls[i].vaddr <= end; i++)
			if (!m->done[i])
				look_at(m, i);
}

static struct makes *whose_libdw;

static __attribute__((noreturn)) void libdw_out_of_memory(void)
{
	dwarf_out_flush(&whose_libdw->out);
	_exit(0);
}

static int read_all(struct makes *m, Elf *elf, Elf *alt)
{
	Dwarf *dwz = alt ? dwarf_begin_elf(alt, DWARF_C_READ, NULL) : NULL;
	Dwarf *dbg = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	Dwarf_Half version;
	Dwarf_CU *cu = NULL;
	uint8_t type;

	if (dbg) {
		dwarf_new_oom_handler(dbg, libdw_out_of_memory);
		if (dwz) {
			dwarf_new_oom_handler(dwz, libdw_out_of_memory);
			dwarf_setalt(dbg, dwz);
		}
		while (dwarf_get_units(dbg, cu, &cu, &version, &type, &m->unit, NULL) == 0)
			if (type == DW_UT_compile || type == DW_UT_skeleton)
				read_unit(m);
		dwarf_end(dbg);
	}
	dwarf_end(dwz);
	return dbg ? 0 : -ENOENT;
}

void dwarf_makes_read(struct elf_file *elf, struct elf_file *alt, const struct result_moves *calls,
		      uint32_t n, int spill, int out)
{
	struct dwarf_source main = { 0 }, shared = { 0 };
	struct dwarf_room room = { .fd = spill };
	struct makes *m = calloc(1, sizeof(*m));
	int32_t code = -ENOMEM;

	if (!m)
		return;
	whose_libdw = m;
	m->out.fd = out;
	m->calls = calls;
	m->n = n;
	m->done = calloc(n + 1ul, sizeof(*m->done));
	elf_version(EV_CURRENT);
	if (m->done)
		code = dwarf_source_open(elf, &room, true, &main);
	if (code == 0 && alt)
		dwarf_source_open(alt, &room, true, &shared);
	if (code == 0)
		code = read_all(m, main.elf, shared.elf);
	dwarf_out_u8(&m->out, 'E');
	dwarf_out_u32(&m->out, (uint32_t)code);
	dwarf_out_flush(&m->out);
	/* For tests; the child is about to end. */
	dwarf_source_close(&main);
	dwarf_source_close(&shared);
	dwarf_out_fini(&m->out);
	free(m->done);
	free(m);
}
