/* The part of dwarf_members.h that runs in the child. */
#include "base/hash.h"
#include "elf/dwarf_members.h"
#include "elf/dwarf_out.h"
#include "elf/dwarf_read.h"
#include "elf/dwarf_type.h"

#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	NAME_BYTES = 1024,
	DEPTH_MAX = 24,    /* namespaces, structs and blocks in each other      */
	ELEMENTS_MAX = 64, /* of an array in a struct that are gone into        */
	OFFSET_MAX = 1 << 24,
	POINTER = 8,
};

/* --- containers whose pointers do not say what they point to --- */

enum container_kind {
	ELEMENTS, /* its pointers are to the first of several of its parameter */
	BEHIND,   /* … to behind the last of them                                */
	NODES,    /* … to nodes, which have pointers to nodes and then one       */
	EMBEDDED, /* it has one in itself, in bytes without a type               */
};

static const struct container {
	const char *prefix; /* of its name without what it is in                     */
	const char *param;  /* the template parameter that its elements are          */
	enum container_kind kind;
	const char *in;   /* the member that its pointers are in; NULL: any        */
	const char *node; /* what nodes are called                                 */
	uint8_t links;    /* words of a node that point to nodes: a bit each       */
	uint8_t value;    /* where its element is                                  */
} containers[] = {
	/* Rust: alloc/src/raw_vec.rs, hashbrown/src/raw/mod.rs */
	{ "RawVec<", "T", ELEMENTS, NULL, NULL, 0, 0 },
	{ "RawTable<", "T", BEHIND, NULL, NULL, 0, 0 },
	/* libstdc++: bits/stl_tree.h, stl_list.h, hashtable.h, shared_ptr_base.h */
	{ "_Rb_tree<", "_Val", NODES, NULL, "std::map node", 0xe, 32 },
	{ "_List_base<", "_Tp", NODES, NULL, "std::list node", 0x3, 16 },
	{ "_Hashtable<", "_Value", NODES, "_M_before_begin", "std::unordered_map node", 0x1, 8 },
	{ "_Sp_counted_ptr_inplace<", "_Tp", EMBEDDED, NULL, NULL, 0, 16 },
	/* libc++: __tree, list, __hash_table */
	{ "__tree<", "_Tp", NODES, NULL, "std::map node", 0x7, 32 },
	{ "__list_imp<", "_Tp", NODES, NULL, "std::list node", 0x3, 16 },
	{ "__hash_table<", "_Tp", NODES, "__p1_", "std::unordered_map node", 0x1, 16 },
};

/* Ends of what a vector has, which may be where the next block begins. */
static const char *const ends[] = { "_M_finish", "_M_end_of_storage", "__end_", "__end_cap_" };

/* --- state --- */

/* A type of this unit, by where its description is. */
struct named {
	Dwarf_Off at;
	uint32_t number;
	UT_hash_handle hh;
};

/* A type that is still to be written. */
struct todo {
	Dwarf_Die die;
	uint32_t number;
	const struct container
		*nodes_of; /* `die` is the element of such nodes; NULL: the type itself */
};

struct written {
	uint32_t number;
	uint64_t bytes, hash;
	UT_hash_handle hh;
};

struct slot {
	uint32_t off, name, kind; /* hashed as they are: no gaps */
};

struct writer {
	struct dwarf_out out;
	struct named *named;
	struct written *written;
	struct todo *todo;
	uint32_t n_todo, room_todo;
	Dwarf_Die *variables;
	uint32_t n_variables, room_variables;
	struct slot slots[DWARF_SLOTS_MAX];
	uint32_t n_slots;
};

/* What pointers in a struct point to, where they do not say so themselves. */
struct meant {
	uint32_t name; /* 0: what they say */
	uint8_t kind;
	const char *in;
	bool inside; /* of `in` */
};

static void add_todo(struct writer *w, const Dwarf_Die *die, uint32_t number,
		     const struct container *nodes_of)
{
	if (w->n_todo == w->room_todo) {
		uint32_t room = w->room_todo ? 2 * w->room_todo : 256;
		struct todo *more = reallocarray(w->todo, room, sizeof(*more));

		if (!more)
			return;
		w->todo = more;
		w->room_todo = room;
	}
	w->todo[w->n_todo++] = (struct todo){ *die, number, nodes_of };
}

/* --- names --- */

