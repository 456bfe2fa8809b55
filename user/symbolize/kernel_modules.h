/*
 * Which modules the kernel has now, as one number: what is known of their symbols holds for as long as it is the same. By /proc/modules:
 * the name, the size and the address of each; and by its folder's inode in /sys/module, which is another one for each time that a module is
 * loaded, so that one that was built anew and lies where the old one did is told apart.
 */
#ifndef MEMSCOPE_SYMBOLIZE_KERNEL_MODULES_H
#define MEMSCOPE_SYMBOLIZE_KERNEL_MODULES_H

#include <stdbool.h>
#include <stdint.h>

/* false: there are none, or they, or where they lie, are hidden. */
bool kernel_modules_now(uint64_t *ret_sign);
/* The same by a file and a folder like these. */
bool kernel_modules_read(const char *list, const char *folders, uint64_t *ret_sign);

#endif
