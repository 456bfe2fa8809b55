/*
 * A process with HotSpot in it, made of bytes: the tables with which libjvm describes itself (the offsets are those
 * that JDK 17 gives), one code heap, one class with a method, which is interpreted, and compiled with itself inlined.
 * Tests and the fuzzer change it.
 */
#ifndef MEMSCOPE_TESTS_HOTSPOT_FIXTURE_H
#define MEMSCOPE_TESTS_HOTSPOT_FIXTURE_H

#include "abi.h"
#include "fake_process.h"
#include "lang/hotspot.h"

#include <string.h>

#define HSF_BIAS 0x7f0000000000ULL

enum {
	HSF_LEN = 0x20000,
	HSF_SYMBOLS = 0x1000,
	HSF_STATICS = 0x1800,
	HSF_STRUCTS = 0x2000, /* rows of 48 bytes */
	HSF_TYPES = 0x4000,   /* rows of 16       */
	HSF_TEXTS = 0x5000,
	HSF_HEAPS = 0x9000,
	HSF_HEAP = 0x9100,
	HSF_QUEUE = 0x9400,
	HSF_METHOD = 0xa000,
	HSF_CONST = 0xa100,
	HSF_POOL = 0xa200,
	HSF_KLASS = 0xa400,
	HSF_CLASS_NAME = 0xa600,
	HSF_METHOD_NAME = 0xa640,
	HSF_FILE_NAME = 0xa680,
	HSF_MAP = 0xb000,      /* the heap's map of segments */
	HSF_THREADS = 0xc000,
	HSF_CODE = 0x10000,    /* … and its blocks, to the end */
	HSF_SEGMENT = 128,
	HSF_NMETHOD = HSF_CODE + 16,
	HSF_NMETHOD_CODE = HSF_NMETHOD + 0x180,
	HSF_STUB = HSF_CODE + 0x1000 + 16,
	HSF_INTERPRETER = HSF_CODE + 0x2000,
	HSF_STACK = 0x1c000,
	HSF_FRAME_WORDS = 6,
	HSF_ID = 77,
	HSF_BYTECODES = 20,
};

struct hotspot_process {
	uint8_t bytes[HSF_LEN];
	struct lang_image image;
	struct lang_mapped at;
	struct fake_process memory;
	uint32_t texts, n_structs, n_types, n_statics;
};

static inline uint64_t hsf_addr(uint32_t off)
{
	return HSF_BIAS + off;
}

static inline void hsf_put(struct hotspot_process *p, uint32_t off, uint64_t value, size_t len)
{
	fake_process_put(&p->memory, off, value, len);
}

static inline uint64_t hsf_text(struct hotspot_process *p, const char *text)
{
	uint32_t at = p->texts;

	memcpy(p->bytes + at, text, strlen(text) + 1);
	p->texts += (uint32_t)strlen(text) + 1;
	return hsf_addr(at);
}

static inline void hsf_field(struct hotspot_process *p, const char *type, const char *field,
			     const char *is, uint64_t off)
{
	uint32_t at = HSF_STRUCTS + 48 * p->n_structs++;

	hsf_put(p, at, hsf_text(p, type), 8);
	hsf_put(p, at + 8, hsf_text(p, field), 8);
	hsf_put(p, at + 16, hsf_text(p, is), 8);
	hsf_put(p, at + 32, off, 8);
}

/* A static one, which is `value`. */
static inline void hsf_static(struct hotspot_process *p, const char *type, const char *field,
			      const char *is, uint64_t value)
{
	uint32_t at = HSF_STRUCTS + 48 * p->n_structs, var = HSF_STATICS + 8 * p->n_statics++;

	hsf_field(p, type, field, is, 0);
	hsf_put(p, at + 24, 1, 4);
	hsf_put(p, at + 40, hsf_addr(var), 8);
	hsf_put(p, var, value, 8);
}

static inline void hsf_type(struct hotspot_process *p, const char *type, uint64_t size)
{
	uint32_t at = HSF_TYPES + 16 * p->n_types++;

	hsf_put(p, at, hsf_text(p, type), 8);
	hsf_put(p, at + 8, size, 8);
}

static inline void hsf_symbol(struct hotspot_process *p, uint32_t at, const char *text)
{
	hsf_put(p, at + 4, strlen(text), 2);
	memcpy(p->bytes + at + 6, text, strlen(text));
}

