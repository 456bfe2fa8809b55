/*
 * HotSpot: what its files share. Internal to the room.
 *
 * libjvm describes its own structs, for the serviceability agent: tables of fields, types and constants that
 * gHotSpotVMStructs, gHotSpotVMTypes and gHotSpotVMIntConstants point to, whose rows' layout is in more exported
 * variables (src/hotspot/share/runtime/vmStructs.hpp). So there is no table of versions here; where
 * versions keep the same thing in different fields, the fields that are there decide.
 */
#ifndef MEMSCOPE_LANG_HOTSPOT_H
#define MEMSCOPE_LANG_HOTSPOT_H

#include "lang/image.h"

/* --- hotspot_layout.c --- */

/* Fields: type, field, its most bytes. An absent one has bytes of 0. */
#define HOTSPOT_FIELDS(X) \
	X(CodeCache, _heaps) \
	X(CodeCache, _heap) \
	X(CodeHeap, _memory) \
	X(CodeHeap, _segmap) \
	X(CodeHeap, _log2_segment_size) \
	X(VirtualSpace, _low_boundary) \
	X(VirtualSpace, _high_boundary) \
	X(GrowableArrayBase, _len) \
	X(GenericGrowableArray, _len) \
	X(GrowableArray, _data) \
	X(AbstractInterpreter, _code) \
	X(StubQueue, _stub_buffer) \
	X(StubQueue, _buffer_limit) \
	X(StubQueue, _queue_begin) \
	X(StubQueue, _queue_end) \
	X(InterpreterCodelet, _size) \
	X(InterpreterCodelet, _description) \
	X(StubRoutines, _call_stub_return_address) \
	X(Abstract_VM_Version, _vm_major_version) \
	X(Abstract_VM_Version, _vm_minor_version) \
	X(Abstract_VM_Version, _vm_security_version) \
	X(CodeBlob, _name) \
	X(CodeBlob, _size) \
	X(CodeBlob, _code_begin) \
	X(CodeBlob, _code_offset) \
	X(CodeBlob, _data_offset) \
	X(CodeBlob, _frame_size) \
	X(CodeBlob, _mutable_data) \
	X(CodeBlob, _relocation_size) \
	X(CompiledMethod, _method) \
	X(CompiledMethod, _scopes_data_begin) \
	X(CompiledMethod, _deopt_handler_begin) \
	X(CompiledMethod, _deopt_mh_handler_begin) \
	X(nmethod, _method) \
	X(nmethod, _scopes_data_begin) \
	X(nmethod, _deopt_handler_begin) \
	X(nmethod, _deopt_mh_handler_begin) \
	X(nmethod, _deoptimize_offset) \
	X(nmethod, _deopt_handler_offset) \
	X(nmethod, _deopt_mh_handler_offset) \
	X(nmethod, _verified_entry_point) \
	X(nmethod, _verified_entry_offset) \
	X(nmethod, _orig_pc_offset) \
	X(nmethod, _compile_id) \
	X(nmethod, _metadata_offset) \
	X(nmethod, _scopes_data_offset) \
	X(nmethod, _scopes_pcs_offset) \
	X(nmethod, _dependencies_offset) \
	X(nmethod, _immutable_data) \
	X(nmethod, _immutable_data_size) \
	X(PcDesc, _pc_offset) \
	X(PcDesc, _scope_decode_offset) \
	X(Method, _constMethod) \
	X(ConstMethod, _constants) \
	X(ConstMethod, _constMethod_size) \
	X(ConstMethod, _code_size) \
	X(ConstMethod, _name_index) \
	X(ConstantPool, _pool_holder) \
	X(ConstantPool, _length) \
	X(ConstantPool, _source_file_name_index) \
	X(InstanceKlass, _constants) \
	X(InstanceKlass, _source_file_name_index) \
	X(Klass, _name) \
	X(Symbol, _length) \
	X(Symbol, _body) \
	X(Thread, _tlab) \
	X(Thread, _allocated_bytes) \
	X(ThreadLocalAllocBuffer, _start) \
	X(ThreadLocalAllocBuffer, _top) \
	X(ThreadsSMRSupport, _java_thread_list) \
	X(ThreadsList, _length) \
	X(ThreadsList, _threads) \
	X(Thread, _osthread) \
	X(JavaThread, _osthread) \
	X(JavaThread, _current_pending_monitor) \
	X(JavaThread, _stack_base) \
	X(JavaThread, _stack_size) \
	X(JavaThread, _monitor_owner_id) \
	X(OSThread, _thread_id) \
	X(ObjectMonitor, _owner)

enum hotspot_field {
#define X(type, field) HS_##type##field,
	HOTSPOT_FIELDS(X)
#undef X
	HS_N_FIELDS,
};

struct hotspot_field_at {
	uint64_t at;   /* a static one: its address; else bytes from the struct's begin */
	uint8_t bytes; /* 1, 2, 4, 8; 0: there is no such field, or 1 for what is no number */
	bool is_static;
};

enum hotspot_type { HS_HeapBlock, HS_CodeBlob, HS_ConstMethod, HS_ConstantPool, HS_PcDesc, HS_nmethod, HS_N_TYPES };

struct hotspot_layout {
	struct hotspot_field_at field[HS_N_FIELDS];
	uint32_t size[HS_N_TYPES]; /* bytes; 0: not known */
	bool has_heaps; /* several code heaps: JDK 9 and later */
};

/*
 * The layout that libjvm's tables describe: `symbols` are the addresses of the variables, in the process.
 * -EAGAIN: they are not filled in yet. -EOPNOTSUPP with a sentence: a field that is needed is not there, or does not
 * fit into its struct.
 */
int hotspot_layout_read(const uint64_t symbols[HS_N_SYMBOLS], const struct lang_memory *mem,
			const char *name, struct hotspot_layout *ret_layout, struct err *e);

/* --- hotspot_text.c --- */

/* A Symbol as UTF-8: what is no text becomes \xNN. `slashes`: '/' becomes '.', as in names of classes. -EIO: it cannot be
 * read, -EBADMSG: it is none. */
int hotspot_symbol(const struct hotspot_rt *rt, const struct lang_memory *mem, uint64_t at,
		   bool slashes, char *ret_text, size_t room, bool *ret_cut);

/* --- hotspot_stream.c --- */

/* Bytes that are compressed numbers, read from a process part by part. */
struct hotspot_stream {
	const struct lang_memory *mem;
	uint64_t at, end;
	uint8_t part[128];
	uint16_t n, next;
	bool no_zeros; /* the encoding of JDK 20 and later: no byte of a number is 0 */
	bool lost;     /* it cannot be read, or has ended within a number: all that follows is 0 */
};

void hotspot_stream_open(struct hotspot_stream *s, const struct lang_memory *mem, uint64_t at,
			 uint64_t end, bool no_zeros);
uint32_t hotspot_stream_number(struct hotspot_stream *s);

/* The line of bytecode `bci` in a compressed table of line numbers; 0: unknown. */
uint32_t hotspot_line(struct hotspot_stream *table, uint32_t bci);

#endif
