#!/bin/sh
# Cells, flip-flops and logic depth of the units as a CSV table, by Yosys' generic gates (two-input
# gates, inverters, multiplexers) after abc.
set -eu
cd "$(dirname "$0")"
files=*.sv

# One row: a unit with its parameters.
row() {
    unit=$1 cores=$2 queue=$3
    stat=$(yosys -p "read_verilog -sv $files; $4; \
        synth -flatten -top $unit; abc -g AND,NAND,OR,NOR,XOR,XNOR,MUX; opt_clean; stat; ltp -noff")
    number() { printf '%s\n' "$stat" | sed -n "$1" | tail -1; }
    cells=$(number 's/.*Number of cells: *\([0-9]*\)/\1/p')
    flops=$(printf '%s\n' "$stat" | awk '/Printing statistics/ { n = 0 } /DFF/ { n += $2 } END { print n }')
    depth=$(number 's/.*(length=\([0-9]*\)).*/\1/p')
    echo "$unit,$cores,$queue,$((cells - flops)),$flops,$depth"
}

echo "unit,cores,turns,gates,flip_flops,depth"
for cores in ${CORES:-4 8 16 32}; do
    for unit in hrrs kuths tcs; do
        row "$unit" "$cores" queue "chparam -set N $cores -set QUEUE 1 $unit"
        row "$unit" "$cores" counter "chparam -set N $cores -set QUEUE 0 $unit"
    done
done
# The yardstick for energies, of which the source tells that of an addition of 32 bits.
files=area/add32.sv
row add32 1 none ""
