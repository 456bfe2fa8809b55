/*
 * What is asked of the files that a process maps while its heap is read: variables by name, code by address. They are others' bytes: a cell
 * (base/file_cell.h) reads each, and what it says is checked.
 */
#ifndef MEMSCOPE_HEAP_IMAGE_CELL_H
#define MEMSCOPE_HEAP_IMAGE_CELL_H

#include <stdbool.h>
#include <stdint.h>

/* The vaddr of the first variable with one of `names` (NULL ends them). 0: none, or the file cannot be read. */
uint64_t heap_image_variable(int fd, const char *path, const char *const *names);

/* As ghc_version_read() (elf/ghc_version.h); 0 also where the file cannot be read. */
uint32_t heap_image_ghc_version(int fd, const char *path);

enum { HEAP_NAME_MAX = 512 }; /* with its NUL */

typedef void (*heap_name_fn)(void *ctx, uint32_t i, const char *name);

/*
 * fn() for each of these vaddrs, ascending, that has a name. Those of GHC's code: ghc_images_names() says which; else the symbols that begin
 * there, as people have them. 0; -errno: the file cannot be read, and some, the last ones, have none.
 */
int heap_image_ghc_names(int fd, const char *path, const uint64_t *vaddrs, uint32_t n, heap_name_fn fn, void *ctx);
int heap_image_names(int fd, const char *path, const uint64_t *vaddrs, uint32_t n, heap_name_fn fn, void *ctx);

#endif
