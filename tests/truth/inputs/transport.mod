# The cheapest transport between places on a circle; `n` places send and `n` receive.
param n := {scale};
set Place := 1..n;
param cost{i in Place, j in Place} := 1 + abs(sin(0.7 * i * i) - cos(0.3 * j * j)) + ((i * 7 + j * 13) mod 17) / 10;
param supply{i in Place} := 20 + (i * 31) mod 23;
param demand{j in Place} := 5 + (j * 17) mod 13;
var amount{Place, Place} >= 0;
minimize total: sum{i in Place, j in Place} cost[i, j] * amount[i, j];
subject to sends{i in Place}: sum{j in Place} amount[i, j] <= supply[i];
subject to receives{j in Place}: sum{i in Place} amount[i, j] >= demand[j];
subject to mixes{i in Place: i < n}: sum{j in Place: j mod 3 = i mod 3} amount[i, j] <= 0.6 * supply[i];
solve;
end;
