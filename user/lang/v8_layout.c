#include "lang/v8.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define VERSION(major, minor) ((uint32_t)(major) << 16 | (minor))
#define FIELD(f)              offsetof(struct v8_rt, f), sizeof(((struct v8_rt *)NULL)->f)
#define NEEDED                -1
#define OF_VERSION            -2 /* as its row says */

/* Constants, by the names that versions have for them; the first that is there counts. */
static const struct constant {
	size_t at, bytes;
	const char *names[V8_CANDIDATES];
	int fallback;
} constants[] = {
	{ FIELD(map_type), { "class_Map__instance_type__uint16_t" }, 12 },
	{ FIELD(type_function),
	  { "FirstJSFunctionType", "type_JSFunction__JS_FUNCTION_TYPE" },
	  NEEDED },
	{ FIELD(type_function_last), { "LastJSFunctionType" }, 0 },
	{ FIELD(type_bytecodes), { "type_BytecodeArray__BYTECODE_ARRAY_TYPE" }, NEEDED },
	{ FIELD(type_shared), { "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE" }, NEEDED },
	{ FIELD(type_scope), { "type_ScopeInfo__SCOPE_INFO_TYPE" }, NEEDED },
	{ FIELD(type_script), { "type_Script__SCRIPT_TYPE" }, NEEDED },
	{ FIELD(type_code), { "type_Code__CODE_TYPE" }, NEEDED },
	{ FIELD(type_array), { "type_FixedArray__FIXED_ARRAY_TYPE" }, NEEDED },
	{ FIELD(function_shared),
	  { "class_JSFunction__shared__SharedFunctionInfo",
	    "class_JSFunction__shared__Tagged_SharedFunctionInfo_" },
	  24 },
	{ FIELD(shared_data),
	  { "class_SharedFunctionInfo__function_data__Object",
	    "class_SharedFunctionInfo__function_data__Tagged_Object_",
	    "class_SharedFunctionInfo__trusted_function_data__Tagged_Object_" },
	  8 },
	{ FIELD(shared_name),
	  { "class_SharedFunctionInfo__name_or_scope_info__Object",
	    "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
	    "class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_" },
	  NEEDED },
	{ FIELD(shared_script),
	  { "class_SharedFunctionInfo__script_or_debug_info__HeapObject",
	    "class_SharedFunctionInfo__script_or_debug_info__Object",
	    "class_SharedFunctionInfo__script__Tagged_HeapObject_" },
	  NEEDED },
	{ FIELD(shared_numbers), { "class_SharedFunctionInfo__length__uint16_t" }, NEEDED },
	{ FIELD(script_name),
	  { "class_Script__name__Object", "class_Script__name__Tagged_Object_" },
	  16 },
	{ FIELD(script_source),
	  { "class_Script__source__Object", "class_Script__source__Tagged_Object_" },
	  8 },
	{ FIELD(script_lines),
	  { "class_Script__line_ends__Object", "class_Script__line_ends__Tagged_Object_" },
	  56 },
	{ FIELD(bytecodes_positions),
	  { "class_BytecodeArray__source_position_table__Object",
	    "class_BytecodeArray__source_position_table__HeapObject",
	    "class_BytecodeArray__source_position_table__Tagged_HeapObject_" },
	  OF_VERSION },
	{ FIELD(code_stream),
	  { "class_Code__instruction_stream__Tagged_InstructionStream_" },
	  OF_VERSION },
	{ FIELD(code_start), { "class_Code__instruction_start__Address" }, OF_VERSION },
	{ FIELD(code_size), { "class_Code__instruction_size__int" }, OF_VERSION },
	{ FIELD(code_flags), { "class_Code__flags__uint32_t" }, OF_VERSION },
	{ FIELD(bytecodes_data), { "class_BytecodeArray__data__uintptr_t" }, 54 },
	{ FIELD(array_length), { "class_FixedArrayBase__length__SMI" }, 8 },
	{ FIELD(array_data), { "class_FixedArray__data__uintptr_t" }, 16 },
	{ FIELD(scope_locals_ix), { "scopeinfo_idx_ncontextlocals" }, 2 },
	{ FIELD(scope_first_ix), { "scopeinfo_idx_first_vars" }, 3 },
	{ FIELD(kind_mask), { "CodeKindFieldMask" }, 15 },
	{ FIELD(kind_baseline), { "CodeKindBaseline" }, 11 },
	{ FIELD(deopt_literals), { "DeoptimizationDataLiteralArrayIndex" }, 2 },
	{ FIELD(deopt_shared),
	  { "DeoptimizationDataSharedFunctionInfoIndex",
	    "DeoptimizationDataSharedFunctionInfoWrapperIndex",
	    "DeoptimizationDataWrappedSharedFunctionInfoIndex" },
	  6 },
	{ FIELD(deopt_positions), { "DeoptimizationDataInliningPositionsIndex" }, 7 },
	{ FIELD(frame_regexp), { "frametype_IrregexpFrame" }, 0 },
	{ FIELD(frame_exit), { "frametype_BuiltinExitFrame" }, 0 },
};

