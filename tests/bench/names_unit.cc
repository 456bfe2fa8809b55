#include <algorithm>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

template <int N> struct Id000 {
	std::string name;
	long values[N + 1];
	bool operator<(const Id000 &o) const { return values[0] < o.values[0]; }
	bool operator==(const Id000 &o) const { return values[0] == o.values[0]; }
};
template <int N> struct std::hash<Id000<N>> {
	size_t operator()(const Id000<N> &v) const { return v.values[0] * 31; }
};

template <int N> __attribute__((noinline)) long work_Id000(long seed)
{
	using T = Id000<N>;
	std::vector<T> v; std::map<T, std::string> m; std::set<T> s; std::unordered_map<T, T> u;
	std::deque<T> d; std::list<T> l; std::variant<int, T, std::string> x; std::optional<T> o;
	std::ostringstream out;
	for (long i = 0; i < seed; i++) {
		T t{ std::to_string(i), { i % 7 } };
		v.push_back(t); m[t] = t.name; s.insert(t); u[t] = t; d.push_front(t); l.push_back(t);
		x = t; o = t;
		out << std::visit([](const auto &y) -> long { if constexpr (std::is_same_v<std::decay_t<decltype(y)>, T>) return y.values[0]; else return 0; }, x);
	}
	std::sort(v.begin(), v.end()); std::stable_sort(d.begin(), d.end()); l.sort();
	std::function<long(const T &)> f = [&](const T &t) { return t.values[0] + (long)m.size(); };
	return std::accumulate(v.begin(), v.end(), 0L, [&](long a, const T &t) { return a + f(t); }) + (long)s.size() + (long)u.size() + (long)out.str().size() + o->values[0];
}
template <int... N> long all(long seed, std::integer_sequence<int, N...>) { return (work_Id000<N>(seed) + ... + 0L); }
long entry_Id000(long seed) { return all(seed, std::make_integer_sequence<int, 12>()); }
