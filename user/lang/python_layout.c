#include "lang/python.h"

#include <errno.h>
#include <string.h>

enum { MINOR_FIRST = 8, MINOR_SAID = 13, MINOR_LAST = 14, NO_CFRAME = 0xffff };

/* What a minor version has, compiled from its headers: 3.8.18, 3.9.18, 3.10.13, 3.11.2 and .7, 3.12.1. */
static const struct python_layout rows[] = {
	[8 - MINOR_FIRST] = {
		.frames = { .tstate_frame = 24, .cframe_frame = NO_CFRAME, .frame_code = 32,
			    .frame_previous = 24, .frame_instr = 104, .code_first_line = 40,
			    .code_name = 112, .code_linetable = 120,
			    .boundary_kind = MS_PYTHON_EACH, .instr_kind = MS_PYTHON_LASTI },
		.code_filename = 104, .code_qualname = 112, .str_ascii = 48, .str_compact = 72,
		.runtime_interpreters = 32, .interp_threads = 8, .tstate_thread_id = 176,
	},
	[9 - MINOR_FIRST] = {
		.frames = { .tstate_frame = 24, .cframe_frame = NO_CFRAME, .frame_code = 32,
			    .frame_previous = 24, .frame_instr = 104, .code_first_line = 40,
			    .code_name = 112, .code_linetable = 120,
			    .boundary_kind = MS_PYTHON_EACH, .instr_kind = MS_PYTHON_LASTI },
		.code_filename = 104, .code_qualname = 112, .str_ascii = 48, .str_compact = 72,
		.runtime_interpreters = 32, .interp_threads = 8, .tstate_thread_id = 176,
	},
	[10 - MINOR_FIRST] = {
		.frames = { .tstate_frame = 24, .cframe_frame = NO_CFRAME, .frame_code = 32,
			    .frame_previous = 24, .frame_instr = 96, .code_first_line = 40,
			    .code_name = 112, .code_linetable = 120,
			    .boundary_kind = MS_PYTHON_EACH, .instr_kind = MS_PYTHON_LASTI },
		.code_filename = 104, .code_qualname = 112, .str_ascii = 48, .str_compact = 72,
		.runtime_interpreters = 32, .interp_threads = 8, .tstate_thread_id = 176,
	},
	[11 - MINOR_FIRST] = {
		.frames = { .tstate_frame = 56, .cframe_frame = 8, .cframe_previous = 16,
			    .frame_code = 32, .frame_previous = 48, .frame_instr = 56,
			    .frame_boundary = 68, .code_first_line = 72, .code_name = 120,
			    .code_linetable = 136, .boundary_kind = MS_PYTHON_ENTRY, .boundary = 1,
			    .instr_kind = MS_PYTHON_POINTER },
		.code_filename = 112, .code_qualname = 128, .code_bytecode = 184, .str_ascii = 48,
		.str_compact = 72, .runtime_interpreters = 40, .interp_threads = 16,
		.tstate_thread_id = 152,
	},
	[12 - MINOR_FIRST] = {
		.frames = { .tstate_frame = 56, .cframe_frame = 0, .cframe_previous = 8,
			    .frame_code = 0, .frame_previous = 8, .frame_instr = 56,
			    .frame_boundary = 70, .code_first_line = 68, .code_name = 120,
			    .code_linetable = 136, .boundary_kind = MS_PYTHON_OWNER, .boundary = 3,
			    .instr_kind = MS_PYTHON_POINTER },
		.code_filename = 112, .code_qualname = 128, .code_bytecode = 192, .str_ascii = 40,
		.str_compact = 56, .runtime_interpreters = 40, .interp_threads = 72,
		.tstate_thread_id = 136,
	},
	/* Of those that say it themselves, what they do not say. */
	[13 - MINOR_FIRST] = {
		.frames = { .cframe_frame = NO_CFRAME, .boundary_kind = MS_PYTHON_OWNER, .boundary = 3,
			    .instr_kind = MS_PYTHON_POINTER },
	},
	[14 - MINOR_FIRST] = {
		.frames = { .cframe_frame = NO_CFRAME, .boundary_kind = MS_PYTHON_OWNER, .boundary = 3,
			    .instr_kind = MS_PYTHON_POINTER, .code_mask = 3 },
		.untested = true,
	},
};

_Static_assert(sizeof(rows) / sizeof(rows[0]) == MINOR_LAST - MINOR_FIRST + 1, "a row each");

/* --- _Py_DebugOffsets, in words of 8 bytes (Include/internal/pycore_debug_offsets.h) --- */

