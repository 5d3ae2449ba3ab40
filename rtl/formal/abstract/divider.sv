// Any divider that takes its time: stands for divider.sv in the proofs of tcs, which do not depend
// on what the quotients are.
module divider #(
    parameter int INST_W = 32,
    parameter int TIME_W = 32,
    parameter int FRAC = 16,
    localparam int QUOTIENT_W = TIME_W + FRAC
) (
    input  logic                  clk,
    input  logic                  rst,
    input  logic                  start,
    input  logic [TIME_W-1:0]     dividend,
    input  logic [INST_W-1:0]     inst,
    output logic                  busy,
    output logic                  divided,
    output logic [QUOTIENT_W-1:0] quotient
);
  (* anyseq *) logic any_end;
  (* anyseq *) logic [QUOTIENT_W-1:0] any_quotient;

  assign divided  = busy && any_end;
  assign quotient = any_quotient;

  always_ff @(posedge clk) begin
    if (rst) busy <= 1'b0;
    else if (start) busy <= 1'b1;
    else if (divided) busy <= 1'b0;
  end
endmodule
