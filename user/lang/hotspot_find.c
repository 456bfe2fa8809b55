/*
 * HotSpot in a process: where its code heaps are, where in them the interpreter is, and the layout of what the walk
 * and the decoder read.
 */
#include "lang/hotspot.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	CODELETS_MAX = 4096,
	DESCRIPTION_MAX = 64,
	SEGMENT_SHIFT_MIN = 5,
	SEGMENT_SHIFT_MAX = 12,
	BCP_8 = 56, /* frame_x86.hpp: interpreter_frame_bcp_offset is -7 words in JDK 8, and -8 since */
	BCP = 64,
	VERSION_8 = 8,
	VERSION_UNSIGNED5 = 20, /* numbers without zeros */
	VERSION_OLDEST = 8,
	VERSION_NEWEST = 25,
};

struct find {
	const struct lang_mapped *runtime;
	const struct lang_memory *mem;
	struct hotspot_layout l;
	struct lang_runtime rt;
	uint32_t jdk;
};

static uint64_t off(const struct find *f, enum hotspot_field field)
{
	return f->l.field[field].at;
}

static bool has(const struct find *f, enum hotspot_field field)
{
	return f->l.field[field].bytes;
}

/* A number at `at` of as many bytes as the field has; false: it cannot be read. */
static bool number_at(const struct find *f, uint64_t at, enum hotspot_field field,
		      uint64_t *ret_number)
{
	uint8_t bytes = f->l.field[field].bytes;

	*ret_number = 0;
	return bytes <= 8 && lang_read(f->mem, at, ret_number, bytes);
}

static bool field_at(const struct find *f, uint64_t object, enum hotspot_field field,
		     uint64_t *ret_number)
{
	return number_at(f, object + off(f, field), field, ret_number);
}

static int not_ready(const struct find *f, struct err *e)
{
	return err_set(e, -EAGAIN, "%s has not been initialized", f->rt.name);
}

/* --- its version --- */

static int find_version(struct find *f, struct err *e)
{
	uint64_t major = 0, minor = 0, security = 0;

	if (has(f, HS_Abstract_VM_Version_vm_major_version) &&
	    !number_at(f, off(f, HS_Abstract_VM_Version_vm_major_version),
		       HS_Abstract_VM_Version_vm_major_version, &major))
		return not_ready(f, e);
	if (has(f, HS_Abstract_VM_Version_vm_security_version))
		number_at(f, off(f, HS_Abstract_VM_Version_vm_security_version),
			  HS_Abstract_VM_Version_vm_security_version, &security);
	if (has(f, HS_Abstract_VM_Version_vm_minor_version))
		number_at(f, off(f, HS_Abstract_VM_Version_vm_minor_version),
			  HS_Abstract_VM_Version_vm_minor_version, &minor);
	/* HotSpot of JDK 8 has a version of its own, 25. */
	f->jdk = f->l.has_heaps ? (uint32_t)major : VERSION_8;
	if (f->jdk < VERSION_OLDEST || f->jdk > 255)
		return err_set(e, -EOPNOTSUPP, "%s: has HotSpot, but its version is not known",
			       f->runtime->image->name);
	f->rt.version = f->jdk << 16 | ((uint32_t)minor & 0xff) << 8 | ((uint32_t)security & 0xff);
	if (f->l.has_heaps)
		snprintf(f->rt.name, sizeof(f->rt.name), "HotSpot %u.%u.%u", f->jdk,
			 (uint32_t)minor & 0xff, (uint32_t)security & 0xff);
	else
		snprintf(f->rt.name, sizeof(f->rt.name), "HotSpot %u", f->jdk);
	return 0;
}

/* --- code heaps --- */

