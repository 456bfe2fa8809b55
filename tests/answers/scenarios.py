"""The scenarios: small services, and programs nobody here wrote, whose trouble is known, a row each.

Each row declares its truth: the cause, and the function that the last sentence has to name ("" where there is none to
name, else a regular expression). What makes the trouble is the service itself or what is done to it from outside: a slow
peer, a slow disk, other programs that have the CPUs, a CPU quota, a lock that somebody holds, a stop.

Rows that are held out are no guide: no rule or threshold of the verdict may be changed because of what they say. They
were chosen before their first run, a third of all: those of the first 38 by hand, the others by their names.
"""

import collections
import zlib

Scenario = collections.namedtuple("Scenario", "name language mode command program cause function seconds held_out quick")

# What the trouble is, by the mode of the service.
CAUSES = {
    "hot": "cpu", "leak": "leak", "gc": "gc", "lock": "lock", "disk": "disk", "peer": "peer", "starved": "starved",
    "quota": "quota", "stopped": "stopped", "idle": "idle", "cache": "healthy",
    "commit": "disk",  # one writes, and the others wait for its lock
    # Servers, with clients: of a slow peer's answers; with a database that is quick, and a long poll beside it. Who is sent news and has
    # not asked for it, and who asks a queue for work and there is none.
    "front": "peer", "keepalive": "idle", "news": "idle", "worker": "idle",
}
# Two causes at once, either of which may come first; and both functions.
MIXES = {"c": (("leak",), "(?=.*remember_session)(?=.*write_journal)"),
         "c++": (("cpu", "disk"), "(?=.*rank_offers)(?=.*commit)")}
# How long is recorded: a leak must go on for a while before it is one.
SECONDS = {"leak": 25, "cache": 12}

COMMANDS = {
    "c": ["BUILT/service"], "c++": ["BUILT/service_cxx"], "go": ["BUILT/service_go"], "rust": ["BUILT/service_rust"],
    "haskell": ["BUILT/service_hs"], "java": ["java", "-Xmx256m", "-cp", "BUILT", "Service"],
    "python": ["python3", "SOURCES/service.py"], "node": ["node", "SOURCES/service.js"], "ruby": ["ruby", "SOURCES/service.rb"],
    "php": ["php", "SOURCES/service.php"], "perl": ["perl", "SOURCES/service.pl"],
    "asyncio": ["python3", "SOURCES/service_asyncio.py"],
}
# Of each language, its scenarios and the function to name. $sgo… is what GHC makes of Data.Map.insert in updateIndex.
SERVICES = {
    "c": {"hot": "hash_records", "leak": "remember_session", "lock": "update_totals", "disk": "write_journal",
          "peer": "ask_backend", "starved": "", "quota": "", "idle": "", "cache": "", "commit": "write_journal",
          "mix": MIXES["c"][1]},
    "c++": {"hot": "rank_offers", "leak": "remember", "lock": "add_order", "disk": "commit",
            "peer": "fetch_price", "starved": "", "quota": "", "idle": "", "cache": "", "mix": MIXES["c++"][1]},
    "python": {"hot": "score_documents", "leak": "remember_session", "lock": "update_totals", "disk": "write_journal",
               "peer": "ask_backend", "starved": "", "quota": "", "idle": "", "cache": "", "gc": "build_answer",
               "commit": "write_journal"},
    "go": {"hot": "rankPages", "idle": "", "leak": "keepTicket", "lock": "bookSeat", "disk": "writeLedger",
           "peer": "askPricing", "gc": "buildAnswer|growTree", "cache": ""},
    "rust": {"hot": "digest_rows", "lock": "book_order", "leak": "keep_ticket", "disk": "append_ledger",
             "peer": "ask_pricing", "cache": "", "idle": "", "starved": "", "quota": ""},
    "java": {"hot": "rankOrders", "idle": "", "leak": "rememberOrder", "lock": "bookOrder", "disk": "writeLedger",
             "peer": "askPricing", "gc": "buildAnswer|growTree", "cache": "", "quota": "", "starved": "",
             "commit": "writeLedger"},
    "node": {"hot": "rankItems", "idle": "", "leak": "rememberVisit", "disk": "writeJournal", "peer": "",
             "gc": "buildAnswer|growTree", "cache": "", "starved": "", "quota": "",
             "front": "", "keepalive": "", "news": "", "worker": ""},
    "asyncio": {"peer": "fetch_price", "front": "fetch_price", "lock": "update_totals", "idle": "", "keepalive": "", "news": "",
                "worker": "", "hot": "score_documents"},
    "ruby": {"hot": "weigh_lines", "leak": "keep_session", "lock": "book_seat", "disk": "write_order", "peer": "ask_stock",
             "gc": "build_answer", "idle": "", "cache": "", "starved": "", "quota": ""},
    "php": {"hot": "rankProducts", "leak": "rememberCart", "disk": "writeOrder", "peer": "askStock", "lock": "bookSeat",
            "gc": "buildAnswer", "idle": "", "cache": "", "starved": "", "quota": ""},
    "perl": {"hot": "weigh_words", "leak": "keep_session", "disk": "append_log", "peer": "ask_stock", "idle": "",
             "lock": "book_seat", "cache": "", "starved": "", "quota": ""},
    "haskell": {"hot": "scoreDocs", "leak": "keepSession", "gc": "updateIndex|sgo", "idle": "", "lock": "bookOrder",
                "disk": "writeLedger", "peer": "askPricing", "cache": "", "starved": "", "quota": ""},
}
# Of programs that nobody here wrote. Where those are stripped, the library that stands in for the function.
PROGRAMS = {
    "redis": {"idle": "", "leak": "", "hot": "keysCommand|stringmatchlen|dictNext", "disk": "flushAppendOnlyFile", "cache": "",
              "stopped": ""},
    "postgres": {"idle": "", "lock": "ProcSleep|LockAcquire", "hot": "md5|MD5",
                 "disk": "issue_xlog_fsync|XLogFlush|pg_fdatasync"},
    "nginx": {"idle": "", "peer": ""},
    "httpd": {"idle": "", "quota": ""},
    "sqlite": {"hot": "sqlite3", "disk": "sqlite3"},
    "dd": {"disk": ""},
    "xz": {"starved": ""},
    "flock": {"lock": ""},
    "php-fpm": {"idle": ""},
    "memcached": {"cache": ""},
    "make": {"hot": "cc1plus"},
}
# Of them, those that are not named after their program.
LANGUAGE = "programs"