/* Three threads: the second waits for a monitor that the first has. */
static inline void hsf_threads_tables(struct hotspot_process *p)
{
	hsf_static(p, "ThreadsSMRSupport", "_java_thread_list", "ThreadsList*", hsf_addr(HSF_THREADS));
	hsf_field(p, "ThreadsList", "_length", "const uint", 8);
	hsf_field(p, "ThreadsList", "_threads", "JavaThread *const *const", 16);
	hsf_field(p, "JavaThread", "_osthread", "OSThread*", 0);
	hsf_field(p, "JavaThread", "_current_pending_monitor", "ObjectMonitor*", 8);
	hsf_field(p, "JavaThread", "_stack_base", "address", 16);
	hsf_field(p, "JavaThread", "_stack_size", "size_t", 24);
	hsf_field(p, "OSThread", "_thread_id", "OSThread::thread_id_t", 36);
	hsf_field(p, "ObjectMonitor", "_owner", "", 56);
	hsf_put(p, HSF_THREADS + 8, 3, 4);
	hsf_put(p, HSF_THREADS + 16, hsf_addr(HSF_THREADS + 32), 8);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t at = HSF_THREADS + 64 + 128 * i;

		hsf_put(p, HSF_THREADS + 32 + 8 * i, hsf_addr(at), 8);
		hsf_put(p, at, hsf_addr(at + 64), 8);
		hsf_put(p, at + 8, i == 1 ? hsf_addr(HSF_THREADS + 448) : 0, 8);
		hsf_put(p, at + 16, hsf_addr(HSF_LEN + 0x1000 * (i + 1)), 8);
		hsf_put(p, at + 24, 0x1000, 8);
		hsf_put(p, at + 64 + 36, 101 + i, 4);
	}
	hsf_put(p, HSF_THREADS + 448 + 56, hsf_addr(HSF_THREADS + 64), 8);
}

static inline void hsf_tables(struct hotspot_process *p)
{
	static const uint8_t columns[] = { 0, 8, 16, 24, 32, 40, 48 };

	hsf_put(p, HSF_SYMBOLS + 8 * HS_STRUCTS, hsf_addr(HSF_STRUCTS), 8);
	for (uint32_t i = 0; i < 7; i++)
		hsf_put(p, HSF_SYMBOLS + 8 * (HS_STRUCT_TYPE + i), columns[i], 8);
	hsf_put(p, HSF_SYMBOLS + 8 * HS_TYPES, hsf_addr(HSF_TYPES), 8);
	hsf_put(p, HSF_SYMBOLS + 8 * HS_TYPE_SIZE, 8, 8);
	hsf_put(p, HSF_SYMBOLS + 8 * HS_TYPE_STRIDE, 16, 8);
	hsf_static(p, "CodeCache", "_heaps", "GrowableArray<CodeHeap*>*", hsf_addr(HSF_HEAPS));
	hsf_static(p, "AbstractInterpreter", "_code", "StubQueue*", hsf_addr(HSF_QUEUE));
	hsf_static(p, "StubRoutines", "_call_stub_return_address", "address",
		   hsf_addr(HSF_STUB + 0x100));
	hsf_static(p, "Abstract_VM_Version", "_vm_major_version", "int", 17);
	hsf_static(p, "Abstract_VM_Version", "_vm_security_version", "int", 15);
	hsf_field(p, "CodeHeap", "_memory", "VirtualSpace", 8);
	hsf_field(p, "CodeHeap", "_segmap", "VirtualSpace", 120);
	hsf_field(p, "CodeHeap", "_log2_segment_size", "int", 256);
	hsf_field(p, "VirtualSpace", "_low_boundary", "char*", 0);
	hsf_field(p, "VirtualSpace", "_high_boundary", "char*", 8);
	hsf_field(p, "GrowableArrayBase", "_len", "int", 0);
	hsf_field(p, "GrowableArray<int>", "_data", "int*", 8);
	hsf_field(p, "StubQueue", "_stub_buffer", "address", 8);
	hsf_field(p, "StubQueue", "_buffer_limit", "int", 20);
	hsf_field(p, "StubQueue", "_queue_end", "int", 28);
	hsf_field(p, "InterpreterCodelet", "_size", "int", 8);
	hsf_field(p, "InterpreterCodelet", "_description", "const char*", 0);
	hsf_field(p, "CodeBlob", "_name", "const char*", 96);
	hsf_field(p, "CodeBlob", "_code_begin", "address", 32);
	hsf_field(p, "CodeBlob", "_frame_size", "int", 28);
	hsf_field(p, "CompiledMethod", "_method", "Method*", 112);
	hsf_field(p, "CompiledMethod", "_scopes_data_begin", "address", 120);
	hsf_field(p, "CompiledMethod", "_deopt_handler_begin", "address", 128);
	hsf_field(p, "nmethod", "_verified_entry_point", "address", 224);
	hsf_field(p, "nmethod", "_orig_pc_offset", "int", 300);
	hsf_field(p, "nmethod", "_compile_id", "int", 304);
	hsf_field(p, "nmethod", "_metadata_offset", "int", 260);
	hsf_field(p, "nmethod", "_scopes_pcs_offset", "int", 268);
	hsf_field(p, "nmethod", "_dependencies_offset", "int", 272);
	hsf_field(p, "PcDesc", "_pc_offset", "int", 0);
	hsf_field(p, "PcDesc", "_scope_decode_offset", "int", 4);
	hsf_field(p, "Method", "_constMethod", "ConstMethod*", 8);
	hsf_field(p, "ConstMethod", "_constants", "ConstantPool*", 8);
	hsf_field(p, "ConstMethod", "_constMethod_size", "int", 24);
	hsf_field(p, "ConstMethod", "_code_size", "u2", 32);
	hsf_field(p, "ConstMethod", "_name_index", "u2", 34);
	hsf_field(p, "ConstantPool", "_pool_holder", "InstanceKlass*", 24);
	hsf_field(p, "ConstantPool", "_length", "int", 60);
	hsf_field(p, "ConstantPool", "_source_file_name_index", "u2", 54);
	hsf_field(p, "InstanceKlass", "_constants", "ConstantPool*", 232);
	hsf_field(p, "Klass", "_name", "Symbol*", 24);
	hsf_field(p, "Symbol", "_length", "u2", 4);
	hsf_field(p, "Symbol", "_body", "u1", 6);
	hsf_field(p, "Thread", "_tlab", "ThreadLocalAllocBuffer", 400);
	hsf_field(p, "Thread", "_allocated_bytes", "jlong", 520);
	hsf_field(p, "ThreadLocalAllocBuffer", "_start", "HeapWord*", 0);
	hsf_field(p, "ThreadLocalAllocBuffer", "_top", "HeapWord*", 8);
	hsf_threads_tables(p);
	hsf_type(p, "HeapBlock", 16);
	hsf_type(p, "CodeBlob", 104);
	hsf_type(p, "ConstMethod", 48);
	hsf_type(p, "ConstantPool", 72);
	hsf_type(p, "PcDesc", 16);
	hsf_type(p, "nmethod", 352);
}

