"""What blocks of native programs are: containers of libstdc++ whose elements the target knows, and a redis with known keys."""

import socket

from harness import *

N, KEYS = 6000, 10000
OUTSIDE = "std::vector buffer, outside of its elements"


def ask(*args):
    done = subprocess.run([MEMSCOPE, "heap", *map(str, args), "--json", "--top", "100000"], capture_output=True, text=True,
                          timeout=FINISH_SEC, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise Broken(f"memscope heap {' '.join(map(str, args))}: status {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def sums(pairs):
    total = collections.Counter()
    for key, n in pairs:
        total[key] += n
    return dict(total)


def census(pid):
    return {row["type"]: row for row in ask("census", "-p", pid)["types"]}


@once
def containers():
    return Target("heap_containers", N)


@once
def containers_census():
    return census(containers().pid)


@once
def redis():
    """A server with as many keys, each of a value, and nothing else."""
    need("redis-server")
    path = scratch("redis") + ".sock"
    child = Child(["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", os.path.dirname(path)],
                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    until(lambda: os.path.exists(path), "redis listens")
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(FINISH_SEC)
        s.connect(path)
        for i in range(KEYS):
            s.sendall(f"SET key:{i} value-of-{i}\r\n".encode())
        got = 0
        while got < 5 * KEYS:
            got += len(s.recv(1 << 16))
    return child


@fact
def nodes_and_buffers_of_containers_are_counted():
    found = containers_census()
    for name, count in (("std::map node", 2 * N), ("std::unordered_map node", N), ("std::list node", N), ("std::unordered_map buckets", 1),
                        ("std::deque map", 1), ("std::string buffer", 2 * N), ("std::vector buffer", 2), ("Left", 8), ("Shape[]", 1),
                        ("std::vector buffer of Shape", 1), ("C string", 1)):
        equal(found.get(name, {}).get("objects"), count, f"blocks that are {name}")
    equal(found["std::map node"]["known_by"], "counted", "how nodes are known")
    equal(found["std::string buffer"]["known_by"], "shape", "how strings are known")
    equal(found["Left"]["known_by"], "RTTI", "how objects of classes are known")


@fact
def chunks_of_a_deque_are_those_between_its_ends():
    # A chunk has 64 numbers of 8 bytes; a third of all was taken from the front, whose chunks were freed.
    equal(containers_census()["std::deque chunk"]["objects"], N // 64 - (N // 3) // 64 + 1, "chunks")


@fact
def nearly_all_bytes_of_a_program_of_containers_have_a_type():
    found = containers_census()
    whole = sum(row["bytes"] for row in found.values())
    # What has none is what the C and C++ libraries take for themselves: 72 KiB for exceptions, and buffers of files.
    check(found["(unknown)"]["bytes"] < 100 << 10, f"{found['(unknown)']} of {whole} bytes have no type")


@fact
def nodes_are_kept_by_their_container_and_not_by_an_iterator():
    rows = ask("retainers", "-p", containers().pid, "type:std::map node")["retainers"]
    equal(sums((r["through"], r["objects"]) for r in rows), {"the variable numbers": N, "the variable names": N}, "what keeps nodes of maps")


@fact
def what_a_vector_has_left_behind_its_end_is_said_to_be_that():
    rows = ask("retainers", "-p", containers().pid, "type:Left")["retainers"]
    outside = ((OUTSIDE in r["chain"], r["objects"]) for r in rows if r["through"] == "the variable pointers")
    equal(sums(outside), {False: 5, True: 3}, "objects of a vector that was made shorter")


@fact
def containers_are_listed_by_their_elements_with_what_keeps_them():
    rows = {(r["through"], r["container"]): (r["elements"], r["unit"]) for r in ask("caches", "-p", containers().pid)["caches"]}
    for name, container, elements, unit in (("numbers", "std::map", N, "elements"), ("names", "std::map", N, "elements"),
                                            ("sessions", "std::unordered_map", N, "elements"), ("queue", "std::list", N, "elements"),
                                            ("jobs", "std::deque", N - N // 3, "words"), ("series", "std::vector", N // 2, "words"),
                                            ("shapes", "std::vector", 2 * N, "words"), ("pointers", "std::vector", 5, "words")):
        equal(rows.get((f"the variable {name}", container)), (elements, unit), f"elements of {name}")


@fact
def equal_texts_are_found_and_not_shown_unless_asked():
    # The values of sessions are 26 texts of 100 letters; their blocks have 104 bytes.
    answer = ask("dups", "-p", containers().pid)
    rows = [r for r in answer["dups"] if r["type"] == "std::string buffer"]
    equal((len(rows), sum(r["objects"] for r in rows), sum(r["saved"] for r in rows)), (26, N, 104 * (N - 26)), "texts, copies, bytes saved")
    check(not any("value" in r for r in answer["dups"]), "values that nobody asked for")
    shown = ask("dups", "-p", containers().pid, "--contents", "all")["dups"]
    equal(sum(r["value"].startswith('"' + 60 * "z") for r in shown), 1, "rows that show a text of 60 letters z")


@fact
def a_file_has_containers_and_without_contents_no_texts():
    path = scratch("containers")
    subprocess.run([MEMSCOPE, "heap", "snapshot", "-p", str(containers().pid), "-o", path], timeout=FINISH_SEC, check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    equal(ask("caches", path)["caches"], ask("caches", "-p", containers().pid)["caches"], "containers of the file, and of the process")
    equal({r["type"]: (r["objects"], r["known_by"]) for r in ask("census", path)["types"]},
          {name: (r["objects"], r["known_by"]) for name, r in containers_census().items() if r["objects"]}, "types")
    for args in (("dups", path), ("search", path, "text:lie")):
        done = subprocess.run([MEMSCOPE, "heap", *args], capture_output=True, text=True, timeout=FINISH_SEC, check=False,
                              stdin=subprocess.DEVNULL)
        check(done.returncode == 1 and "no contents" in done.stderr, f"{args}: {done.returncode}, {done.stderr}")


@fact
def texts_are_searched_for():
    answer = ask("search", "-p", containers().pid, "text:too long to lie in its string")
    equal({r["type"] for r in answer["rows"]}, {"std::string buffer"}, "what has the text")
    equal(answer["objects"], N, "objects that have the text")


@fact
def objects_that_variables_lead_to_are_named_by_debug_info():
    n = 300
    found = census(Target("heap_members", n).pid)
    # Of each three orders of a customer one is urgent, which has a larger block; each order has five items, each pending one two.
    for name, count in (("shop::Customer", n + 1), ("shop::Order", 2 * (n + 1)), ("shop::UrgentOrder", n + 1), ("shop::Item[]", 4 * n + 3),
                        ("shop::Item", 3 * n + 1), ("shop::Item*[]", 1), ("shop::Shop", 1)):
        row = found.get(name, {})
        equal((row.get("objects"), row.get("known_by")), (count, "member"), f"blocks that are {name}, and how that is known")
    # What points to them may be either of two, or anything.
    check("shop::Bill" not in found and "shop::Receipt" not in found, "a type that only a union has")
    equal((found["shop::Session"]["known_by"], found["std::map node"]["known_by"]), ("RTTI", "counted"), "what is known better")
    equal(found["std::string buffer"]["objects"], n + 1, "strings, and nothing that only begins with one")


@fact
def containers_of_libcxx_are_counted():
    need("clang++")
    path = scratch("libcxx")
    made = subprocess.run(["clang++", "-stdlib=libc++", "-O1", "-o", path, os.path.join(TOP, "tests/targets/heap_containers.cc")],
                          capture_output=True, check=False)
    if made.returncode:
        skip("libc++-dev is not installed")
    child = Child([path, str(N)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.process.stdout.readline()
    found = census(child.pid)
    for name, count in (("std::map node", 2 * N), ("std::unordered_map node", N), ("std::list node", N), ("std::unordered_map buckets", 1),
                        ("std::deque map", 1), ("std::string buffer", 2 * N), ("std::vector buffer", 2), ("Left", 8)):
        equal(found.get(name, {}).get("objects"), count, f"blocks that are {name}")
    equal((found["std::map node"]["known_by"], found["std::string buffer"]["known_by"]), ("counted", "shape"), "how they are known")
    rows = {(r["through"], r["container"]): r["elements"] for r in ask("caches", "-p", child.pid)["caches"]}
    for name, container, elements in (("numbers", "std::map (libc++)", N), ("names", "std::map (libc++)", N), ("queue", "std::list", N),
                                      ("sessions", "std::unordered_map", N), ("jobs", "std::deque (libc++)", N - N // 3)):
        equal(rows.get((f"the variable {name}", container)), elements, f"elements of {name}")


RUST = """
use std::io::{Read, Write};
use std::rc::Rc;
use std::sync::Arc;
trait Shape { fn corners(&self) -> u64; }
struct Circle { name: String, radius: [u64; 3] }
struct Square { name: String, side: [u64; 6] }
impl Shape for Circle { #[inline(never)] fn corners(&self) -> u64 { self.radius[0] } }
impl Shape for Square { #[inline(never)] fn corners(&self) -> u64 { self.side[0] + 4 + self.name.len() as u64 } }
fn main() {
    let n: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut shapes: Vec<Box<dyn Shape>> = Vec::new();
    let mut shared: Vec<Rc<dyn Shape>> = Vec::new();
    let mut sent: Vec<Arc<dyn Shape>> = Vec::new();
    for i in 0..n {
        shapes.push(Box::new(Circle { name: format!("a circle whose number is {}", i), radius: [i; 3] }));
        shapes.push(Box::new(Square { name: format!("a square whose number is {}", i), side: [i; 6] }));
        shared.push(Rc::new(Circle { name: format!("a shared circle, number {}", i), radius: [i; 3] }));
    }
    for i in 0..n / 2 { sent.push(Arc::new(Square { name: format!("a sent square, number {}", i), side: [i; 6] })); }
    println!("ready {}", std::process::id());
    std::io::stdout().flush().unwrap();
    let mut line = [0u8; 8];
    let _ = std::io::stdin().read(&mut line);
    let sum: u64 = shapes.iter().map(|s| s.corners()).sum::<u64>() + shared.iter().map(|s| s.corners()).sum::<u64>()
        + sent.iter().map(|s| s.corners()).sum::<u64>();
    std::process::exit((sum == 1) as i32);
}
"""


RUST_SHOP = """
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, OnceLock};
struct Item { id: u64, price: [f64; 5] }
struct Order { items: Vec<Item>, gift: Option<Box<Item>>, notes: Vec<String> }
struct Customer { name: String, orders: Vec<Box<Order>>, recent: VecDeque<Arc<Item>> }
enum Event { None, Paid(Box<Order>), Sent(u64, Box<Item>) }
struct Shop { customers: HashMap<u64, Customer>, by_name: HashMap<String, Box<Customer>>, log: Vec<Event>, index: BTreeMap<u64, Box<Item>> }
static SHOP: OnceLock<Mutex<Shop>> = OnceLock::new();
fn item(id: u64) -> Item { Item { id, price: [1.5; 5] } }
fn customer(i: u64) -> Customer {
    let mut c = Customer { name: format!("a customer whose number is {}", i), orders: Vec::new(), recent: VecDeque::new() };
    for k in 0..3 {
        c.orders.push(Box::new(Order { items: (0..4).map(item).collect(), gift: Some(Box::new(item(k))), notes: vec![format!("note {}", k)] }));
    }
    c.recent.push_back(Arc::new(item(i)));
    c
}
#[inline(never)]
fn fill(n: u64) {
    let mut s = Shop { customers: HashMap::new(), by_name: HashMap::new(), log: Vec::new(), index: BTreeMap::new() };
    for i in 0..n {
        s.customers.insert(i, customer(i));
        s.by_name.insert(format!("key {}", i), Box::new(customer(i)));
        s.log.push(match i % 3 {
            0 => Event::None,
            1 => Event::Paid(Box::new(Order { items: vec![], gift: None, notes: vec![] })),
            _ => Event::Sent(i, Box::new(item(i))),
        });
        s.index.insert(i, Box::new(item(i)));
    }
    let _ = SHOP.set(Mutex::new(s));
}
fn main() {
    fill(std::env::args().nth(1).unwrap().parse().unwrap());
    println!("ready {}", std::process::id());
    std::io::stdout().flush().unwrap();
    let mut line = [0u8; 8];
    let _ = std::io::stdin().read(&mut line);
    let s = SHOP.get().unwrap().lock().unwrap();
    let mut sum = 0.0;
    for c in s.customers.values().chain(s.by_name.values().map(|c| &**c)) {
        let o = &c.orders[0];
        sum += o.items[0].price[0] + c.recent[0].id as f64 + c.name.len() as f64 + o.gift.as_ref().unwrap().id as f64 + o.notes[0].len() as f64;
    }
    for e in &s.log { match e { Event::Paid(o) => sum += o.items.len() as f64, Event::Sent(n, i) => sum += *n as f64 + i.id as f64, _ => {} } }
    std::process::exit((sum == s.index.len() as f64) as i32);
}
"""


def rust(text, name, *flags):
    """A process of a program of Rust that is compiled now, and is ready."""
    rustc = shutil.which("rustc") or "/root/.cargo/bin/rustc"
    if not os.path.exists(rustc):
        skip("rustc is not installed")
    source = scratch(name) + ".rs"
    with open(source, "w", encoding="ascii") as f:
        f.write(text)
    made = subprocess.run([rustc, "-O", *flags, "--crate-name", name, "-o", source + ".bin", source], capture_output=True, check=False)
    if made.returncode:
        skip(f"rustc does not work here: {made.stderr.decode()[-100:]}")
    child = Child([source + ".bin", str(N)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.process.stdout.readline()
    return child


@fact
def what_collections_of_rust_lead_to_is_named_by_debug_info():
    child = rust(RUST_SHOP, "shop", "-g")
    found = census(child.pid)
    for name, count in (("shop::Customer", N), ("shop::Item[]", 6 * N), ("shop::Order", 6 * N + N // 3), ("shop::Item", 7 * N + N // 3)):
        # Blocks that are somewhat larger than they need to be may look like something else.
        count_of = found.get(name, {}).get("objects", 0)
        check(0.99 * count <= count_of <= 1.01 * count, f"blocks that are {name}: {count_of} of {count}")
        equal(found[name]["known_by"], "member", f"how {name} is known")
    check("alloc::collections::btree::node::InternalNode<u64, alloc::boxed::Box<shop::Item, alloc::alloc::Global>>" in found, "nodes of a BTreeMap")
    rows = [r for r in ask("caches", "-p", child.pid)["caches"] if r["container"] == "HashMap"]
    equal([r["elements"] for r in rows], [N, N], "elements of hash maps")
    check(all(r["through"].startswith("the variable shop::SHOP") for r in rows), f"what keeps them: {rows}")


@fact
def values_behind_dyn_of_rust_are_named_by_their_vtables():
    found = census(rust(RUST, "shapes").pid)
    for name, count in (("shapes::Circle", N), ("shapes::Square", N), ("Rc or Arc of shapes::Circle", N),
                        ("Rc or Arc of shapes::Square", N // 2), ("String buffer", 3 * N + N // 2)):
        equal(found.get(name, {}).get("objects"), count, f"blocks that are {name}")
    equal((found["shapes::Circle"]["known_by"], found["String buffer"]["known_by"]), ("vtable", "shape"), "how they are known")


@fact
def entries_and_values_of_redis_are_counted():
    found = census(redis().pid)
    # Those of its commands and configuration come on top, each at most a few hundred.
    for name in ("redis dict entry", "redis string object", "redis string (sds)"):
        count = found.get(name, {}).get("objects", 0)
        check(KEYS <= count < KEYS + 3000, f"blocks that are {name}: {count}")
    rows = ask("caches", "-p", redis().pid)["caches"]
    check(rows and (rows[0]["elements"], rows[0]["container"]) == (KEYS, "redis dict"), f"the largest container is {rows[:1]}")
    rows = ask("retainers", "-p", redis().pid, "type:redis string object")["retainers"]
    # Entries of one bucket are linked: how many chains lead through such is the hash's seed's.
    chain = [link.split(", several")[0] for link in rows[0]["chain"]]
    check(rows and rows[0]["through"].startswith("the variable server+") and rows[0]["objects"] > 0.9 * KEYS and
          chain[-3:] == ["redis dict table", "redis dict entry", "redis string object"], f"what keeps most values is {rows[:1]}")


main()
