# Ruby code in known places, from 2.7 on: prints each of them as it sees itself, then goes through all of them again and
# again. For test_ruby.py.
#
#   rb_stacks.rb [SECONDS]        a line for each place, its fields divided by tabs:  what, shape, frame…
#
# A frame is label|file|line, leaf first, by caller_locations, which gives methods in C the place of their caller. `what` is
# what happens there, in C, on the line that the first frame is in: sleep (Kernel#sleep), spin (String#sum of 1 MiB) or alloc
# (100,000 bytes by String#*). After the last place comes "ready". The loop ends after SECONDS (3,600), or when stdin is closed.

BIG = ("x" * (1 << 20)).freeze
$stdout.sync = true
$seen = {}
$lock = Mutex.new

def note(what)
  frames = caller_locations(2).map { |f| [f.label, f.path, f.lineno].join("|") }
  key = [what, Thread.current[:shape], *frames].join("\t")
  $lock.synchronize do
    $stdout.write(key + "\n") unless $seen[key]
    $seen[key] = true
  end
end

def nap
  note("sleep")
  0.02
end

def big
  note("spin")
  BIG
end

def size
  note("alloc")
  100000
end

def work
  sleep nap
  big.sum(size_of_sum)
  "x" * size
end

def size_of_sum
  16
end

# --- shapes ---

def plain
  work
end

def recursion(depth = 60)
  return recursion(depth - 1) if depth > 0

  sleep nap
  big.sum
  "x" * size
end

def blocks
  [1].each { |_| 1.times { work } }
end

def callback_of_sort
  [2, 1].sort_by { |x| work; x }
end

def comparison
  [Thing.new, Thing.new].max
end

class Thing
  include Comparable

  attr_accessor :inner

  def method_of
    inner ? inner.method_of : work
  end

  def self.of_class
    new.of_nobody
  end

  def of_nobody
    yield_to { work }
  end

  def yield_to
    yield
  end

  def <=>(_other)
    work
    0
  end

  def method_missing(name, *)
    name == :nothing_of_that_name ? work : super
  end

  def respond_to_missing?(*)
    true
  end

  define_method(:defined_so) { work }

  def last_match(text)
    # What a match leaves behind is kept beside the method's entry.
    text =~ /a/
    work
  end
end

module Tools
  def self.of_module
    work
  end

  module_function

  def both_ways
    work
  end
end

class Derived < Thing
  def method_of
    super
  end
end

def methods_of_things
  outer = Thing.new
  outer.inner = Thing.new
  outer.method_of
end

def inherited
  Derived.new.method_of
end

def class_methods
  Thing.of_class
end

def module_methods
  Tools.of_module
  Tools.both_ways
end

def missing
  Thing.new.nothing_of_that_name
end

def defined_by_block
  Thing.new.defined_so
end

def matched
  Thing.new.last_match("cat")
end

def singleton
  thing = Object.new
  def thing.own
    work
  end
  thing.own
end

def rescued
  raise "no"
rescue RuntimeError
  work
end

def ensured
  plain
ensure
  work
end

def a_proc
  inner = proc { work }
  inner.call
  -> { inner.() }.call
  [1].map(&inner)
end

def sent
  Thing.new.public_send(:method_of)
  Object.new.instance_eval { work }
  1.then { work }
end

def evaluated
  eval("work", binding, "made later.rb", 7)
end

def loaded
  load File.join(__dir__, "rb_stacks_file.rb")
end

def in_fiber
  fiber = Fiber.new do
    work
    Fiber.yield
    work
  end
  fiber.resume
  plain
  fiber.resume
end

def enumerated
  e = Enumerator.new { |y| work; y << 1 }
  e.next
end

def in_thread
  Thread.new do
    Thread.current[:shape] = "in_thread"
    work
  end.join
end

def with_class_body
  Class.new { work }
  eval("class Made; work; end")
end

SHAPES = %i[plain recursion blocks callback_of_sort comparison methods_of_things inherited class_methods module_methods missing
            defined_by_block matched singleton rescued ensured a_proc sent evaluated loaded in_fiber enumerated in_thread
            with_class_body].freeze

def round
  SHAPES.each do |shape|
    Thread.current[:shape] = shape
    send(shape)
  end
end

Thread.new do
  $stdin.read
  exit!(0)
end
finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + (ARGV[0] || 3600).to_f
first = true
while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
  round
  $stdout.write("ready\n") if first
  first = false
end
