"""Frames of Perl: each stack that caller() sees is the one in the profile, function by function, file by file, line by
line, for waits, samples and allocations; in Debian's Perl, and in those that PERLS names (paths, by spaces)."""

import re

from harness import *
from languages import *
from stacks import whole

LANG = "[Perl]"
PROGRAM = os.path.join(TOP, "tests/targets/perl_stacks.pl")
ALLOCATED = 100000  # bytes, by the program; Perl makes room for a quarter more


def perls():
    paths = [path for path in ["/usr/bin/perl", *os.environ.get("PERLS", "").split()] if os.path.exists(path)]
    if not paths:
        skip("/usr/bin/perl is not installed")
    return paths


def program(path):
    """The program under one interpreter, when it has been everywhere once."""
    return Printer(path, [path, PROGRAM, "600"], json_line, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
                   env={**os.environ, "PERL_STACKS_THREADS": "1" if path == "/usr/bin/perl" else ""})


lang_frames = frames_of(LANG)


@once
def everywhere():
    children = [program(path) for path in perls()]
    for child in children:
        child.ready()
    run = Run("-p", ",".join(str(c.pid) for c in children), "--alloc=exact", "--offcpu=exact", "-F", 999,
              "--max-overhead", 1000)
    run.ready()
    for child in children:
        has_worked(child.pid, 0.5, 80)
    run.stop()
    for child in children:
        child.end()
    return run, children


def is_place(frames, place):
    """What the profile has of a file that is required once: its code may have been freed before it could be named."""
    return len(frames) == len(place) and all(got == want or (got == ("(require)", "", 0) and "(require)" in want[0])
                                             for got, want in zip(frames, place))


def is_of_a_thread(frames, truth):
    """A thread has an interpreter of its own, which is freed when it is joined, all its code with it: on a busy machine before
    it could be named."""
    return len(frames) in {len(t) for t in truth} and {f[0] for f in frames} == {"[Perl code that is gone]"}


def is_of_an_eval(frames, truth):
    """Code that was made by eval and called last is freed when it ends."""
    return frames[0][0] == "[Perl code that is gone]" and any(len(t) == len(frames) and t[1:] == frames[1:] for t in truth)


def is_gone(frames, truth):
    return is_of_a_thread(frames, truth) or is_of_an_eval(frames, truth) or any(is_place(frames, place) for place in truth if "Required.pm" in str(place))


compare = Comparison("Perl", lang_frames, is_gone=is_gone)


def sleeps(sample, _profile):
    """In a place; the program itself looks at its input."""
    return any(re.match("do_select$|core_sys_select", f.name) for f in sample.frames) and \
        [f[0] for f in lang_frames(sample)] != ["(main) (perl_stacks.pl)"]


@fact
def perl_stacks_of_waits_are_those_that_perl_prints():
    compare(*everywhere(), "offcpu", "sleep", sleeps, 0.95)


@fact
def perl_stacks_of_allocations_are_those_that_perl_prints():
    compare(*everywhere(), "alloc", "alloc", bytes_each(ALLOCATED, 1.3 * ALLOCATED), 0.95)


@fact
def perl_stacks_of_samples_are_those_that_perl_prints():
    run, children = everywhere()
    lines = {frames[0] for child in children for what, frames in child.truth if what == "spin"}  # each calls C
    compare(run, children, "oncpu", "spin", lambda s, _: lang_frames(s)[:1] and lang_frames(s)[0] in lines, 0.3)


@fact
def stacks_of_perl_are_whole():
    run, _ = everywhere()
    for source in ("oncpu", "offcpu", "alloc"):
        # 0.4 to 0.7 % were guessed in perlcritic: of few samples chance has more.
        whole(run, source, 100, "Perl", usual=0.005)
    nothing_damaged(run)


# What each does is the same, and is all of Perl: so many rounds are so much time.
SPLIT = """
sub spin { my ($n) = @_; my $x = 0; for my $i (1 .. $n) { $x = ($x * 31 + $i) % 1000003 } $x }
sub seventy { spin(7000) }
sub twenty { spin(2000) }
sub ten { spin(1000) }
while (1) { seventy(); twenty(); ten() }
"""


@fact
def a_split_of_70_20_10_between_subs_of_perl_is_found():
    child = at_work_on(perls()[0], SPLIT, ".pl")
    run = Run("-p", child.pid, "--only", "oncpu", "-F", 999)
    run.ready()
    has_worked(child.pid, 3)
    run.stop()
    split_of_70_20_10(run, LANG, "main::")


# A library is mapped over what was there, again and again: while memscope does not know what, stacks are walked later.
REMAPS = """
require DynaLoader;
sub spin { my $x = 0; $x = ($x * 31 + $_) % 1000003 for 1 .. 60000 }
sub turn {
    my ($library) = @_;
    my $at = DynaLoader::dl_load_file($library) or die;
    spin();
    DynaLoader::dl_unload_file($at);
    my @sorted = sort { spin(); $a <=> $b } 2, 1;
}
sub rounds { turn(@_) while 1 }
rounds(DynaLoader::dl_findfile("libz.so.1") || "libz.so.1");
"""


@fact
def stacks_of_perl_that_are_walked_later_have_its_frames_of_then():
    run = stopped_meanwhile([at_work_on(perls()[0], REMAPS, ".pl")], 49, 0.3, 5)
    stacks = [functions_of(s, LANG) for s in run.profile("oncpu").samples]
    chain = ["main::spin", "main::turn", "main::rounds", "(main)"]
    odd = [s for s in stacks if not s or s != chain[-len(s):]]
    check(stacks and not odd, f"{len(odd)} of {len(stacks)} stacks do not have their frames: {odd[:2]}")
    spins = [s for s in stacks if s == chain]
    check(len(spins) >= 0.5 * len(stacks), f"only {len(spins)} of {len(stacks)} stacks have all of them")


main()
