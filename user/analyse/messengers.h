/*
 * Functions that work for others: who asked them is the answer, not they. Allocators, the C library, what a language brings
 * with it. By their names and their image's; lists, to which a library is added as a word.
 */
#ifndef MEMSCOPE_ANALYSE_MESSENGERS_H
#define MEMSCOPE_ANALYSE_MESSENGERS_H

#include <stdbool.h>

/* A native function, by the demangled name and the base name of its image. */
bool messenger(const char *name, const char *module);
/* An image that only carries a request further: the C library, an allocator's. */
bool messenger_module(const char *module);
/* A function that allocates or frees, in its own image (static binaries) or as a wrapper. */
bool messenger_allocator(const char *name);
/* Go's run-time system. Between Go code and its memory there are dozens; where there is no Go code, its work is its own. */
bool messenger_of_go(const char *name);
/* What comes with Go: "os.(*File).Sync", "internal/poll.(*FD).Fsync". Modules of others are the program's own. */
bool messenger_of_go_library(const char *name);
/*
 * A function of a language, as shown: "FUNCTION (FILE)", and its module, "[Java]". One without a file is of the language
 * itself, or made by it: "IO#fsync", "fsync", "Service$$Lambda$1.turn". What comes with node and with Ruby has one that
 * is no file's name: "fsyncSync (node:fs)", "GC.start (<internal:gc>)".
 */
bool messenger_of_language(const char *name, const char *module);
/* The source file of a function that comes with Python, Ruby or Perl: "/usr/lib/python3.11/socket.py". None of a package that
 * was installed beside them. */
bool messenger_file(const char *path);

#endif
