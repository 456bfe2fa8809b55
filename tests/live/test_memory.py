"""What memscope itself takes: resident memory and the kernel's maps together, from its start to its
last file, with no table made before: at most 64 MB for a process. On a host 150 MB are meant to be
enough; what it runs may ask for more while tables are made and files named, and that is reported.
"""

import glob
import re

import programs
from harness import *

ONE, HOST = 64e6, 150e6


def maps_of(pid):
    """Bytes of the BPF maps that a process holds, as the kernel accounts them."""
    found = {}
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        try:
            with open(path, encoding="ascii", errors="replace") as f:
                text = f.read()
        except OSError:
            continue
        ident, size = re.search(r"^map_id:\s*(\d+)", text, re.M), re.search(r"^memlock:\s*(\d+)", text, re.M)
        if ident and size:
            found[ident[1]] = int(size[1])
    return sum(found.values())


def resident_at_most(pid):
    """(VmHWM, what of its memory is the maps themselves), bytes."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        peak = next(int(line.split()[1]) << 10 for line in f if line.startswith("VmHWM"))
    mapped, of_map = 0, False
    with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as f:
        for line in f:
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                of_map = "anon_inode:bpf-map" in line
            elif of_map and line.startswith("Rss:"):
                mapped += int(line.split()[1]) << 10
    return peak, mapped


def watch(*args):
    """A run with an empty cache: (run, resident bytes at most, bytes of maps)."""
    cache = scratch("cache")
    os.mkdir(cache, 0o700)
    run = Run(*args, env=dict(os.environ, MEMSCOPE_CACHE_DIR=cache))
    maps = mapped = peak = 0
    while run.alive():
        try:
            now_peak, now_mapped = resident_at_most(run.pid)
            maps, mapped, peak = max(maps, maps_of(run.pid)), max(mapped, now_mapped), max(peak, now_peak)
        except (OSError, StopIteration, ProcessLookupError):
            break
        time.sleep(0.02)
    run.finish()
    run.must()
    return run, peak - mapped, maps


def check_account(what, limit, *args):
    """Its own account of what it took is what was seen. The bytes."""
    run, resident, maps = watch(*args)
    own = run.summary()["memscope"]
    print(f"# {what}: {resident / 1e6:.1f} MB resident at most and {maps / 1e6:.1f} MB of maps; by its own account "
          f"{own['peak_kb'] * 1024 / 1e6:.1f} and {own['map_bytes'] / 1e6:.1f}")
    check(resident > 1e6 and maps > 1e6, f"{what}: nothing was seen: {resident}, {maps}")
    # Its peak is reported before its pictures are written.
    check(own["peak_kb"] * 1024 <= resident + 1e6, f"{what}: a peak of {own['peak_kb']} KiB, seen: {resident} bytes")
    # The table of live blocks is as large as they are many, and that goes up and down between our looks.
    within(own["map_bytes"], maps / 2, maps + 1e6, f"{what}: bytes of maps by its own account")
    used = own["peak_kb"] * 1024 + own["map_bytes"]
    equal(any("memscope itself used" in note for note in run.summary()["notes"]), used > limit,
          f"{what}: a note that {used} bytes are more than {limit:.0f}")
    return resident + maps


def check_limit(what, limit, *args):
    took = check_account(what, limit, *args)
    check(took <= limit, f"{what}: it took {took} bytes, expected at most {limit:.0f}")


@fact
def a_run_on_python_takes_at_most_64_mb():
    child = programs.python()
    check_limit("python3", ONE, "-p", child.pid, "-d", 3)
    check_limit("python3, every allocation", ONE, "-p", child.pid, "-d", 3, "--alloc=exact")


@fact
def a_run_on_redis_takes_at_most_64_mb():
    check_limit("redis-server", ONE, "-p", programs.redis().pid, "-d", 3)


@fact
@alone("the whole machine")
def a_run_on_the_whole_host_says_when_it_takes_more_than_150_mb():
    programs.python()
    programs.gcc()
    check_account("the host", HOST, "-a", "-d", 3)


main()