static inline void hsf_heap(struct hotspot_process *p)
{
	hsf_put(p, HSF_HEAPS, 1, 4);
	hsf_put(p, HSF_HEAPS + 8, hsf_addr(HSF_HEAPS + 16), 8);
	hsf_put(p, HSF_HEAPS + 16, hsf_addr(HSF_HEAP), 8);
	hsf_put(p, HSF_HEAP + 8, hsf_addr(HSF_CODE), 8);
	hsf_put(p, HSF_HEAP + 16, hsf_addr(HSF_STACK), 8);
	hsf_put(p, HSF_HEAP + 120, hsf_addr(HSF_MAP), 8);
	hsf_put(p, HSF_HEAP + 128, hsf_addr(HSF_MAP + 0x1000), 8);
	hsf_put(p, HSF_HEAP + 256, 7, 4);
	memset(p->bytes + HSF_MAP, 0xff, 0x1000);
	for (uint32_t at = HSF_CODE; at < HSF_STACK; at += HSF_SEGMENT) {
		uint32_t i = (at - HSF_CODE) / HSF_SEGMENT;

		/* Three blocks of 32 segments; what follows is free. */
		if (i < 96)
			p->bytes[HSF_MAP + i] = (uint8_t)(i % 32 > 10 ? i % 32 - 10 : i % 32);
	}
	hsf_put(p, HSF_QUEUE + 8, hsf_addr(HSF_INTERPRETER), 8);
	hsf_put(p, HSF_QUEUE + 20, 0x800, 4);
	hsf_put(p, HSF_QUEUE + 28, 0x300, 4);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t at = HSF_INTERPRETER + 0x100 * i;

		hsf_put(p, at, hsf_text(p, i == 1 ? "method entry point (kind = zerolocals)" : "nop"),
			8);
		hsf_put(p, at + 8, 0x100, 4);
	}
}

