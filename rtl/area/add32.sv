// An adder of 32 bits: the yardstick for the energy of a gate.
module add32 (
    input  logic [31:0] a,
    input  logic [31:0] b,
    output logic [31:0] sum
);
  assign sum = a + b;
endmodule