static int take_heap(struct find *f, uint64_t heap, struct err *e)
{
	struct ms_lang_row *row = &f->rt.row;
	uint64_t low, high, map, map_high, shift;
	uint64_t memory = heap + off(f, HS_CodeHeap_memory),
		 segments = heap + off(f, HS_CodeHeap_segmap);

	if (!field_at(f, memory, HS_VirtualSpace_low_boundary, &low) ||
	    !field_at(f, memory, HS_VirtualSpace_high_boundary, &high) ||
	    !field_at(f, segments, HS_VirtualSpace_low_boundary, &map) ||
	    !field_at(f, segments, HS_VirtualSpace_high_boundary, &map_high) ||
	    !field_at(f, heap, HS_CodeHeap_log2_segment_size, &shift) || !low || !map)
		return not_ready(f, e);
	if (row->n_ranges == MS_LANG_RANGES)
		return err_set(e, -EOPNOTSUPP, "%s has more code heaps than %d", f->rt.name,
			       MS_LANG_RANGES);
	if (high <= low || shift < SEGMENT_SHIFT_MIN || shift > SEGMENT_SHIFT_MAX ||
	    map_high < map || map_high - map < (high - low) >> shift ||
	    (row->n_ranges && row->hotspot.segment_shift != shift))
		return err_set(e, -EOPNOTSUPP,
			       "%s: its code heaps do not look like those of HotSpot", f->rt.name);
	row->range[row->n_ranges].start = low;
	row->range[row->n_ranges].end = high;
	row->hotspot.segments[row->n_ranges] = map;
	row->hotspot.segment_shift = (uint8_t)shift;
	row->n_ranges++;
	return 0;
}

static int find_heaps(struct find *f, struct err *e)
{
	bool new_array = has(f, HS_GrowableArrayBase_len);
	uint64_t heap, array, n, data;
	int r = 0;

	if (!f->l.has_heaps) {
		if (!number_at(f, off(f, HS_CodeCache_heap), HS_CodeCache_heap, &heap) || !heap)
			return not_ready(f, e);
		return take_heap(f, heap, e);
	}
	if (!new_array && !has(f, HS_GenericGrowableArray_len))
		return err_set(e, -EOPNOTSUPP, "%s: its description has no GrowableArray",
			       f->rt.name);
	if (!number_at(f, off(f, HS_CodeCache_heaps), HS_CodeCache_heaps, &array) || !array ||
	    !field_at(f, array, new_array ? HS_GrowableArrayBase_len : HS_GenericGrowableArray_len,
		      &n) ||
	    !n || !field_at(f, array, HS_GrowableArray_data, &data) || !data)
		return not_ready(f, e);
	for (uint64_t i = 0; i < n && r == 0; i++) {
		if (!lang_read(f->mem, data + 8 * i, &heap, sizeof(heap)) || !heap)
			return not_ready(f, e);
		r = take_heap(f, heap, e);
	}
	return r;
}

/* --- the interpreter --- */

static int find_interpreter(struct find *f, struct err *e)
{
	struct ms_hotspot *h = &f->rt.row.hotspot;
	uint64_t queue, buffer, limit, begin = 0, end, size, text, call_stub;
	char description[DESCRIPTION_MAX] = "";

	if (!number_at(f, off(f, HS_AbstractInterpreter_code), HS_AbstractInterpreter_code,
		       &queue) ||
	    !queue || !field_at(f, queue, HS_StubQueue_stub_buffer, &buffer) || !buffer ||
	    !field_at(f, queue, HS_StubQueue_buffer_limit, &limit) ||
	    !field_at(f, queue, HS_StubQueue_queue_end, &end) || !end || end > limit)
		return not_ready(f, e);
	h->interpreter = buffer;
	h->interpreter_end = buffer + limit;
	for (int i = 0; i < CODELETS_MAX && begin < end; i++, begin += size) {
		uint64_t at = buffer + begin;

		if (!field_at(f, at, HS_InterpreterCodelet_size, &size) ||
		    !field_at(f, at, HS_InterpreterCodelet_description, &text))
			return not_ready(f, e);
		if (size < 16 || size > end - begin || size % 8)
			return err_set(e, -EOPNOTSUPP, "%s: its interpreter is not as described",
				       f->rt.name);
		if (!text || !lang_read(f->mem, text, description, sizeof(description) - 1) ||
		    (strncmp(description, "method entry point", 18) != 0 &&
		     strncmp(description, "native method entry point", 25) != 0))
			continue;
		if (!h->entries)
			h->entries = at;
		h->entries_end = at + size;
	}
	/* They come last. */
	if (!h->entries ||
	    !number_at(f, off(f, HS_StubRoutines_call_stub_return_address),
		       HS_StubRoutines_call_stub_return_address, &call_stub) ||
	    !call_stub)
		return not_ready(f, e);
	h->call_stub = call_stub;
	return 0;
}

/* --- layouts --- */

static struct ms_field field(const struct find *f, enum hotspot_field is, enum ms_field_from from)
{
	const struct hotspot_field_at *at = &f->l.field[is];

	return (struct ms_field){ (uint16_t)at->at, at->bytes, (uint8_t)from };
}

