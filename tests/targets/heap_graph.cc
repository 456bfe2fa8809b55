/*
 * A heap whose graph is known: sessions that a variable keeps, some that a thread's own stack keeps, some that nothing refers
 * to any more, alone and in rings. With LeakSanitizer the same program says what it finds lost itself.
 *
 *   heap_graph SESSIONS LOST RINGS NODES    then "ready"; ends with its input
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include <unistd.h>

struct Record {
	virtual ~Record() = default;
	char bytes[48];
};

struct Session : Record {
	std::vector<int> *prices = new std::vector<int>(100);
	Session *next = nullptr;
};

struct OnStack : Record {
};

struct Node : Record {
	Node *next;
};

/* Not destroyed at the end: what it keeps would then be lost. */
static std::map<int, Session *> &sessions = *new std::map<int, Session *>;

static Node *newest;

/* A list that is longer than anything follows link by link. */
static void __attribute__((noinline)) keep_list(int n)
{
	for (int i = 0; i < n; i++) {
		Node *node = new Node;

		node->next = newest;
		newest = node;
	}
}

/* In a function of its own, so that no register or slot of main() has them. */
static void __attribute__((noinline)) keep(int n)
{
	for (int i = 0; i < n; i++)
		sessions[i] = new Session;
}

/* Each with one that only it refers to. */
static void __attribute__((noinline)) lose(int n)
{
	for (int i = 0; i < n; i++) {
		Session *volatile lost = new Session;

		lost->next = new Session;
		lost = nullptr;
	}
}

static void __attribute__((noinline)) lose_rings(int n)
{
	for (int i = 0; i < n; i++) {
		Session *volatile first = new Session;

		first->next = new Session;
		first->next->next = first;
		first = nullptr;
	}
}

/* Overwrites what calls have left behind on the stack. */
static void __attribute__((noinline)) wipe()
{
	volatile char bytes[16384];

	memset((char *)bytes, 0, sizeof(bytes));
}

int main(int argc, char **argv)
{
	OnStack *volatile mine;
	char line[8];

	if (argc != 5)
		return 2;
	mine = new OnStack;
	keep(atoi(argv[1]));
	lose(atoi(argv[2]));
	lose_rings(atoi(argv[3]));
	keep_list(atoi(argv[4]));
	wipe();
	puts("ready");
	fflush(stdout);
	if (read(0, line, sizeof(line)) < 0)
		return 1;
	delete mine;
	return 0;
}
