# Counts words and turns them round: hashes, strings, regular expressions.
use strict;
my ($path, $rounds) = @ARGV;
my %count;
for (1 .. $rounds) {
    open(my $file, '<', $path) or die "$path: $!";
    while (my $line = <$file>) {
        $count{scalar reverse $1}++ while $line =~ /(\w+)/g;
    }
}
print scalar(keys %count), "\n";
