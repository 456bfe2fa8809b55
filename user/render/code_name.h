/*
 * Names of functions for narrow columns. Most of a long C++ or Rust name are parameters and template
 * arguments; what tells it from its neighbours is the path in front of them. So those go first:
 *
 *   ns::Reader::read(std::vector<int> const&) const     as it is
 *   ns::Reader::read(…) const                           parameters
 *   ns::Table<…>::find<…>(…)                            and template arguments
 */
#ifndef MEMSCOPE_RENDER_CODE_NAME_H
#define MEMSCOPE_RENDER_CODE_NAME_H

#include "base/strbuf.h"

/*
 * Appends `name` with as much left out as it takes for at most `width` characters, or all that can be:
 * it may still be longer. Names of other languages, also those with a file behind them (Python), and what does not
 * add up, stay as they are.
 */
void code_name_shorten(struct strbuf *b, const char *name, size_t width);

/*
 * For boxes in which a name is cut at its end: where it begins so that what tells it from others is read. Of a name longer than
 * `width` bytes the packages before a class (Java: com.sun.tools.javac.), and namespaces (Perl::Critic::, Twig\) as long as
 * it takes, but for the last of them. flame.js does the same.
 */
const char *code_name_begin(const char *name, size_t width);

#endif
