<?php
// A small service in PHP whose trouble is known: MODE [ARGUMENT]. "ready" on stdout when it works.
ini_set("memory_limit", "-1");
[, $mode, $argument] = $argv + [null, "", ""];
$carts = [];

function rankProducts($n) {
	$h = $n;
	for ($i = 0; $i < 20000; $i++)
		$h = ($h * 31 + $i) % 1000003;
	return $h;
}

function rememberCart($n) {
	global $carts;
	$carts[] = str_repeat(chr(97 + $n % 26), 16000);
	usleep(2000);
}

function writeOrder($n) {
	global $journal;
	fseek($journal, $n % 64 * 4096);
	fwrite($journal, str_repeat("a", 4096));
	fsync($journal);
}

function askStock($n) {
	global $backend;
	fwrite($backend, "how much");
	fread($backend, 64);
}

function bookSeat($n) {
	global $seats;
	flock($seats, LOCK_EX);
	usleep(3000);
	flock($seats, LOCK_UN);
}

function cachePut($n) {
	global $carts;
	$carts[$n % 4096] = str_repeat(chr(97 + $n % 26), 16000);
	usleep(1000);
}

// What lives is a catalogue of many small objects. An answer that has looked at it makes it one that may be garbage.
function buildAnswer($n) {
	global $catalogue;
	foreach ($catalogue as $part)
		$part->seen = $n;
	gc_collect_cycles();
}

function makeCatalogue() {
	for ($i = 0; $i < 1000; $i++) {
		$part = new stdClass;
		$part->items = [];
		for ($j = 0; $j < 200; $j++)
			$part->items[] = (object)["part" => $part, "n" => $j];
		$parts[] = $part;
	}
	return $parts;
}

$work = ["hot" => "rankProducts", "leak" => "rememberCart", "disk" => "writeOrder", "peer" => "askStock",
	"lock" => "bookSeat", "cache" => "cachePut", "gc" => "buildAnswer", "idle" => "sleep"][$mode];
if ($mode == "disk")
	$journal = fopen($argument, "w");
if ($mode == "peer")
	$backend = stream_socket_client("tcp://127.0.0.1:$argument");
if ($mode == "lock") {
	for ($i = 0; $i < 2 && pcntl_fork(); $i++);
	$seats = fopen(__FILE__, "r");
	if ($i < 2)
		for (;;)
			bookSeat(0);
}
if ($mode == "cache")
	for ($n = 0; $n < 4096; $n++)
		$carts[] = str_repeat("a", 16000);
if ($mode == "gc")
	$catalogue = makeCatalogue();
echo "ready\n";
for ($n = $mode == "idle" ? 3600 : 0;; $n++)
	$work($n);
