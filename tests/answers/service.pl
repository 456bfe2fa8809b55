# A hot function in Perl.
use strict;
use warnings;
$| = 1;

sub weigh_words {
	my ($n) = @_;
	my $h = $n;
	$h = ($h * 31 + $_) % 1000003 for 1 .. 5000;
	return $h;
}

print "ready\n";
my $n = 0;
weigh_words($n++) while 1;