enum said {
	SAID_COOKIE,
	SAID_VERSION,
	SAID_FREE_THREADED,
	SAID_INTERPRETERS,
	SAID_INTERP_NEXT,
	SAID_INTERP_THREADS,
	SAID_TSTATE_NEXT,
	SAID_TSTATE_FRAME,
	SAID_TSTATE_THREAD_ID,
	SAID_FRAME_SIZE,
	SAID_FRAME_PREVIOUS,
	SAID_FRAME_CODE,
	SAID_FRAME_INSTR,
	SAID_FRAME_OWNER,
	SAID_CODE_SIZE,
	SAID_CODE_FILENAME,
	SAID_CODE_NAME,
	SAID_CODE_QUALNAME,
	SAID_CODE_LINETABLE,
	SAID_CODE_FIRST_LINE,
	SAID_CODE_BYTECODE,
	SAID_OBJECT_SIZE,
	SAID_OBJECT_TYPE,
	SAID_TYPE_NAME,
	SAID_TYPE_FLAGS,
	SAID_STR_ASCII,
	SAID_N,
};

enum { SAID_MODULES_13 = 11 }; /* of 3.13 alone: for what is read of asyncio */

static const uint8_t words[][SAID_N] = {
	[13 - MINOR_SAID] = { 0,  1,  2,  5,  8,  9,  21, 23, 24, 28, 29, 30, 31,
			      33, 34, 35, 36, 37, 38, 39, 43, 44, 45, 47, 49, 70 },
	[14 - MINOR_SAID] = { 0,  1,  2,  5,  8,  9,  24, 26, 27, 31, 32, 33, 34,
			      36, 39, 40, 41, 42, 43, 44, 48, 50, 51, 53, 55, 80 },
};

static uint64_t word(const uint8_t *said, unsigned i)
{
	uint64_t w;

	memcpy(&w, said + 8 * (size_t)i, sizeof(w));
	return w;
}

bool python_says_layout(uint32_t version)
{
	return version >> 16 == 3 && (version >> 8 & 0xff) >= MINOR_SAID;
}

uint32_t python_said_version(const uint8_t said[PYTHON_OFFSETS_BYTES])
{
	uint64_t hex = word(said, 1);

	return memcmp(said, "xdebugpy", 8) == 0 && hex >> 24 == 3 ? (uint32_t)(hex >> 8) : 0;
}

/* A field of 8 bytes at `off` of a struct of `size`. */
static bool fits(uint64_t off, uint64_t size)
{
	return off % 4 == 0 && size <= 1024 && off <= size - 8;
}

static bool is_sound(const uint64_t s[SAID_N])
{
	static const uint8_t in_frame[] = { SAID_FRAME_PREVIOUS, SAID_FRAME_CODE,
					    SAID_FRAME_INSTR };
	static const uint8_t in_code[] = { SAID_CODE_FILENAME, SAID_CODE_NAME, SAID_CODE_QUALNAME,
					   SAID_CODE_LINETABLE };
	uint64_t frame = s[SAID_FRAME_SIZE], code = s[SAID_CODE_SIZE];

	if (frame < 8 || frame > MS_LANG_BYTES || code < 8 || code > 1024 ||
	    s[SAID_FRAME_OWNER] >= frame)
		return false;
	for (size_t i = 0; i < sizeof(in_frame); i++)
		if (s[in_frame[i]] % 8 || !fits(s[in_frame[i]], frame))
			return false;
	for (size_t i = 0; i < sizeof(in_code); i++)
		if (s[in_code[i]] % 8 || !fits(s[in_code[i]], code))
			return false;
	/* The three that the kernel reads lie together. */
	return fits(s[SAID_CODE_FIRST_LINE], code) && s[SAID_CODE_BYTECODE] < 1024 &&
	       s[SAID_CODE_FIRST_LINE] < s[SAID_CODE_NAME] &&
	       s[SAID_CODE_NAME] < s[SAID_CODE_LINETABLE] &&
	       s[SAID_CODE_LINETABLE] + 8 - s[SAID_CODE_FIRST_LINE] / 8 * 8 <= MS_LANG_BYTES &&
	       s[SAID_TSTATE_FRAME] < 1024 && s[SAID_TSTATE_FRAME] % 8 == 0 &&
	       s[SAID_TSTATE_NEXT] < 1024 && s[SAID_TSTATE_THREAD_ID] < 1024 &&
	       s[SAID_INTERPRETERS] < 1 << 20 && s[SAID_INTERP_NEXT] < 1 << 20 &&
	       s[SAID_INTERP_THREADS] < 1 << 20 &&
	       (s[SAID_OBJECT_SIZE] == 16 || s[SAID_OBJECT_SIZE] == 32) &&
	       s[SAID_OBJECT_TYPE] + 8 == s[SAID_OBJECT_SIZE] && s[SAID_TYPE_NAME] < 1024 &&
	       s[SAID_TYPE_FLAGS] < 1024 && s[SAID_STR_ASCII] == s[SAID_OBJECT_SIZE] + 24;
}