/* What no constant says, or not rightly, of the versions that node has had. */
static const struct version_row {
	uint32_t version;         /* this and later ones */
	uint8_t n_function_types; /* JSFunction and derived types */
	uint16_t bytecodes_positions;
	uint16_t code_header, code_stream, code_start, code_deopt, code_positions, code_size,
		code_flags;
	bool untested;
} rows[] = {
	{ VERSION(13, 6), 17, 24, 0, 32, 40, 8, 16, 56, 52, false },  /* node 24 */
	{ VERSION(12, 4), 17, 24, 0, 32, 40, 8, 16, 52, 48, false },  /* node 22 */
	{ VERSION(11, 3), 16, 32, 0, 32, 40, 16, 24, 56, 48, false }, /* node 20 */
	{ VERSION(10, 2), 16, 32, 128, 0, 0, 16, 24, 40, 48, false }, /* node 18 */
	{ VERSION(9, 4), 15, 32, 96, 0, 0, 16, 24, 40, 48, false },   /* node 16 */
};

static int read_constant(struct elf_file *elf, const struct constant *c, int *ret_value)
{
	*ret_value = c->fallback;
	for (int i = 0; i < V8_CANDIDATES && c->names[i]; i++) {
		struct elf_export sym;
		char name[ELF_EXPORTS_NAME_MAX];
		int32_t value;

		snprintf(name, sizeof(name), "v8dbg_%s", c->names[i]);
		if (elf_export_find(elf, name, &sym, NULL) < 0 ||
		    !elf_file_read_vaddr(elf, sym.vaddr, &value, sizeof(value)))
			continue;
		*ret_value = value;
		return 0;
	}
	return c->fallback == NEEDED ? -ENOENT : 0;
}

static void put(struct v8_rt *rt, const struct constant *c, int value)
{
	uint16_t wide = (uint16_t)value;
	uint8_t narrow = (uint8_t)value;

	memcpy((char *)rt + c->at, c->bytes == 1 ? (void *)&narrow : (void *)&wide, c->bytes);
}

/*
 * Bytes of operands of each bytecode (src/interpreter/bytecodes.h), a digit each, where they are not exported: those that are as
 * wide as the bytecode says, and others.
 */
static const struct operand_row {
	uint32_t version; /* of this version alone */
	const char *scaled, *fixed;
} operands[] = {
	{ VERSION(13, 6),
	  "0000012342310100000133311112111000022231311333133313324223333332222222"
	  "2222222222222222211110011113443454234423224422222222201110022012022212"
	  "22200031111111111311111111111133124100001001343301100000000000000000",
	  "0000000002200000000000000000000000100000000000000010000000001010000000"
	  "0000000000000000000000000000000000000022110000000000000000021001010100"
	  "00000000000000000000000000000000000000000000000000000000000000000000" },
};

