"""Who holds what is waited for, and who ends waits, in the libraries of languages: each by a program that knows it."""

import os
import shutil
import subprocess

from harness import *

MARK = "[woken by]"
RUST = """
use std::sync::{mpsc, Mutex}; use std::thread; use std::time::Duration;
static REGISTRY: Mutex<u64> = Mutex::new(0);
#[inline(never)] fn lookup() -> u64 { { *REGISTRY.lock().unwrap() += 1; } std::hint::black_box(1) }
#[inline(never)] fn rebuild() -> u64 { { let mut n = REGISTRY.lock().unwrap(); thread::sleep(Duration::from_millis(10)); *n += 1; } std::hint::black_box(1) }
#[inline(never)] fn produce(to: &mpsc::Sender<u64>) { to.send(1).unwrap(); }
#[inline(never)] fn consume(from: &mpsc::Receiver<u64>) -> u64 { from.recv().unwrap() }
fn main() {
    let (to, from) = mpsc::channel();
    thread::spawn(|| loop { std::hint::black_box(lookup()); thread::sleep(Duration::from_millis(1)) });
    thread::spawn(move || { let mut n = 0; loop { n += consume(&from); if n == u64::MAX { break } } });
    thread::spawn(move || loop { produce(&to); thread::sleep(Duration::from_millis(3)) });
    println!("ready {} 0", std::process::id());
    loop { std::hint::black_box(rebuild()); thread::sleep(Duration::from_millis(3)) }
}
"""
RUBY = """
$queue, $lock = Queue.new, Mutex.new
def produce() = $queue << 1
def consume() = $queue.pop
def rebuild() = $lock.synchronize { sleep 0.01 }
def lookup() = $lock.synchronize { 1 }
Thread.new { loop { consume } }
2.times { Thread.new { loop { lookup; sleep 0.001 } } }
Thread.new { loop { produce; sleep 0.003 } }
STDOUT.sync = true
puts "ready #{$$} 0"
loop { rebuild; sleep 0.003 }
"""
NODE = """
const { Worker, isMainThread, workerData } = require("worker_threads");
if (isMainThread) {
    const words = new Int32Array(new SharedArrayBuffer(8));
    new Worker(__filename, { workerData: words });
    function wakeWaiter() { Atomics.add(words, 0, 1); Atomics.notify(words, 0); }
    setInterval(wakeWaiter, 3);
    console.log(`ready ${process.pid} 0`);
} else {
    function waitForWord() { Atomics.wait(workerData, 0, Atomics.load(workerData, 0)); }
    for (;;) waitForWord();
}
"""


def rust_program():
    rustc = shutil.which("rustc") or "/root/.cargo/bin/rustc"
    source = write("rust.rs", RUST)
    made = subprocess.run([rustc, "-O", "-C", "force-frame-pointers=no", "-o", source + ".bin", source], capture_output=True, check=False)
    return [source + ".bin"] if made.returncode == 0 else None


def write(name, text):
    path = scratch(name.split(".")[0]) + "." + name.split(".")[1]
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    return path