/* The first of them that there is. */
static struct ms_field first(const struct find *f, enum hotspot_field a, enum hotspot_field b)
{
	return field(f, has(f, a) ? a : b, MS_FROM_NOTHING);
}

static void fill_walk(struct find *f)
{
	struct ms_hotspot *h = &f->rt.row.hotspot;
	uint32_t bytes = f->l.size[HS_nmethod];

	h->name = field(f, HS_CodeBlob_name, MS_FROM_NOTHING);
	h->code = has(f, HS_CodeBlob_code_begin) ? field(f, HS_CodeBlob_code_begin, MS_FROM_NOTHING)
						 : field(f, HS_CodeBlob_code_offset, MS_FROM_BLOB);
	h->frame_words = field(f, HS_CodeBlob_frame_size, MS_FROM_NOTHING);
	h->entry = has(f, HS_nmethod_verified_entry_point)
			   ? field(f, HS_nmethod_verified_entry_point, MS_FROM_NOTHING)
			   : field(f, HS_nmethod_verified_entry_offset, MS_FROM_CODE);
	h->deopt = has(f, HS_nmethod_deopt_handler_offset)
			   ? field(f, HS_nmethod_deopt_handler_offset, MS_FROM_BLOB)
		   : has(f, HS_nmethod_deoptimize_offset)
			   ? field(f, HS_nmethod_deoptimize_offset, MS_FROM_BLOB)
			   : first(f, HS_CompiledMethod_deopt_handler_begin,
				   HS_nmethod_deopt_handler_begin);
	h->deopt_mh = has(f, HS_nmethod_deopt_mh_handler_offset)
			      ? field(f, HS_nmethod_deopt_mh_handler_offset, MS_FROM_BLOB)
			      : first(f, HS_CompiledMethod_deopt_mh_handler_begin,
				      HS_nmethod_deopt_mh_handler_begin);
	h->original_pc = field(f, HS_nmethod_orig_pc_offset, MS_FROM_NOTHING);
	h->compile_id = field(f, HS_nmethod_compile_id, MS_FROM_NOTHING);
	h->blob_bytes = (uint16_t)((bytes + 7) & ~7u);
	h->runtime_bytes = (uint16_t)((f->l.size[HS_CodeBlob] + 7) & ~7u);
	h->block_bytes = (uint8_t)f->l.size[HS_HeapBlock];
	h->method_const = (uint16_t)off(f, HS_Method_constMethod);
	h->const_bytes = (uint16_t)f->l.size[HS_ConstMethod];
	h->const_code_bytes = (uint16_t)off(f, HS_ConstMethod_code_size);
	h->bcp = f->jdk == VERSION_8 ? BCP_8 : BCP;
}