static inline void hsf_method(struct hotspot_process *p)
{
	/* bci 0: line 40; 5: 42; 9: 41 by a long pair; the end. */
	static const uint8_t lines[] = { 0xff, 0, 80, 5 << 3 | 2, 0xff, 8, 1, 0 };

	hsf_put(p, HSF_METHOD + 8, hsf_addr(HSF_CONST), 8);
	hsf_put(p, HSF_CONST + 8, hsf_addr(HSF_POOL), 8);
	hsf_put(p, HSF_CONST + 24, (48 + HSF_BYTECODES + 16) / 8 + 1, 4);
	hsf_put(p, HSF_CONST + 32, HSF_BYTECODES, 2);
	hsf_put(p, HSF_CONST + 34, 3, 2);
	memcpy(p->bytes + HSF_CONST + 48 + HSF_BYTECODES, lines, sizeof(lines));
	hsf_put(p, HSF_POOL + 24, hsf_addr(HSF_KLASS), 8);
	hsf_put(p, HSF_POOL + 54, 4, 2);
	hsf_put(p, HSF_POOL + 60, 8, 4);
	hsf_put(p, HSF_POOL + 72 + 8 * 3, hsf_addr(HSF_METHOD_NAME), 8);
	hsf_put(p, HSF_POOL + 72 + 8 * 4, hsf_addr(HSF_FILE_NAME), 8);
	hsf_put(p, HSF_KLASS + 24, hsf_addr(HSF_CLASS_NAME), 8);
	hsf_put(p, HSF_KLASS + 232, hsf_addr(HSF_POOL), 8);
	hsf_symbol(p, HSF_CLASS_NAME, "a/b/C");
	hsf_symbol(p, HSF_METHOD_NAME, "f");
	hsf_symbol(p, HSF_FILE_NAME, "C.java");
}

static inline void hsf_nmethod(struct hotspot_process *p)
{
	/* From byte 1 on: in none, method 1, bci 5; then, in that one, method 1, bci 9. */
	static const uint8_t scopes[] = { 0xaa, 0, 1, 6, 1, 1, 10 };
	static const int32_t pcs[][4] = { { -1, 0, 0, 0 }, { 0x20, 1, 0, 0 }, { 0x30, 4, 0, 0 },
					  { 0x7fffffff, 0, 0, 0 } };
	static const uint8_t code[] = { 0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec, 0x20 };
	uint32_t at = HSF_NMETHOD;

	hsf_put(p, at + 28, HSF_FRAME_WORDS, 4);
	hsf_put(p, at + 32, hsf_addr(HSF_NMETHOD_CODE), 8);
	hsf_put(p, at + 96, hsf_text(p, "nmethod"), 8);
	hsf_put(p, at + 112, hsf_addr(HSF_METHOD), 8);
	hsf_put(p, at + 120, hsf_addr(at + 0x300), 8);
	hsf_put(p, at + 128, hsf_addr(HSF_NMETHOD_CODE + 0x70), 8);
	hsf_put(p, at + 224, hsf_addr(HSF_NMETHOD_CODE), 8);
	hsf_put(p, at + 260, 0x280, 4);
	hsf_put(p, at + 268, 0x340, 4);
	hsf_put(p, at + 272, 0x340 + sizeof(pcs), 4);
	hsf_put(p, at + 300, 8, 4);
	hsf_put(p, at + 304, HSF_ID, 4);
	hsf_put(p, at + 0x280, hsf_addr(HSF_METHOD), 8);
	memcpy(p->bytes + at + 0x300, scopes, sizeof(scopes));
	memcpy(p->bytes + at + 0x340, pcs, sizeof(pcs));
	memset(p->bytes + HSF_NMETHOD_CODE, 0x90, 0x80);
	memcpy(p->bytes + HSF_NMETHOD_CODE, code, sizeof(code));
	memset(p->bytes + HSF_STUB, 0x90, 0x400);
	memset(p->bytes + HSF_STUB, 0, 104);
	hsf_put(p, HSF_STUB + 32, hsf_addr(HSF_STUB + 104), 8);
	hsf_put(p, HSF_STUB + 96, hsf_text(p, "StubRoutines (1)"), 8);
}

static inline void hsf_init(struct hotspot_process *p)
{
	memset(p, 0, sizeof(*p));
	fake_process_init(&p->memory, HSF_BIAS, p->bytes, HSF_LEN);
	p->texts = HSF_TEXTS;
	hsf_tables(p);
	hsf_heap(p);
	hsf_method(p);
	hsf_nmethod(p);
	p->image.lang = MS_LANG_HOTSPOT;
	memcpy(p->image.name, "jvm", 4);
	for (uint32_t i = 0; i < HS_N_SYMBOLS; i++)
		p->image.hotspot.symbol[i] = HSF_SYMBOLS + 8 * i;
	p->at = (struct lang_mapped){ &p->image, HSF_BIAS };
}

static inline void hsf_words(uint64_t what, uint32_t cookie, uint32_t at, uint64_t words[2])
{
	words[0] = what | MS_FRAME_LANG << MS_FRAME_TAG_SHIFT;
	words[1] = MS_FRAME_LANG_AT << MS_FRAME_TAG_SHIFT | (uint64_t)MS_LANG_HOTSPOT << MS_LANG_SHIFT |
		   (uint64_t)cookie << 32 | at;
}

#endif
