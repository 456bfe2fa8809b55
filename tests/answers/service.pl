# A small service in Perl whose trouble is known: MODE [ARGUMENT]. "ready" on stdout when it works.
use strict;
use warnings;
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

my %work = (hot => \&weigh_words, leak => \&keep_session, disk => \&append_log, peer => \&ask_stock,
	idle => sub { select undef, undef, undef, 3600 });
open $log, "+>", $argument or die if $mode eq "disk";
$stock = IO::Socket::INET->new("127.0.0.1:$argument") or die if $mode eq "peer";
print "ready\n";
for (my $n = 0;; $n++) {
	$work{$mode}->($n);
}