@once
def programs_at_work():
    """{name: (pid, thread that holds the lock)} of those that are here, and a run of all of them."""
    commands = {"C++": [os.path.join(BUILD, "targets", "cxx_locks")]}
    if shutil.which("ruby"):
        commands["Ruby"] = ["ruby", write("ruby.rb", RUBY)]
    if shutil.which("node"):
        commands["node"] = ["node", "--interpreted-frames-native-stack", write("node.js", NODE)]
    if shutil.which("rustc") or os.path.exists("/root/.cargo/bin/rustc"):
        commands["Rust"] = rust_program()
    children, pids = [], {}
    for name, argv in commands.items():
        if not argv:
            continue
        children.append(Child(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
        pids[name] = [int(x) for x in children[-1].process.stdout.readline().split()[1:]]
    run = Run("-p", ",".join(str(p[0]) for p in pids.values()), "-d", 3)
    run.must()
    for child in children:
        child.end()
    return run, pids


def pid_of(name):
    _, pids = programs_at_work()
    return pids[name] if name in pids else skip(f"{name} is not here")


def lock_row(name):
    pid = pid_of(name)[0]
    rows = [r for r in programs_at_work()[0].summary()["locks"] if r["pid"] == pid and short(r["function"]) == "lookup"]
    check(rows, f"{name}: no lock that lookup waits for: {[r for r in programs_at_work()[0].summary()['locks'] if r['pid'] == pid]}")
    return rows[0]


def short(name):
    """A function without its namespace, module, arguments and file."""
    return name.split("(")[0].split(" ")[0].split("::")[-1].split("#")[-1].split(".")[-1]


def ended(name, wait):
    """[(functions of the waker, how many)] of a program's waits in `wait` that a thread of its own ended."""
    pid, found = pid_of(name)[0], []
    for s in programs_at_work()[0].profile("wakers").samples:
        names = [short(f.name) if f.name != MARK else MARK for f in reversed(s.frames)]
        at = names.index(MARK)
        if s.labels["pid"] == pid and wait in names[:at] and s.labels.get("waker_pid") == pid:
            found.append((names[at + 1:], s.values[0]))
    return found


def woken_by(name, wait, waker, least):
    found = ended(name, wait)
    n, by = sum(x[1] for x in found), sum(x[1] for x in found if waker in x[0])
    # A condition's own lock, and a lock of an interpreter, are woken for by whoever has them.
    check(n >= least and by >= 0.9 * n, f"{name}: {by} of {n} waits in {wait} ended by {waker}: {[x for x in sorted(found, key=lambda x: -x[1]) if waker not in x[0]][:3]}")


@fact
def a_mutex_of_the_cxx_library_has_its_owner():
    row, keeper = lock_row("C++"), pid_of("C++")[1]
    equal((row["kind"], row["name"], row["owner"], short(row["held_in"])), ("mutex", "registry", keeper, "rebuild"), "kind, name, owner and what it does")
    check(row["owner_ns"] >= 0.5 * row["waited_ns"], f"{row['owner_ns']} ns of {row['waited_ns']}")


@fact
def a_condition_variable_of_the_cxx_library_is_ended_by_who_notifies():
    woken_by("C++", "consume", "produce", 200)


@fact
def a_mutex_of_rust_has_who_released_it():
    row = lock_row("Rust")
    equal((row["kind"], row["owner"], short(row["released_in"])), ("", 0, "rebuild"), "kind, owner and who released it")


@fact
def a_channel_of_rust_is_ended_by_who_sends():
    woken_by("Rust", "consume", "produce", 200)


def of_ruby(wait):
    """[(of the program's functions those in the waker's stack, is it leaving a mutex, how many)]: some of its waits are for the GVL, which ends
    them in whatever the thread that had it does, most often sleep."""
    return [([x for x in names if x in ("produce", "consume", "lookup", "rebuild", "sleep")], "rb_mutex_unlock" in names, n)
            for names, n in ended("Ruby", wait)]


@fact
def a_queue_of_ruby_is_ended_by_who_pushes_or_leaves_the_gvl():
    found = of_ruby("consume")
    n, by = sum(x[2] for x in found), sum(x[2] for x in found if "produce" in x[0])
    known = sum(x[2] for x in found if x[0])
    check(n >= 200 and by >= 0.5 * n and known >= 0.95 * n, f"of {n} waits in consume {by} are ended in produce, {known} in some function of the program")


@fact
def a_mutex_of_ruby_is_ended_by_who_leaves_it():
    found = [x for x in of_ruby("lookup") if x[1]]
    n = sum(x[2] for x in found)
    by, others = (sum(x[2] for x in found if f in x[0]) for f in ("rebuild", "lookup"))
    # Who sleeps under it wakes one worker, which wakes the other.
    check(n >= 50 and by + others >= 0.95 * n and by >= 0.3 * n, f"of {n} waits for the mutex {by} are ended in rebuild, {others} in lookup: {found[:3]}")


@fact
def a_worker_of_node_that_waits_for_a_word_is_ended_by_who_notifies():
    woken_by("node", "waitForWord", "wakeWaiter", 200)


main()
