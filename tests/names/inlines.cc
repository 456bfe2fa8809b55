// Inlined calls of many shapes, for tests/names/test_names.py: templates, lambdas, constructors,
// anonymous namespaces, local classes, recursion, exceptions (cold parts), clones. Built with -O2 -g.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace {

struct Shape {
	virtual ~Shape() = default;
	virtual double area() const = 0;
};

struct Square : Shape {
	double side;
	explicit Square(double s) : side(s) {}
	double area() const override { return side * side; }
};

struct Circle : Shape {
	double radius;
	explicit Circle(double r) : radius(r)
	{
		if (r < 0)
			throw std::invalid_argument("a circle of negative radius");
	}
	double area() const override { return 3.14159 * radius * radius; }
};

template <unsigned N> struct Sum {
	static inline long of(const long *v) { return v[N - 1] * (N % 7) + Sum<N - 1>::of(v); }
};

template <> struct Sum<0> {
	static inline long of(const long *) { return 0; }
};

inline int third(int x)
{
	return x % 3 ? x * 7 : x / 3;
}

inline int second(int x)
{
	int sum = 0;

	for (int i = 0; i < x; i++)
		sum += third(i) ^ x;
	return sum;
}

inline int first(int x)
{
	return second(x) + second(x / 2);
}

} // namespace

namespace app {

template <typename T> class Table {
	std::map<T, std::vector<T>> rows;

public:
	void add(const T &key, const T &value)
	{
		auto &row = rows[key];

		row.push_back(value);
		std::sort(row.begin(), row.end(), [](const T &a, const T &b) { return b < a; });
	}

	size_t longest() const
	{
		size_t n = 0;

		for (const auto &[key, row] : rows)
			n = std::max(n, row.size());
		return n;
	}
};

__attribute__((noinline)) int chain(int x)
{
	return first(x) + 1;
}

__attribute__((noinline)) static double areas(const std::vector<std::unique_ptr<Shape>> &shapes)
{
	return std::accumulate(shapes.begin(), shapes.end(), 0.0,
			       [](double sum, const auto &s) { return sum + s->area(); });
}

__attribute__((noinline)) static long walk(int depth, const std::function<long(int)> &f)
{
	struct Local {
		static long twice(long v) { return v + v; }
	};

	return depth ? Local::twice(walk(depth - 1, f)) % 1009 + f(depth) : 1;
}

__attribute__((noinline)) static std::string words(const std::string &text)
{
	std::unordered_map<std::string, int> count;
	std::istringstream in(text);
	std::ostringstream out;
	std::string word;

	while (in >> word)
		count[word]++;
	for (const auto &[w, n] : count)
		out << w << '=' << n << ' ';
	return out.str();
}

using Value = std::variant<int, double, std::string>;

__attribute__((noinline)) static size_t visit_all(const std::vector<Value> &values)
{
	size_t n = 0;

	for (const auto &v : values)
		n += std::visit(
			[](const auto &x) -> size_t {
				if constexpr (std::is_same_v<std::decay_t<decltype(x)>, std::string>)
					return x.size();
				else
					return static_cast<size_t>(x);
			},
			v);
	return n;
}

} // namespace app

int main(int argc, char **argv)
{
	std::vector<std::unique_ptr<Shape>> shapes;
	app::Table<std::string> names;
	app::Table<int> numbers;
	long v[32];

	for (int i = 0; i < 32; i++)
		v[i] = i * argc;
	for (int i = 0; i < argc * 8; i++) {
		shapes.push_back(std::make_unique<Square>(i));
		try {
			shapes.push_back(std::make_unique<Circle>(i - 2));
		} catch (const std::exception &e) {
			std::puts(e.what());
		}
		names.add(argv[0], std::to_string(i));
		numbers.add(i % 3, i);
	}
	std::printf("%d %f %ld %ld %zu %zu %s %zu\n", app::chain(argc * 10), app::areas(shapes),
		    app::walk(argc + 8, [&](int i) { return v[i % 32]; }), Sum<32>::of(v),
		    names.longest(), numbers.longest(), app::words("a b a c").c_str(),
		    app::visit_all({ 1, 2.5, std::string("three") }));
	return 0;
}