static void fill_decoder(struct find *f)
{
	struct hotspot_rt *d = &f->rt.hotspot;
	const struct ms_hotspot *h = &f->rt.row.hotspot;

	d->name = h->name;
	d->code = h->code;
	d->compile_id = h->compile_id;
	d->blob_bytes = h->blob_bytes;
	d->runtime_bytes = h->runtime_bytes;
	d->method = first(f, HS_nmethod_method, HS_CompiledMethod_method);
	d->pcs = field(f, HS_nmethod_scopes_pcs_offset, MS_FROM_NOTHING);
	d->data = field(f, HS_CodeBlob_data_offset, MS_FROM_NOTHING);
	d->mutable_data = field(f, HS_CodeBlob_mutable_data, MS_FROM_NOTHING);
	d->relocation = field(f, HS_CodeBlob_relocation_size, MS_FROM_NOTHING);
	d->immutable = field(f, HS_nmethod_immutable_data, MS_FROM_NOTHING);
	d->immutable_bytes = field(f, HS_nmethod_immutable_data_size, MS_FROM_NOTHING);
	if (d->immutable.bytes) {
		/* 23 and later: the scopes' data lies behind the PcDescs, in a block of its own. */
		d->pcs_from = d->scopes_from = HOTSPOT_FROM_IMMUTABLE;
		d->scopes = d->pcs_end = field(f, HS_nmethod_scopes_data_offset, MS_FROM_NOTHING);
	} else {
		/* Before them. */
		d->pcs_from = HOTSPOT_FROM_HEADER;
		d->pcs_end = field(f, HS_nmethod_dependencies_offset, MS_FROM_NOTHING);
		d->scopes_from = has(f, HS_nmethod_scopes_data_offset) ? HOTSPOT_FROM_HEADER
								       : HOTSPOT_FROM_NOTHING;
		d->scopes = has(f, HS_nmethod_scopes_data_offset)
				    ? field(f, HS_nmethod_scopes_data_offset, MS_FROM_NOTHING)
				    : first(f, HS_CompiledMethod_scopes_data_begin,
					    HS_nmethod_scopes_data_begin);
		d->scopes_end = d->pcs;
	}
	d->metadata = field(f, HS_nmethod_metadata_offset, MS_FROM_NOTHING);
	/* 24 has it in 2 bytes, from the data on. */
	d->metadata_from = d->mutable_data.bytes    ? HOTSPOT_FROM_MUTABLE
			   : d->metadata.bytes == 2 ? HOTSPOT_FROM_DATA
						    : HOTSPOT_FROM_HEADER;
	d->pc_bytes = (uint16_t)f->l.size[HS_PcDesc];
	d->pc_offset = (uint16_t)off(f, HS_PcDesc_pc_offset);
	d->pc_scope = (uint16_t)off(f, HS_PcDesc_scope_decode_offset);
	d->method_const = h->method_const;
	d->const_constants = (uint16_t)off(f, HS_ConstMethod_constants);
	d->const_words = (uint16_t)off(f, HS_ConstMethod_constMethod_size);
	d->const_code = (uint16_t)off(f, HS_ConstMethod_code_size);
	d->const_name = (uint16_t)off(f, HS_ConstMethod_name_index);
	d->const_bytes = (uint16_t)f->l.size[HS_ConstMethod];
	d->pool_holder = (uint16_t)off(f, HS_ConstantPool_pool_holder);
	d->pool_length = (uint16_t)off(f, HS_ConstantPool_length);
	d->pool_file = (uint16_t)off(f, HS_ConstantPool_source_file_name_index);
	d->pool_bytes = (uint16_t)f->l.size[HS_ConstantPool];
	d->klass_constants = (uint16_t)off(f, HS_InstanceKlass_constants);
	d->klass_file = (uint16_t)off(f, HS_InstanceKlass_source_file_name_index);
	d->klass_has_file = !has(f, HS_ConstantPool_source_file_name_index);
	d->klass_name = (uint16_t)off(f, HS_Klass_name);
	d->symbol_length = (uint16_t)off(f, HS_Symbol_length);
	d->symbol_body = (uint16_t)off(f, HS_Symbol_body);
	d->no_zeros = f->jdk >= VERSION_UNSIGNED5;
}

/* Who waits for a monitor and who has it: not all versions say where that is. */
static void fill_threads(struct find *f)
{
	enum hotspot_field os =
		has(f, HS_Thread_osthread) ? HS_Thread_osthread : HS_JavaThread_osthread;
	const struct hotspot_field_at *at = f->l.field;
	__typeof__(f->rt.hotspot.threads) *t = &f->rt.hotspot.threads;

	t->by_id = at[HS_JavaThread_monitor_owner_id].bytes == 8;
	t->known = at[HS_ThreadsSMRSupport_java_thread_list].is_static &&
		   at[HS_ThreadsList_length].bytes == 4 && at[HS_ThreadsList_threads].bytes == 8 &&
		   at[os].bytes == 8 && at[HS_OSThread_thread_id].bytes == 4 &&
		   at[HS_JavaThread_current_pending_monitor].bytes == 8 &&
		   has(f, HS_ObjectMonitor_owner) && at[HS_JavaThread_stack_base].bytes == 8 &&
		   at[HS_JavaThread_stack_size].bytes == 8;
	t->list = off(f, HS_ThreadsSMRSupport_java_thread_list);
	t->list_length = (uint16_t)off(f, HS_ThreadsList_length);
	t->list_threads = (uint16_t)off(f, HS_ThreadsList_threads);
	t->os_thread = (uint16_t)off(f, os);
	t->os_tid = (uint16_t)off(f, HS_OSThread_thread_id);
	t->pending = (uint16_t)off(f, HS_JavaThread_current_pending_monitor);
	t->stack_base = (uint16_t)off(f, HS_JavaThread_stack_base);
	t->stack_size = (uint16_t)off(f, HS_JavaThread_stack_size);
	t->id = (uint16_t)off(f, HS_JavaThread_monitor_owner_id);
	t->owner = (uint16_t)off(f, HS_ObjectMonitor_owner);
}

