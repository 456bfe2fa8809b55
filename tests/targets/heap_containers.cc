/*
 * Containers whose elements are known: one of each kind of libstdc++, of N elements, in variables, and what makes a container hard
 * to tell from other memory: left-over ends of vectors, empty ones, lists whose header begins a block, arrays of objects.
 *
 *   heap_containers N    then "ready"; ends with its input
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <unistd.h>

struct Shape {
	virtual ~Shape() = default;
	long corners = 3;
};

struct Left : Shape {
};

/* Not destroyed at the end. */
static std::map<long, long> &numbers = *new std::map<long, long>;
static std::set<std::string> &names = *new std::set<std::string>;
static std::unordered_map<long, std::string> &sessions = *new std::unordered_map<long, std::string>;
static std::list<long> &queue = *new std::list<long>;
static std::deque<long> &jobs = *new std::deque<long>;
static std::vector<long> &series = *new std::vector<long>;
static std::vector<Shape> &shapes = *new std::vector<Shape>;
static std::vector<Left *> &pointers = *new std::vector<Left *>;
static std::map<long, long>::iterator last_seen;
static Shape *array;
static char *text;

/* In a function of its own, so that no register or slot of main() has them. */
static void __attribute__((noinline)) fill(long n)
{
	for (long i = 0; i < n; i++) {
		numbers[i * 7919 % n] = i;
		names.insert("a name that is too long to lie in its string: " + std::to_string(i));
		sessions[i] = std::string(100, 'a' + (char)(i % 26));
		queue.push_back(i);
		jobs.push_back(i);
	}
	/* All nodes can be reached from it, and it keeps none. */
	last_seen = numbers.find(n / 2);
	/* The first third goes again: chunks of the deque, too. */
	for (long i = 0; i < n / 3; i++)
		jobs.pop_front();
	series.reserve((size_t)n);
	for (long i = 0; i < n / 2; i++)
		series.push_back(i);
	shapes.resize((size_t)n);
	array = new Shape[(size_t)n];
	/* What is only left over behind the end keeps nothing alive. */
	pointers.reserve(64);
	for (int i = 0; i < 8; i++)
		pointers.push_back(new Left);
	pointers.resize(5);
	text = strdup("a text of the C library, of no container, sixty-four bytes long");
}

static void __attribute__((noinline)) wipe()
{
	volatile char bytes[16384];

	memset((char *)bytes, 0, sizeof(bytes));
}

int main(int argc, char **argv)
{
	char line[8];

	if (argc != 2)
		return 2;
	fill(atol(argv[1]));
	wipe();
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (read(0, line, sizeof(line)) < 0)
		return 1;
	return array == nullptr || last_seen == numbers.end() || text == nullptr;
}