static void known_sizes(uint32_t version, struct v8_rt *rt)
{
	for (size_t i = 0; i < sizeof(operands) / sizeof(operands[0]); i++) {
		const struct operand_row *o = &operands[i];

		if (o->version != version)
			continue;
		rt->n_bytecodes = (uint16_t)strlen(o->scaled);
		for (uint16_t op = 0; op < rt->n_bytecodes; op++)
			for (int scale = 0; scale < 3; scale++)
				rt->bytecode_size[scale][op] =
					(uint8_t)(1 + (o->fixed[op] - '0') +
						  ((o->scaled[op] - '0') << scale));
	}
}

/* kBytecodeSizes: of each bytecode, with operands of one, two and four bytes. */
static void read_sizes(struct elf_file *elf, struct v8_rt *rt)
{
	struct elf_export sym;
	uint8_t sizes[3 * 256];
	size_t n;

	if (elf_export_find(elf, "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE", &sym,
			    NULL) < 0)
		return;
	n = sym.size / 3;
	if (n < 8 || n > 256 || sym.size % 3 ||
	    !elf_file_read_vaddr(elf, sym.vaddr, sizes, sym.size))
		return;
	for (size_t i = 0; i < 3; i++)
		memcpy(rt->bytecode_size[i], sizes + i * n, n);
	rt->n_bytecodes = (uint16_t)n;
}

int v8_layout_read(struct elf_file *elf, uint32_t version, struct v8_image *ret_v8, struct err *e)
{
	const struct version_row *row = rows;
	struct v8_rt rt = { 0 };
	struct elf_export sym;
	int value, r;

	while (row->version > version)
		if (++row == rows + sizeof(rows) / sizeof(rows[0]))
			return err_set(
				e, -EOPNOTSUPP,
				"%s: V8 %u.%u is older than those whose frames are known (from 9.4 on)",
				elf_file_name(elf), version >> 16, version & 0xffff);
	rt.bytecodes_positions = row->bytecodes_positions;
	rt.code_header = row->code_header;
	rt.code_stream = row->code_stream;
	rt.code_start = row->code_start;
	rt.code_deopt = row->code_deopt;
	rt.code_positions = row->code_positions;
	rt.code_size = row->code_size;
	rt.code_flags = row->code_flags;
	rt.deopts = v8_deopt_layout(version);
	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
		r = read_constant(elf, &constants[i], &value);
		if (r < 0)
			return err_set(
				e, -EOPNOTSUPP,
				"%s: V8 %u.%u does not export v8dbg_%s, which says where its frames are",
				elf_file_name(elf), version >> 16, version & 0xffff,
				constants[i].names[0]);
		if (value != OF_VERSION &&
		    (value < 0 || value >= (constants[i].bytes == 1 ? 256 : 1 << 15)))
			return err_set(e, -EOPNOTSUPP, "%s: v8dbg_%s is %d", elf_file_name(elf),
				       constants[i].names[0], value);
		if (value != OF_VERSION)
			put(&rt, &constants[i], value);
	}
	if (!rt.type_function_last)
		rt.type_function_last = (uint16_t)(rt.type_function + row->n_function_types - 1);
	rt.scope_locals = (uint16_t)(8 + 8 * rt.scope_locals_ix);
	rt.scope_first = (uint16_t)(8 + 8 * rt.scope_first_ix);
	if (row->code_header &&
	    elf_export_find(elf, "v8dbg_class_Code__instruction_start__uintptr_t", &sym, NULL) ==
		    0 &&
	    elf_file_read_vaddr(elf, sym.vaddr, &value, sizeof(value)) && value > 0 && value < 4096)
		rt.code_header = (uint16_t)value;
	rt.kind_regexp = 3;
	if (rt.function_shared % 8 || rt.function_shared > MS_LANG_BYTES - 8 ||
	    rt.shared_numbers % 8)
		return err_set(e, -EOPNOTSUPP,
			       "%s: describes objects that do not hold their fields",
			       elf_file_name(elf));
	known_sizes(version, &rt);
	read_sizes(elf, &rt);
	ret_v8->rt = rt;
	ret_v8->untested = row->untested || row->version != version;
	return 0;
}
