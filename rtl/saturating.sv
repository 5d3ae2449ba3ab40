// A sum that stays at its highest value instead of beginning again. MORE_W is at most W.
module saturating #(
    parameter int W = 32,
    parameter int MORE_W = 4
) (
    input  logic [W-1:0]      value,
    input  logic [MORE_W-1:0] more,
    output logic [W-1:0]      sum
);
  logic [W:0] whole;

  assign whole = {1'b0, value} + (W + 1)'(more);
  assign sum   = whole[W] ? '1 : whole[W-1:0];
endmodule
