/*
 * Which modules are one image: the same library in many containers, or under two paths, is read
 * once.
 *
 * A build ID is only the file's own claim, so equal ones prove nothing: a hostile file could name
 * the functions of every image whose build ID it claims. Two modules are one image when, besides,
 * their base names are equal, their files are (the same inode, or equal byte by byte), and so are
 * the debug files that each would be named from: a debug file in the root of one container does not
 * affect another's names. One risk remains: a user who may write to the first of several equal
 * files could change it between its comparison and its reading, and so the names in the others.
 *
 * Comparing costs reading: at most SAME_IMAGE_BYTES_MAX in all. Beyond that, each module is an
 * image of its own, which only costs time.
 */
#ifndef MEMSCOPE_SYMBOLIZE_SAME_IMAGE_H
#define MEMSCOPE_SYMBOLIZE_SAME_IMAGE_H

#include "symbolize/symbolize.h"

enum { SAME_IMAGE_BYTES_MAX = 512 << 20 };

/*
 * `first` has an entry for each module of `d`, and for none (0). In: a module's own number where it
 * is to be named, 0 elsewhere. Out: for modules that are one image, the lowest of their numbers. 0
 * or -ENOMEM.
 */
int same_images_find(const struct symbolize_opts *opts, struct dict *d, uint32_t *first);

#endif
