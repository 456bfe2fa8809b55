# A small service in Ruby whose trouble is known: MODE [ARGUMENT]. "ready" on stdout when it works.
require "socket"

MODE, ARGUMENT = ARGV
TOTALS = Mutex.new
SESSIONS = []

def weigh_lines(n)
  h = n
  i = 0
  while i < 5000
    h = (h * 31 + i) % 1_000_003
    i += 1
  end
  h
end

def keep_session(n)
  SESSIONS << (97 + n % 26).chr * 16384
  sleep 0.002
end

def book_seat(_n)
  TOTALS.synchronize { sleep 0.003 }
end

def ask_stock(_n)
  $backend.write("how much")
  $backend.readpartial(64)
end

def write_order(n)
  $journal.seek(n % 64 * 4096)
  $journal.write("a" * 4096)
  $journal.fsync
end

# What lives is a million small objects, and each answer has all of them looked at.
def build_answer(n)
  Array.new(2000) { |i| [i, n.to_s] }
  GC.start
end

def cache_put(n)
  $cache[n % 4096] = (97 + n % 26).chr * 16384
  sleep 0.001 if $full
end

def forever(work, threads = 1)
  threads.times do
    Thread.new do
      n = 0
      loop { send(work, n += 1) }
    end
  end
end

Thread.abort_on_exception = true
case MODE
when "hot" then forever(:weigh_lines)
when "leak" then forever(:keep_session)
when "lock" then forever(:book_seat, 6)
when "gc"
  $catalogue = Array.new(1_000_000) { |i| [i] }
  forever(:build_answer)
when "disk"
  $journal = File.open(ARGUMENT, "w")
  forever(:write_order)
when "peer"
  $backend = TCPSocket.new("127.0.0.1", ARGUMENT.to_i)
  forever(:ask_stock)
when "cache"
  $cache = []
  # So many that the heap has been collected several times: it has its size.
  65536.times { |n| cache_put(n) }
  $full = true
  forever(:cache_put)
when "idle" then 4.times { Thread.new { Queue.new.pop } }
else exit 2
end
$stdout.puts "ready"
$stdout.flush
sleep
