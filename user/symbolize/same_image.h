/*
 * Which modules are one image: the same library in many containers, or under two paths, is read
 * once.
 *
 * A build ID is what a file says of itself, so an equal one proves nothing: a hostile file could
 * name the functions of everybody whose build ID it claims. Two modules are one image when, besides
 * that, their base names are equal, their files are (the same inode, or equal byte by byte), and so
 * are the debug files that each would be named from: a debug file in the root of one container has
 * no say in another's names. What is left: who may write to the first of several equal files could
 * change it between its comparison and its reading, and so the names in the others.
 *
 * Comparing costs reading: at most SAME_IMAGE_BYTES_MAX in all. Beyond, each is an image of its own,
 * which only costs time.
 */
#ifndef MEMSCOPE_SYMBOLIZE_SAME_IMAGE_H
#define MEMSCOPE_SYMBOLIZE_SAME_IMAGE_H

#include "symbolize/symbolize.h"

enum { SAME_IMAGE_BYTES_MAX = 512 << 20 };

/*
 * `first` has a place for each module of `d`, and for none (0). In: a module's own number where it
 * is to be named, 0 elsewhere. Out: of those that are one image, the lowest number. 0 or -ENOMEM.
 */
int same_images_find(const struct symbolize_opts *opts, const struct dict *d, uint32_t *first);

#endif
