/*
 * A C++ program that lives in its allocator: maps, strings and lists of the standard library, made
 * and thrown away.
 *
 *   alloc_stl
 *
 * go FILE   (no answer) plays until the end, counting rounds in the first 8 bytes of FILE
 *
 * A round allocates most in fill_map(), then in join_words(), then in make_list().
 */
#include "target.h"

#include <list>
#include <map>
#include <string>
#include <vector>

static volatile size_t sink;

static NOINLINE void fill_map(void)
{
	std::map<int, std::string> map;

	for (int i = 0; i < 60; i++)
		map[i * 7919 % 61] = std::string(100, 'm');
	sink = sink + map.size();
}

static NOINLINE void join_words(void)
{
	std::vector<std::string> words;
	std::string all;

	for (int i = 0; i < 20; i++)
		words.push_back(std::string(40, 'w'));
	for (const std::string &word : words)
		all += word;
	sink = sink + all.size();
}

static NOINLINE void make_list(void)
{
	std::list<long> list;

	for (long i = 0; i < 40; i++)
		list.push_back(i);
	sink = sink + list.size();
}

int main(void)
{
	char path[112];
	volatile uint64_t *counter;

	say_ready();
	if (sscanf(next_command(), "go %111s", path) != 1)
		die("go FILE");
	counter = map_counter(path);
	for (;;) {
		fill_map();
		join_words();
		make_list();
		*counter = *counter + 1;
		if (*counter % 64 == 0)
			getppid(); /* in a system call it can be asked to load a library */
	}
}
