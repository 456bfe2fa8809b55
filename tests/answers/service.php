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

$work = ["hot" => "rankProducts", "leak" => "rememberCart", "disk" => "writeOrder", "peer" => "askStock"][$mode];
if ($mode == "disk")
	$journal = fopen($argument, "w");
if ($mode == "peer")
	$backend = stream_socket_client("tcp://127.0.0.1:$argument");
echo "ready\n";
for ($n = 0;; $n++)
	$work($n);
