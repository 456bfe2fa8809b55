# Perl code in known places, from 5.30 on: prints each of them as Perl sees it itself, then goes through all of
# them again and again. For test_perl.py.
#
#     perl_stacks.pl [SECONDS]      a line of JSON for each place:  {"shape": …, "what": …, "frames": [[name, file, line], …]}
#
# Frames are leaf first, by caller(). It has a frame for each block eval, whose code is the function's around it, so
# that is left out: the line of the function is the one in the block. `what` is what happens there, in C, on the
# line that the first frame is in: sleep (select), spin (unpack of a checksum of 1 MiB) or alloc (100,000 bytes). After the
# last place comes "ready". The loop ends after SECONDS (3,600), or when stdin is closed.
use strict;
use warnings;

my $BIG = "x" x (1 << 20);
my $THREADS = eval { require threads; 1 };
my (%seen, $shape);

# The stack of the caller's caller.
sub note {
    my ($what) = @_;
    my ($i, @frames, @calls) = (2);
    while (my @c = caller($i++)) {
        push @calls, [@c[1, 2, 3, 6, 7]];    # file, line, sub, text of an eval, is it a require
    }
    my ($file, $line) = (caller(1))[1, 2];
    for my $c (@calls) {
        my ($sub, $text, $required) = @$c[2 .. 4];
        my $block = $sub eq "(eval)" && !defined $text;
        my $name = $sub ne "(eval)" ? $sub : $required ? "(require)" : "(eval)";
        push @frames, [$name, $file, $line] if !$block;
        ($file, $line) = @$c[0, 1] if !$block;
    }
    push @frames, ["(main)", $file, $line] if !($THREADS && threads->tid);
    $_->[1] =~ s/^\(eval \d+\)$/(eval)/ for @frames;
    my $text = join ", ", map { sprintf '["%s", "%s", %d]', @$_ } @frames;
    return if $seen{"$what $text"}++;
    print qq({"shape": "$shape", "what": "$what", "frames": [$text]}\n);
}

sub nap { note("sleep"); 0.01 }
sub big { note("spin"); \$BIG }
sub size { note("alloc"); 100_000 }

sub work {
    select(undef, undef, undef, nap());
    my $sum = unpack("%32C*", ${ big() });
    vec(my $bytes, size(), 8) = 1;
    undef $bytes;
}

sub recursion {
    my ($n) = @_;
    return recursion($n - 1) if $n;
    work();
}

sub sort_block { my @x = sort { work(); $a <=> $b } 2, 1 }
sub by_name { work(); $a <=> $b }
sub sort_sub { my @x = sort by_name 2, 1 }
sub sort_call { my @x = sort { by_name() } 2, 1 }
sub block_eval { eval { work(); die "x\n" }; eval { eval { work(); 1 }; work(); 1 } }
sub string_eval { eval "work();\n\nwork(); 1" or die $@ }
sub anonymous { my $n = shift; my $f = sub { $n++; work() }; $f->() }
sub dies { local $SIG{__DIE__} = sub { work() }; eval { die "x\n" } }
sub warns { local $SIG{__WARN__} = sub { work() }; warn "x\n" }
sub in_map { my @x = map { work() } 1, 2; my @y = grep { work(); 1 } 1 }
sub signal { local $SIG{USR1} = sub { work() }; kill USR1 => $$; my $x = 0; $x++ for 1 .. 100 }
sub catches { eval { my @x = sort { eval { work(); 1 }; eval "work(); 1"; $a <=> $b } 2, 1; 1 } }
sub regex { "ab" =~ /a(?{ work() })b/ }
sub replace { my $s = "a"; $s =~ s/a/work(); "b"/e }

package Thing;
sub new { bless {}, shift }
sub method { my ($self, $n) = @_; $n ? $self->method($n - 1) : main::work() }
sub AUTOLOAD { our $AUTOLOAD; main::work() if $AUTOLOAD =~ /nothing/ }
sub DESTROY { main::work() if $_[0]{last} }

package Derived;
our @ISA = "Thing";
sub method { my $self = shift; $self->SUPER::method(@_) }

package Tied;
sub TIESCALAR { bless [], shift }
sub FETCH { main::work(); 1 }
sub STORE { eval { main::work() } }

package Number;
use overload '+' => sub { main::work(); 1 }, '""' => \&text, 'cmp' => sub { my $x = "$_[0]"; 0 };
sub new { bless [], shift }
sub text { main::work(); "n" }

package main;
BEGIN {
    # Where it is not built, what is alike in Perl.
    eval { require List::Util; List::Util->import(qw(first reduce)); 1 }
        or eval 'sub first(&@) { &{+shift}() } sub reduce(&@) { &{+shift}() } 1' or die;
}

sub methods { Derived->new->method(2); Thing->new->nothing }
sub destroy { my $x = Thing->new; $x->{last} = 1; undef $x; 1 }
sub destroy_at_end { my $x = Thing->new; $x->{last} = 1; 1 }
sub ties { tie my $x, "Tied"; my $y = $x; $x = 1 }
sub overloads { my $x = Number->new + 1; my $y = "<" . Number->new }
sub sorts_overloaded { my @x = sort { $a cmp $b } Number->new, Number->new }
sub multicall { first { work(); 1 } 1; reduce { work(); $a } 1, 2 }
sub goes { goto &work }
sub many { my ($n) = @_; if ($n) { for my $i (1) { { return eval { many($n - 1) } } } } work() }

sub lexical {
    use feature "lexical_subs";
    no warnings;
    my sub inner { work() }
    inner();
}

sub requires {
    local @INC = sub { \ (my $text = "package Required; main::work(); 1;") };
    delete $INC{"Required.pm"};
    require Required;
}

sub other { main::work() }
*alias = \&other;
sub aliases { alias() }
{ no strict "refs"; *{"Made::at_run_time"} = sub { work() } }
sub made { Made::at_run_time() }
eval "#line 700 \"elsewhere.pl\"\nsub in_other_file { work() }\n1" or die $@;

# A thread of its own interpreter, if there are such.
sub in_thread { threads->create(sub { recursion(3) })->join if $THREADS }

$| = 1;
my $end = time + (shift // 3600);
my @shapes = qw(recursion sort_block sort_sub sort_call block_eval string_eval anonymous dies warns in_map signal catches
    regex replace methods destroy destroy_at_end ties overloads sorts_overloaded multicall goes many lexical requires aliases made
    in_other_file);
push @shapes, "in_thread" if $THREADS && $ENV{PERL_STACKS_THREADS};
{
    no strict "refs";
    my $ready;
    while (time < $end) {
        for (@shapes) {
            $shape = $_;
            &$_($_ eq "recursion" ? 30 : $_ eq "many" ? 10 : 0);
        }
        print "ready\n" if !$ready++;
        vec(my $in = "", 0, 1) = 1;
        last if select($in, undef, undef, 0) && !sysread STDIN, my $byte, 1;
    }
}