FIRST_HELD_OUT = {
    "c-leak", "c-peer", "c-quota", "c++-hot", "c++-disk", "c++-starved", "python-lock", "python-idle", "python-cache",
    "go-hot", "java-hot", "rust-lock", "postgres-idle",
}
# The first 38: those of C, C++ and Python but for GC pressure and what came later, and these.
FIRST = {"go-hot", "go-idle", "rust-hot", "rust-lock", "perl-hot", "java-hot", "java-idle", "node-hot", "node-idle",
         "redis-idle", "postgres-idle"}
# A dozen for `make check`; none that takes long.
QUICK = {
    "c-hot", "c-lock", "c-disk", "c-idle", "c-commit", "c++-peer", "c++-lock", "python-hot", "python-peer", "python-disk",
    "java-idle", "node-idle", "redis-idle", "asyncio-front",
}


def is_held_out(name):
    first = name in FIRST or name.startswith(("c-", "c++-", "python-")) and name != "python-gc"
    return name in FIRST_HELD_OUT if first else zlib.crc32(name.encode()) % 8 < 3


def service_mode(mode):
    """Who is short of CPU computes: that is its work, and others' doing is the trouble."""
    return "hot" if mode in ("starved", "quota") else mode


def scenario(language, mode, function, command=None, program=None):
    name = f"{program or language}-{mode}"
    cause = MIXES[language][0][0] if mode == "mix" else CAUSES[mode]
    seconds = SECONDS.get(cause if mode == "mix" else mode, 5)
    return Scenario(name, language, mode, command, program, cause, function, seconds, is_held_out(name),
                    name in QUICK)


def scenarios():
    """BUILT: the folder of what was built; SOURCES: that of the sources; ARGUMENT: of the mode."""
    rows = []
    for language, modes in SERVICES.items():
        for mode, function in modes.items():
            command = COMMANDS[language] + [service_mode(mode), "ARGUMENT"]
            if (language, mode) == ("java", "gc"):
                command[1] = "-Xmx64m"
            elif (language, mode) == ("node", "gc"):
                command[1:1] = ["--max-old-space-size=128"]
            rows.append(scenario(language, mode, function, command=command))
    for program, modes in PROGRAMS.items():
        for mode, function in modes.items():
            rows.append(scenario(LANGUAGE, mode, function, program=program))
    return rows
