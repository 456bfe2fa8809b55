<?php
/*
 * PHP code in known places, from 7.4 on: prints each of them as it sees itself, then goes through all of them again and
 * again. For test_php.py.
 *
 *   php_stacks.php [SECONDS]      a line for each place:  SHAPE WHAT NAME|FILE|LINE …, with tabs between them
 *
 * Frames are leaf first, as debug_backtrace() has them. `what` is what happens there, on the line that the first frame with a
 * line is in: sleep (usleep), spin (crc32 of 2 MiB), alloc (a string of 100,000 bytes), huge (one of 4 MiB, mapped), or loop (of
 * instructions that call nothing). After the last place comes "ready". The loop ends after SECONDS (3,600).
 */

$shape = '';
$seen = [];
$big = str_repeat('x', 2 << 20);

/* Prints a place, the first time that it is seen. */
function place($what, $frames)
{
    global $seen, $shape;
    $text = "$shape\t$what";
    foreach ($frames as $frame)
        $text .= "\t" . implode('|', $frame);
    if (!isset($seen[$text])) {
        $seen[$text] = true;
        fwrite(STDOUT, "$text\n");
    }
}

/* The stack of its caller's caller, or with `skip` 1 its caller's, `below` lines after the call. */
function note($what, $leaf, $below = 0, $skip = 2)
{
    global $shape;
    $calls = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS);
    $frames = $leaf === null ? [] : [[$leaf, '', 0]];
    $line = $below;
    for ($i = $skip; $i <= count($calls); $i++) {
        $at = $calls[$i - 1];
        $name = '{main}';
        if ($i < count($calls)) {
            $name = $calls[$i]['function'];
            if (isset($calls[$i]['class'])) /* an anonymous class's has a 0 and its file behind it */
                $name = explode("\0", $calls[$i]['class'])[0] . "::$name";
            if ($shape === 'in_fiber' && strpos($name, 'Fiber::') === 0)
                break; /* another stack */
        }
        $frames[] = [$name, $at['file'] ?? '', ($at['line'] ?? 0) + (isset($at['line']) ? $line : 0)];
        $line = 0;
    }
    place($what, $frames);
}

function nap() { note('sleep', 'usleep'); return 20000; }
function big() { global $big; note('spin', 'crc32'); return $big; }
function size() { note('alloc', 'str_repeat'); return 100000; }
function huge() { note('huge', 'str_repeat'); return 4 << 20; }

function loop()
{
    $x = 0;
    note('loop', null, 2, 1);

    for ($i = 0; $i < 60000; $i++) $x = ($x * 31 + $i) % 1000003;
    return $x;
}

function work()
{
    usleep(nap());
    crc32(big());
    $s = str_repeat('x', size());
    $s = str_repeat('y', huge());
    loop();
}

/* --- shapes --- */

function plain() { work(); }

function recursion($depth = 40)
{
    if ($depth)
        return recursion($depth - 1);
    usleep(nap());
    crc32(big());
    return strlen(str_repeat('x', size()));
}

function callback_of_usort()
{
    $a = [2, 1];
    usort($a, function ($x, $y) {
        work();
        return $x - $y;
    });
}

class Thing
{
    public $inner;
    function __construct($inner = null) { $this->inner = $inner; }
    function method() { return $this->inner ? $this->inner->method() : work(); }
    static function of_class() { return static::of_nobody(); }
    static function of_nobody() { work(); }
    function __get($name) { work(); return $name; }
    function __call($name, $args) { work(); return $name; }
    function __toString() { work(); return 'thing'; }
}

class Late
{
    function __destruct() { work(); }
}

function methods()
{
    (new Thing(new Thing()))->method();
    Thing::of_class();
}

function magic()
{
    $thing = new Thing();
    $thing->missing;
    $thing->nobody(1);
    return "a $thing";
}

function destructor()
{
    $late = new Late();
    unset($late);
}

function destructor_at_the_end()
{
    $late = new Late();
    return 1;
}

function anonymous_class()
{
    $it = new class() {
        function of_it() { work(); }
    };
    $it->of_it();
}

function map_of_internal()
{
    note_of_map();
    array_map('usleep', [20000]);
}

/* C that calls C: no code of the program is between them. */
function note_of_map()
{
    $at = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS);
    $frames = [['usleep', '', 0], ['array_map', '', 0]];
    for ($i = 1; $i <= count($at); $i++)
        $frames[] = [$i < count($at) ? $at[$i]['function'] : '{main}', $at[$i - 1]['file'],
                     $at[$i - 1]['line'] + ($i == 1 ? 1 : 0)];
    place('sleep', $frames);
}

function calls()
{
    call_user_func_array(function () { return array_sum(array_map(fn($x) => work() ?? $x, [1])); }, []);
}

function numbers()
{
    work();
    yield 1;
}

function generator()
{
    foreach (numbers() as $n)
        work();
}

function others()
{
    yield from numbers();
}

function delegating()
{
    foreach (others() as $n)
        work();
}

function thrower()
{
    try {
        throw new RuntimeException('no');
    } finally {
        work();
    }
}

function exception()
{
    try {
        thrower();
    } catch (RuntimeException $e) {
        work();
    }
}

function included()
{
    global $lib;
    include $lib;
}

function evaluated()
{
    eval("work();\nwork();");
}

function in_fiber()
{
    $fiber = new Fiber(function () {
        work();
        Fiber::suspend();
        work();
    });
    $fiber->start();
    $fiber->resume();
}

$lib = sys_get_temp_dir() . '/memscope-php-' . getmypid() . '.php';
file_put_contents($lib, "<?php\nfunction_exists('of_lib') || eval('function of_lib() { work(); }');\nof_lib();\nwork();\n");
register_shutdown_function(function () use ($lib) { unlink($lib); });

$shapes = ['plain', 'recursion', 'callback_of_usort', 'methods', 'magic', 'destructor', 'destructor_at_the_end',
           'anonymous_class', 'map_of_internal', 'calls', 'generator', 'delegating', 'exception', 'included', 'evaluated'];
if (PHP_VERSION_ID >= 80100)
    $shapes[] = 'in_fiber';
$end = microtime(true) + ($argv[1] ?? 3600);
$ready = false;
while (microtime(true) < $end) {
    foreach ($shapes as $shape)
        $shape();
    if (!$ready)
        fwrite(STDOUT, "ready\n");
    $ready = true;
}
