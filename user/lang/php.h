/*
 * PHP: the version of its engine, and the layouts of its frames. Internal to the room. bpf/walk/php.h walks them.
 *
 * Layouts are fixed within a minor version (ZEND_MODULE_API_NO): a row each, from the headers of that version
 * (Zend/zend_compile.h, zend_globals.h, zend_generators.h).
 */
#ifndef MEMSCOPE_LANG_PHP_H
#define MEMSCOPE_LANG_PHP_H

#include "lang/image.h"

/* Bytes from the begin of a struct. */
struct php_layout {
	uint16_t version;            /* 0x0802: 8.2 */
	uint16_t current;            /* current_execute_data, of zend_executor_globals    */
	uint16_t ops, n_ops, file;   /* opcodes, last and filename, of zend_op_array */
	uint16_t generator_frame, generator_fake, generator_parent; /* as in struct ms_php */
	bool untested;
	bool tried_threads; /* built for threads (ZTS) */
};

/* Of a version, 0x080224 for 8.2.36. NULL: none is known. */
const struct php_layout *php_layout_of(uint32_t version);
/* "Zend Engine v4.2.36, Copyright…": 0x080224; 0: that is none. 3.4 is PHP 7.4, 4.N is 8.N. */
uint32_t php_version_of(const char *text);

#endif