static bool is_struct(int tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

static bool is_pointer(int tag)
{
	return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
	       tag == DW_TAG_rvalue_reference_type;
}

static uint32_t named_at(const struct writer *w, Dwarf_Die *die)
{
	Dwarf_Off at = dwarf_dieoffset(die);
	struct named *n;

	HASH_FIND(hh, w->named, &at, sizeof(at), n);
	return n ? n->number : 0;
}

/* The number of its name; it is written, too. 0: out of memory. */
static uint32_t note_type(struct writer *w, Dwarf_Die *die, const char *name)
{
	Dwarf_Off at = dwarf_dieoffset(die);
	uint32_t number = dwarf_out_string(&w->out, name);
	struct named *n = number ? hash_get(w->named, at, &at) : NULL;

	if (!n)
		return 0;
	n->number = number;
	if (!dwarf_hasattr(die, DW_AT_declaration))
		add_todo(w, die, number, NULL);
	return number;
}

/*
 * The number of a type's name, without qualifiers. 0: void, one byte, or nothing that has a name. A type that only pointers
 * bring is written, too.
 */
static uint32_t name_of(struct writer *w, Dwarf_Die *type, int depth)
{
	const char *alias = NULL, *own;
	Dwarf_Die die = *type, to;
	char name[NAME_BYTES];
	Dwarf_Word bytes;
	uint32_t number;
	int tag;

	for (int i = 0; i < DEPTH_MAX && dwarf_tag(&die) != DW_TAG_invalid; i++) {
		if (!dwarf_type_strip(&die, false))
			return 0;
		if (dwarf_tag(&die) != DW_TAG_typedef)
			break;
		alias = dwarf_diename(&die);
		if (!dwarf_type_of(&die, &die))
			return 0;
	}
	number = named_at(w, &die);
	if (number)
		return number;
	tag = dwarf_tag(&die);
	own = dwarf_diename(&die);
	if (is_pointer(tag)) {
		if (depth >= 3)
			return 0;
		number = dwarf_type_of(&die, &to) ? name_of(w, &to, depth + 1) : 0;
		if (!number)
			return 0;
		if (snprintf(name, sizeof(name), "%s*", dwarf_out_text(&w->out, number)) >=
		    (int)sizeof(name))
			return 0;
		own = name;
	} else if (is_struct(tag)) {
		/* Of another unit, or without a name. */
		if (own)
			return dwarf_out_string(&w->out, own);
		own = alias;
	} else if (tag == DW_TAG_enumeration_type && !own) {
		own = alias;
	} else if (tag != DW_TAG_base_type && tag != DW_TAG_enumeration_type) {
		return 0;
	}
	if (!own || (!is_pointer(tag) && (dwarf_aggregate_size(&die, &bytes) < 0 || bytes < 2)))
		return 0;
	return note_type(w, &die, own);
}

/* --- what a container has --- */

static const struct container *container_of(Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);

	for (size_t i = 0; name && i < sizeof(containers) / sizeof(*containers); i++)
		if (strncmp(name, containers[i].prefix, strlen(containers[i].prefix)) == 0)
			return &containers[i];
	return NULL;
}