static int take_said(uint32_t version, const uint8_t *said, struct python_layout *l, struct err *e)
{
	uint32_t minor = version >> 8 & 0xff;
	uint64_t s[SAID_N];

	for (int i = 0; i < SAID_N; i++)
		s[i] = word(said, words[minor - MINOR_SAID][i]);
	if (s[SAID_FREE_THREADED] > 1 || !is_sound(s))
		return err_set(e, -EOPNOTSUPP,
			       "CPython 3.%u.%u: what it says of its own layout is none", minor,
			       version & 0xff);
	l->free_threaded = s[SAID_FREE_THREADED];
	l->untested |= l->free_threaded;
	/* 3.14's threads have copies of code, so that the place in one does not say which instruction it is. */
	if (l->free_threaded && minor > 13)
		return err_set(
			e, -EOPNOTSUPP,
			"CPython 3.%u.%u without a global lock (free-threaded) is not supported",
			minor, version & 0xff);
	l->frames.tstate_frame = (uint16_t)s[SAID_TSTATE_FRAME];
	l->frames.frame_code = (uint16_t)s[SAID_FRAME_CODE];
	l->frames.frame_previous = (uint16_t)s[SAID_FRAME_PREVIOUS];
	l->frames.frame_instr = (uint16_t)s[SAID_FRAME_INSTR];
	l->frames.frame_boundary = (uint16_t)s[SAID_FRAME_OWNER];
	l->frames.code_first_line = (uint16_t)s[SAID_CODE_FIRST_LINE];
	l->frames.code_name = (uint16_t)s[SAID_CODE_NAME];
	l->frames.code_linetable = (uint16_t)s[SAID_CODE_LINETABLE];
	l->code_filename = (uint16_t)s[SAID_CODE_FILENAME];
	l->code_qualname = (uint16_t)s[SAID_CODE_QUALNAME];
	l->code_bytecode = (uint16_t)s[SAID_CODE_BYTECODE];
	l->object = (uint8_t)s[SAID_OBJECT_SIZE];
	l->ob_type = (uint8_t)s[SAID_OBJECT_TYPE];
	l->str_ascii = (uint8_t)s[SAID_STR_ASCII];
	l->str_compact = (uint8_t)(s[SAID_STR_ASCII] + 16);
	l->type_name = (uint16_t)s[SAID_TYPE_NAME];
	l->type_flags = (uint16_t)s[SAID_TYPE_FLAGS];
	l->runtime_interpreters = (uint32_t)s[SAID_INTERPRETERS];
	l->interp_next = (uint32_t)s[SAID_INTERP_NEXT];
	l->interp_threads = (uint32_t)s[SAID_INTERP_THREADS];
	if (minor == MINOR_SAID && word(said, SAID_MODULES_13) < 1 << 20)
		l->interp_modules = (uint32_t)word(said, SAID_MODULES_13);
	l->tstate_next = (uint16_t)s[SAID_TSTATE_NEXT];
	l->tstate_thread_id = (uint16_t)s[SAID_TSTATE_THREAD_ID];
	return 0;
}

/* From the frame's begin to behind the last of what the walk reads there, in whole words. */
static uint8_t frame_bytes(const struct ms_python *p)
{
	uint32_t last = p->frame_code;

	last = p->frame_previous > last ? p->frame_previous : last;
	last = p->frame_instr > last ? p->frame_instr : last;
	last = p->frame_boundary > last ? p->frame_boundary : last;
	return (uint8_t)((last & ~7u) + 8);
}

int python_layout_find(uint32_t version, const uint8_t said[PYTHON_OFFSETS_BYTES],
		       struct python_layout *ret_layout, struct err *e)
{
	uint32_t minor = version >> 8 & 0xff;
	struct python_layout l;
	int r;

	if (version >> 16 != 3 || minor < MINOR_FIRST || minor > MINOR_LAST)
		return err_set(
			e, -EOPNOTSUPP,
			"CPython %u.%u.%u: its layout is not known, as that of 3.%d to 3.%d is",
			version >> 16, minor, version & 0xff, MINOR_FIRST, MINOR_LAST);
	l = rows[minor - MINOR_FIRST];
	if (minor >= MINOR_SAID) {
		if (!said || python_said_version(said) != version)
			return err_set(
				e, -EOPNOTSUPP,
				"CPython 3.%u.%u: it does not say its layout, as 3.%d and later do",
				minor, version & 0xff, MINOR_SAID);
		r = take_said(version, said, &l, e);
		if (r < 0)
			return r;
	} else {
		l.object = 16;
		l.ob_type = 8;
		l.type_name = 24;
		l.type_flags = 168;
		l.tstate_next = 8;
	}
	l.frames.frame_bytes = frame_bytes(&l.frames);
	l.frames.tstate_thread = l.tstate_thread_id;
	*ret_layout = l;
	return 0;
}