/* Structs that are read at once have room where they are read into. */
static int check_sizes(const struct find *f, struct err *e)
{
	const struct ms_hotspot *h = &f->rt.row.hotspot;
	const struct hotspot_rt *d = &f->rt.hotspot;
	const struct ms_field of_blob[] = { h->name,         h->code,       h->frame_words,
					    h->entry,        h->deopt,      h->deopt_mh,
					    h->original_pc,  h->compile_id, d->method,
					    d->pcs,          d->pcs_end,    d->scopes,
					    d->data,         d->metadata,   d->immutable,
					    d->mutable_data, d->relocation, d->immutable_bytes,
					    d->scopes_end };
	bool fits = h->blob_bytes <= MS_HOTSPOT_BYTES && h->runtime_bytes <= h->blob_bytes &&
		    d->pc_bytes >= 8 && d->pc_bytes <= 64 && d->pc_offset + 4 <= d->pc_bytes &&
		    d->pc_scope + 4 <= d->pc_bytes && f->l.size[HS_HeapBlock] <= 64;

	for (size_t i = 0; i < sizeof(of_blob) / sizeof(of_blob[0]); i++)
		fits &= !of_blob[i].bytes || of_blob[i].at + of_blob[i].bytes <= h->blob_bytes;
	fits &= h->name.at + h->name.bytes <= h->runtime_bytes && h->name.bytes == 8;
	return fits ? 0
		    : err_set(e, -EOPNOTSUPP, "%s: describes structs that do not hold their fields",
			      f->rt.name);
}

int hotspot_find(const struct lang_mapped *runtime, const struct lang_mapped *libc,
		 const struct lang_memory *mem, struct lang_runtime *ret_runtime, struct err *e)
{
	struct find f = { .runtime = runtime, .mem = mem };
	uint64_t symbols[HS_N_SYMBOLS];
	int r;

	(void)libc;
	snprintf(f.rt.name, sizeof(f.rt.name), "HotSpot");
	for (int i = 0; i < HS_N_SYMBOLS; i++)
		symbols[i] = runtime->image->hotspot.symbol[i] + runtime->bias;
	r = hotspot_layout_read(symbols, mem, f.rt.name, &f.l, e);
	if (r < 0)
		return r;
	r = find_version(&f, e);
	if (r < 0)
		return r;
	fill_walk(&f);
	fill_decoder(&f);
	fill_threads(&f);
	r = check_sizes(&f, e);
	if (r < 0)
		return r;
	r = find_heaps(&f, e);
	if (r < 0)
		return r;
	r = find_interpreter(&f, e);
	if (r < 0)
		return r;
	f.rt.lang = MS_LANG_HOTSPOT;
	f.rt.row.lang = MS_LANG_HOTSPOT;
	/* Others describe themselves, but nobody has compared their stacks with the truth. */
	f.rt.untested = f.jdk != 17 && f.jdk != 25;
	*ret_runtime = f.rt;
	return 0;
}

int hotspot_counter_find(const struct lang_mapped *runtime, const struct lang_memory *mem,
			 struct hotspot_counter *ret_counter, struct err *e)
{
	struct find f = { .runtime = runtime, .mem = mem };
	uint64_t symbols[HS_N_SYMBOLS], tlab;
	int r;

	if (runtime->image->lang != MS_LANG_HOTSPOT)
		return -ENOENT;
	for (int i = 0; i < HS_N_SYMBOLS; i++)
		symbols[i] = runtime->image->hotspot.symbol[i] + runtime->bias;
	r = hotspot_layout_read(symbols, mem, "HotSpot", &f.l, e);
	if (r < 0)
		return r;
	tlab = off(&f, HS_Thread_tlab);
	if (f.l.field[HS_Thread_allocated_bytes].bytes != 8 || !has(&f, HS_Thread_tlab) ||
	    f.l.field[HS_ThreadLocalAllocBuffer_start].bytes != 8 ||
	    f.l.field[HS_ThreadLocalAllocBuffer_top].bytes != 8)
		return err_set(
			e, -EOPNOTSUPP,
			"HotSpot's description does not say where a Thread has its buffer of new objects");
	*ret_counter = (struct hotspot_counter){
		.allocated = (uint16_t)off(&f, HS_Thread_allocated_bytes),
		.tlab_start = (uint16_t)(tlab + off(&f, HS_ThreadLocalAllocBuffer_start)),
		.tlab_top = (uint16_t)(tlab + off(&f, HS_ThreadLocalAllocBuffer_top)),
	};
	return 0;
}
