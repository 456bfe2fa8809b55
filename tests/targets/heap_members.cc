/*
 * Objects that only debug info knows: classes without virtual functions, arrays, elements of containers, whatever a variable leads to;
 * and what must not be named after it: a pointer to void, a union's.
 *
 *   heap_members N    then "ready"; ends with its input
 */
#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <unistd.h>

namespace shop {

struct Item {
	long id;
	double price[2];
};

struct Order {
	Order *next;
	Item *items;
	long n;
};

/* Kept by pointers to what it begins with. */
struct UrgentOrder : Order {
	long deadline[6];
};

struct Customer {
	std::string name;
	std::vector<Order *> orders;
	std::unique_ptr<Item> favourite;
};

struct Base {
	virtual ~Base() = default;
};

struct Session : Base {
	Customer *of;
	long pad[6];
};

struct Bill {
	long total[5];
};

struct Receipt {
	long total[5];
};

union Paper {
	Bill *bill;
	Receipt *receipt;
};

struct Shop {
	long opened;
	std::map<long, Customer *> customers;
	std::unordered_map<long, std::shared_ptr<Order>> pending;
	std::list<Item *> shelf;
	Session *session;
	void *opaque;
	Paper paper;
};

} // namespace shop

using namespace shop;

Shop *the_shop;
struct {
	long n;
	Item **rows;
} table;

static Order *make_urgent(long i)
{
	UrgentOrder *o = new UrgentOrder();

	o->deadline[0] = i;
	return o;
}

static Order *make_order(long i)
{
	Order *o = i % 3 ? new Order() : make_urgent(i);

	o->n = 5;
	o->items = new Item[5]();
	return o;
}

static Customer *make_customer(long i)
{
	Customer *c = new Customer();

	c->name = "a customer whose name is too long for its string";
	c->favourite.reset(new Item());
	for (long k = 0; k < 3; k++)
		c->orders.push_back(make_order(i + k));
	return c;
}

static void __attribute__((noinline)) fill(unsigned n)
{
	Shop *s = the_shop = new Shop();

	for (long i = 0; i < n; i++) {
		s->customers[i] = make_customer(i);
		s->pending[i] = std::make_shared<Order>();
		s->pending[i]->items = new Item[2]();
		s->shelf.push_back(new Item());
	}
	s->session = new Session;
	s->session->of = make_customer(0);
	s->opaque = calloc(1, 1000);
	s->paper.bill = new Bill();
	table.n = n;
	table.rows = (Item **)calloc((size_t)n, sizeof(Item *));
	for (long i = 0; i < n; i++)
		table.rows[i] = new Item();
}

int main(int argc, char **argv)
{
	char line[8];

	if (argc != 2)
		return 2;
	fill(atoi(argv[1]));
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	return read(0, line, sizeof(line)) < 0;
}
