#!/bin/sh
# Proves the units' properties by bounded check and induction, for the numbers of cores that are
# given, and that a mutation of each unit is caught. Needs yosys, yosys-smtbmc and z3.
set -eu
cd "$(dirname "$0")/.."
build=build/formal
mkdir -p "$build"

# The SMT problem of a unit in a folder of sources.
problem() { # sources unit cores queue
    yosys -q -p "read_verilog -sv -formal -I. $1/*.sv; chparam -set N $3 -set QUEUE $4 $2; \
        hierarchy -top $2; proc; flatten; opt -full; async2sync; dffunmap; \
        write_smt2 -stbv -wires $build/$2.smt2"
}

# Whether all properties hold from the reset on for so many cycles, and by induction.
holds() { # unit
    yosys-smtbmc -s z3 -t 5 "$build/$1.smt2" >"$build/$1.log" 2>&1 \
        && yosys-smtbmc -s z3 -i -t 3 "$build/$1.smt2" >>"$build/$1.log" 2>&1
}

# The same for tcs, by Yosys' own solver, to which its shifts are no burden; in narrow counters, as
# no property depends on how wide they are.
tcs_holds() { # sources cores queue
    yosys -q -p "read_verilog -sv -formal -I. $1/*.sv; chparam -set N $2 -set QUEUE $3 \
        -set INST_W 4 -set TIME_W 4 -set SUM_W 8 -set FRAC 2 -set INC_W 2 tcs; \
        hierarchy -top tcs; proc; flatten; opt -full; async2sync; dffunmap; \
        sat -verify -tempinduct -prove-asserts -set-assumes -maxsteps 6 -ignore_unknown_cells" \
        >"$build/tcs.log" 2>&1
}

prove_tcs() { # cores queue
    if ! tcs_holds . "$@"; then
        tail -3 "$build/tcs.log"
        echo "formal: tcs with $1 cores, queue $2: not proved; expected every property to hold"
        exit 1
    fi
    echo "formal: tcs with $1 cores, queue $2: proved"
}

prove() { # unit cores queue
    problem . "$@"
    if ! holds "$1"; then
        grep -h 'Assert failed' "$build/$1.log" || tail -3 "$build/$1.log"
        echo "formal: $1 with $2 cores, queue $3: not proved; expected every property to hold"
        exit 1
    fi
    echo "formal: $1 with $2 cores, queue $3: proved"
}

# The sources with one line changed by a sed script.
mutate() { # file script
    rm -rf "$build/mutant"
    mkdir -p "$build/mutant"
    cp ./*.sv "$build/mutant"
    sed -i "$2" "$build/mutant/$1"
    if cmp -s "$1" "$build/mutant/$1"; then
        echo "formal: $2 changes nothing in $1; expected a line that it fits"
        exit 1
    fi
}

# A unit that was mutated is to fail.
caught() { # unit cores file script
    mutate "$3" "$4"
    problem "$build/mutant" "$1" "$2" 1
    if holds "$1" || ! grep -q 'Assert failed' "$build/$1.log"; then
        echo "formal: $4 in $3 is not caught; expected a property to fail"
        exit 1
    fi
    echo "formal: $1 with $4: caught by $(sed -n 's/.*Assert failed in [^:]*: \([^ ]*\).*/\1/p' "$build/$1.log" | head -1)"
}

caught_tcs() { # file script
    mutate "$1" "$2"
    if tcs_holds "$build/mutant" 2 1 || ! grep -q 'proof did fail' "$build/tcs.log"; then
        echo "formal: $2 in $1 is not caught; expected a property to fail"
        exit 1
    fi
    echo "formal: tcs with $2: caught"
}

for cores in "$@"; do
    for unit in hrrs kuths; do
        for queue in 0 1; do
            prove "$unit" "$cores" "$queue"
        done
    done
    for queue in 0 1; do
        prove_tcs "$cores" "$queue"
    done
done
caught hrrs 2 hrrs.sv 's/able = user & ~idle;/able = ~idle;/'
caught hrrs 2 hrrs.sv 's/due_now \&\& user\[on_large\] \&\& !swap_req/due_now \&\& user[on_large]/'
caught kuths 2 kuths.sv "s/bits     <= quantum_tick ? '0 : bits_now/bits     <= bits_now/"
caught_tcs tcs.sv 's/due \&\& user\[on_large\] \&\& pending/due \&\& pending/'
caught_tcs tcs.sv "s/stirred    <= stirred_now \&\& !quantum_taken/stirred    <= stirred_now/"