static bool param_of(Dwarf_Die *die, const char *name, Dwarf_Die *ret_type)
{
	Dwarf_Die child;

	if (dwarf_child(die, &child) != 0)
		return false;
	do {
		const char *own = dwarf_diename(&child);

		if (dwarf_tag(&child) == DW_TAG_template_type_parameter && own &&
		    strcmp(own, name) == 0)
			return dwarf_type_of(&child, ret_type);
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

static uint32_t name_nodes(struct writer *w, const struct container *c, Dwarf_Die *element)
{
	uint32_t number = name_of(w, element, 0);
	char name[NAME_BYTES];

	if (!number || snprintf(name, sizeof(name), "%s of %s", c->node,
				dwarf_out_text(&w->out, number)) >= (int)sizeof(name))
		return 0;
	number = dwarf_out_string(&w->out, name);
	if (number)
		add_todo(w, element, number, c);
	return number;
}

/* --- slots --- */

static void add_slot(struct writer *w, uint64_t off, uint32_t name, uint8_t kind)
{
	if (!name || off % POINTER || off > OFFSET_MAX || w->n_slots == DWARF_SLOTS_MAX)
		return;
	w->slots[w->n_slots++] = (struct slot){ (uint32_t)off, name, kind };
}

static void flatten(struct writer *w, Dwarf_Die *type, uint64_t off, struct meant meant, int depth);

static void flatten_array(struct writer *w, Dwarf_Die *array, uint64_t off, struct meant meant,
			  int depth)
{
	Dwarf_Word whole, each;
	Dwarf_Die type;

	if (!dwarf_type_of(array, &type) || dwarf_aggregate_size(array, &whole) < 0 ||
	    dwarf_aggregate_size(&type, &each) < 0 || !each)
		return;
	for (uint64_t i = 0; i < whole / each && i < ELEMENTS_MAX; i++) {
		uint32_t before = w->n_slots;

		flatten(w, &type, off + i * each, meant, depth + 1);
		if (w->n_slots == before)
			return;
	}
}

static bool is_end(const char *name)
{
	for (size_t i = 0; name && i < sizeof(ends) / sizeof(*ends); i++)
		if (strcmp(name, ends[i]) == 0)
			return true;
	return false;
}

static void flatten_members(struct writer *w, Dwarf_Die *whole, uint64_t off, struct meant meant,
			    int depth)
{
	Dwarf_Die child, type;

	if (depth > DEPTH_MAX || dwarf_child(whole, &child) != 0)
		return;
	do {
		int tag = dwarf_tag(&child);
		const char *name = dwarf_diename(&child);
		struct meant of_member = meant;
		Dwarf_Attribute attr;
		Dwarf_Word at = 0;

		/* What a Rust enum may be: pointers of all that lie at places of their own. */
		if (tag == DW_TAG_variant_part || tag == DW_TAG_variant) {
			flatten_members(w, &child, off, meant, depth + 1);
			continue;
		}
		if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
		    dwarf_hasattr(&child, DW_AT_external) ||
		    dwarf_hasattr(&child, DW_AT_data_bit_offset) || is_end(name) ||
		    (dwarf_attr(&child, DW_AT_data_member_location, &attr) &&
		     dwarf_formudata(&attr, &at) < 0) ||
		    !dwarf_type_of(&child, &type))
			continue;
		if (meant.in && name && strncmp(name, meant.in, strlen(meant.in)) == 0)
			of_member.inside = true;
		flatten(w, &type, off + at, of_member, depth + 1);
	} while (dwarf_siblingof(&child, &child) == 0);
}

static void flatten_struct(struct writer *w, Dwarf_Die *die, uint64_t off, struct meant meant,
			   int depth)
{
	const struct container *c = container_of(die);
	Dwarf_Die element;

	if (c && param_of(die, c->param, &element)) {
		if (c->kind == EMBEDDED) {
			flatten(w, &element, off + c->value, meant, depth + 1);
			return;
		}
		meant = (struct meant){ .in = c->in, .kind = DWARF_SLOT_POINTER };
		if (c->kind == BEHIND)
			meant.kind = DWARF_SLOT_BEFORE;
		meant.name =
			c->kind == NODES ? name_nodes(w, c, &element) : name_of(w, &element, 0);
		/* Of bytes, or of what has no name. */
		if (!meant.name)
			return;
	}
	flatten_members(w, die, off, meant, depth);
}

static void flatten(struct writer *w, Dwarf_Die *type, uint64_t off, struct meant meant, int depth)
{
	Dwarf_Die die = *type, to;
	int tag;

	if (depth > DEPTH_MAX || off > OFFSET_MAX || !dwarf_type_strip(&die, true))
		return;
	tag = dwarf_tag(&die);
	if (is_pointer(tag) && meant.name && (!meant.in || meant.inside))
		add_slot(w, off, meant.name, meant.kind);
	else if (is_pointer(tag) && !meant.name && dwarf_type_of(&die, &to))
		add_slot(w, off, name_of(w, &to, 0), DWARF_SLOT_POINTER);
	else if (is_struct(tag))
		flatten_struct(w, &die, off, meant, depth);
	else if (tag == DW_TAG_array_type)
		flatten_array(w, &die, off, meant, depth);
}

/* --- layouts --- */

static int by_place(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

/* Members of a union that lie at one place and point to different things: neither is believed. */
static void drop_conflicts(struct writer *w)
{
	uint32_t n = 0;

	if (w->n_slots)
		qsort(w->slots, w->n_slots, sizeof(*w->slots), by_place);
	for (uint32_t i = 0, next; i < w->n_slots; i = next) {
		bool same = true;

		for (next = i + 1; next < w->n_slots && w->slots[next].off == w->slots[i].off;
		     next++)
			same &= w->slots[next].name == w->slots[i].name;
		if (same)
			w->slots[n++] = w->slots[i];
	}
	w->n_slots = n;
}

static void put_layout(struct writer *w, uint32_t number, uint64_t bytes, uint32_t head)
{
	struct written *known;
	uint64_t hash;

	drop_conflicts(w);
	while (w->n_slots && w->slots[w->n_slots - 1].off + 8ULL > bytes)
		w->n_slots--;
	hash = content_hash(w->slots, w->n_slots * sizeof(*w->slots));
	HASH_FIND(hh, w->written, &number, sizeof(number), known);
	if (known && known->bytes == bytes && known->hash == hash)
		return;
	if (!known) {
		known = hash_new(w->written, number, &number);
		if (!known)
			return;
		known->bytes = bytes;
		known->hash = hash;
	}
	dwarf_out_u8(&w->out, 'L');
	dwarf_out_u32(&w->out, number);
	dwarf_out_put(&w->out, &bytes, 8);
	dwarf_out_u32(&w->out, head == number ? 0 : head);
	dwarf_out_u32(&w->out, w->n_slots);
	for (uint32_t i = 0; i < w->n_slots; i++) {
		dwarf_out_u32(&w->out, w->slots[i].off);
		dwarf_out_u32(&w->out, w->slots[i].name);
		dwarf_out_u8(&w->out, (char)w->slots[i].kind);
	}
}

/* The struct that it begins with; 0: none. */
static uint32_t head_of(struct writer *w, Dwarf_Die *whole)
{
	Dwarf_Die child, type;

	if (!is_struct(dwarf_tag(whole)) || dwarf_tag(whole) == DW_TAG_union_type ||
	    dwarf_child(whole, &child) != 0)
		return 0;
	do {
		Dwarf_Attribute attr;
		Dwarf_Word at = 0;
		int tag = dwarf_tag(&child);

		if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
		    !dwarf_attr(&child, DW_AT_data_member_location, &attr) ||
		    dwarf_formudata(&attr, &at) < 0 || at || !dwarf_type_of(&child, &type) ||
		    !dwarf_type_strip(&type, true))
			continue;
		if (is_struct(dwarf_tag(&type)))
			return name_of(w, &type, 0);
	} while (dwarf_siblingof(&child, &child) == 0);
	return 0;
}

static void write_type(struct writer *w, struct todo *t)
{
	const struct meant as_said = { 0 };
	Dwarf_Word bytes = POINTER;

	w->n_slots = 0;
	if (!is_pointer(dwarf_tag(&t->die)) || t->nodes_of)
		if (dwarf_aggregate_size(&t->die, &bytes) < 0 || !bytes)
			return;
	if (t->nodes_of) {
		for (uint32_t i = 0; i < 8; i++)
			if (t->nodes_of->links >> i & 1)
				add_slot(w, POINTER * i, t->number, DWARF_SLOT_POINTER);
		flatten(w, &t->die, t->nodes_of->value, as_said, 0);
		bytes += t->nodes_of->value;
	} else {
		flatten(w, &t->die, 0, as_said, 0);
	}
	put_layout(w, t->number, bytes, t->nodes_of ? 0 : head_of(w, &t->die));
}

/* --- units --- */

static void note_variable(struct writer *w, const Dwarf_Die *die)
{
	if (w->n_variables == w->room_variables) {
		uint32_t room = w->room_variables ? 2 * w->room_variables : 256;
		Dwarf_Die *more = reallocarray(w->variables, room, sizeof(*more));

		if (!more)
			return;
		w->variables = more;
		w->room_variables = room;
	}
	w->variables[w->n_variables++] = *die;
}

static void visit(struct writer *w, Dwarf_Die *parent, const char *scope, int depth)
{
	Dwarf_Die child;

	if (depth > DEPTH_MAX || dwarf_child(parent, &child) != 0)
		return;
	do {
		int tag = dwarf_tag(&child);
		const char *own = dwarf_diename(&child);
		char name[NAME_BYTES];

		if (tag == DW_TAG_variable) {
			note_variable(w, &child);
		} else if (tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block) {
			visit(w, &child, scope, depth + 1);
		} else if (own && (is_struct(tag) || tag == DW_TAG_namespace) &&
			   snprintf(name, sizeof(name), "%s%s%s", scope, *scope ? "::" : "", own) <
				   (int)sizeof(name)) {
			if (is_struct(tag))
				note_type(w, &child, name);
			visit(w, &child, name, depth + 1);
		} else if (tag == DW_TAG_namespace) {
			visit(w, &child, scope, depth + 1);
		}
	} while (dwarf_siblingof(&child, &child) == 0);
}

static void write_variable(struct writer *w, Dwarf_Die *variable)
{
	Dwarf_Attribute attr;
	Dwarf_Die type;
	Dwarf_Op *ops;
	uint64_t vaddr;
	uint32_t name;
	size_t n;

	if (!dwarf_attr_integrate(variable, DW_AT_location, &attr) ||
	    dwarf_getlocation(&attr, &ops, &n) < 0 || n != 1 ||
	    !dwarf_type_address(&attr, &ops[0], &vaddr) || !dwarf_type_of(variable, &type))
		return;
	name = name_of(w, &type, 0);
	if (!name && dwarf_type_strip(&type, true) &&
	    (is_struct(dwarf_tag(&type)) || dwarf_tag(&type) == DW_TAG_array_type)) {
		char text[64];

		snprintf(text, sizeof(text), "(unnamed at %llx)",
			 (unsigned long long)dwarf_dieoffset(&type));
		name = dwarf_out_string(&w->out, text);
		if (name)
			add_todo(w, &type, name, NULL);
	}
	if (!name)
		return;
	dwarf_out_u8(&w->out, 'V');
	dwarf_out_put(&w->out, &vaddr, 8);
	dwarf_out_u32(&w->out, name);
}

static void write_unit(struct writer *w, Dwarf_Die *unit)
{
	w->n_todo = w->n_variables = 0;
	visit(w, unit, "", 0);
	for (uint32_t i = 0; i < w->n_variables; i++)
		write_variable(w, &w->variables[i]);
	/* It grows meanwhile. */
	for (uint32_t i = 0; i < w->n_todo && i < DWARF_LAYOUTS_MAX; i++) {
		struct todo t = w->todo[i];

		write_type(w, &t);
	}
	hash_free(w->named);
	w->named = NULL;
}

static struct writer *whose_libdw;

static __attribute__((noreturn)) void libdw_out_of_memory(void)
{
	dwarf_out_flush(&whose_libdw->out);
	_exit(0);
}

static int write_all(struct writer *w, Elf *elf, Elf *alt)
{
	Dwarf *dwz = alt ? dwarf_begin_elf(alt, DWARF_C_READ, NULL) : NULL;
	Dwarf *dbg = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	Dwarf_Half version;
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;
	uint8_t type;

	if (dbg) {
		dwarf_new_oom_handler(dbg, libdw_out_of_memory);
		if (dwz) {
			dwarf_new_oom_handler(dwz, libdw_out_of_memory);
			dwarf_setalt(dbg, dwz);
		}
		while (dwarf_get_units(dbg, cu, &cu, &version, &type, &unit, NULL) == 0)
			if (type == DW_UT_compile || type == DW_UT_partial)
				write_unit(w, &unit);
		dwarf_end(dbg);
	}
	dwarf_end(dwz);
	return dbg ? 0 : -ENOENT;
}

void dwarf_members_write(struct elf_file *elf, struct elf_file *alt, int spill, int out)
{
	struct dwarf_source main = { 0 }, shared = { 0 };
	struct dwarf_room room = { .fd = spill };
	struct writer *w = calloc(1, sizeof(*w));
	int32_t code;

	if (!w)
		return;
	whose_libdw = w;
	w->out.fd = out;
	elf_version(EV_CURRENT);
	code = dwarf_source_open(elf, &room, true, &main);
	if (code == 0 && alt)
		dwarf_source_open(alt, &room, true, &shared);
	if (code == 0)
		code = write_all(w, main.elf, shared.elf);
	if (code == 0 && w->out.short_of_memory)
		code = -ENOMEM;
	dwarf_out_u8(&w->out, 'E');
	dwarf_out_u32(&w->out, (uint32_t)code);
	dwarf_out_flush(&w->out);
	/* For tests; the child is about to end. */
	dwarf_source_close(&main);
	dwarf_source_close(&shared);
	dwarf_out_fini(&w->out);
	hash_free(w->written);
	free(w->todo);
	free(w->variables);
	free(w);
}
