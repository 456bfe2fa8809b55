# A small service in Perl whose trouble is known: MODE [ARGUMENT]. "ready" on stdout when it works.
use strict;
use warnings;
use Fcntl qw(:flock);
use IO::Handle;
use IO::Socket::INET;
use Time::HiRes qw(sleep);
$| = 1;

my ($mode, $argument) = (@ARGV, "hot", "");
my (@sessions, $log, $stock);

sub weigh_words {
	my ($n) = @_;
	my $h = $n;
	$h = ($h * 31 + $_) % 1000003 for 1 .. 5000;
	return $h;
}

sub keep_session {
	my ($n) = @_;
	push @sessions, chr(97 + $n % 26) x 16384;
	sleep 0.002;
}

sub append_log {
	my ($n) = @_;
	seek $log, $n % 64 * 4096, 0;
	print $log "a" x 4096;
	$log->flush;
	$log->sync or die;
}

sub ask_stock {
	my ($n) = @_;
	syswrite $stock, sprintf("%8d", $n);
	sysread $stock, my $answer, 64 or die;
}

sub book_seat {
	flock $log, LOCK_EX or die;
	sleep 0.003;
	flock $log, LOCK_UN or die;
}

my @cache;

sub cache_put {
	my ($n) = @_;
	$cache[$n % 4096] = chr(97 + $n % 26) x 16384;
	sleep 0.001 if $n >= 4096;
}

my %work = (lock => \&book_seat, cache => \&cache_put,
	hot => \&weigh_words, leak => \&keep_session, disk => \&append_log, peer => \&ask_stock,
	idle => sub { select undef, undef, undef, 3600 });
open $log, "+>", $argument or die if $mode eq "disk";
$stock = IO::Socket::INET->new("127.0.0.1:$argument") or die if $mode eq "peer";
# Two more, each with a lock of its own: it belongs to who has opened the file.
if ($mode eq "lock") {
	my $parent = $$;
	fork if $$ == $parent;
	fork if $$ == $parent;
	open $log, "<", $0 or die;
	if ($$ != $parent) { book_seat() while 1 }
}
my $first = 0;
if ($mode eq "cache") { cache_put($first++) while $first < 4096 }
print "ready\n";
for (my $n = $first;; $n++) {
	$work{$mode}->($n);
}
