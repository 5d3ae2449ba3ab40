// Fixed-point division, one bit of the quotient per cycle: floor(time * 2^FRAC / inst).
//
// `start` loads the operands; `divided` is high in the last of the TIME_W + FRAC cycles that follow,
// with the quotient. `inst` must not be 0 and has to stay until then.
module divider #(
    parameter int INST_W = 32,
    parameter int TIME_W = 32,
    parameter int FRAC = 16,
    localparam int QUOTIENT_W = TIME_W + FRAC,
    localparam int COUNT_W = $clog2(QUOTIENT_W + 1)
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
  // What is left of the dividend stands above the bits of the quotient that are known.
  logic [QUOTIENT_W-1:0] rest;
  logic [INST_W-1:0] remainder, remainder_next;
  logic [COUNT_W-1:0] left;
  logic [INST_W:0] shifted, difference;
  logic fits;

  assign shifted        = {remainder, rest[QUOTIENT_W-1]};
  assign difference     = shifted - {1'b0, inst};
  assign fits           = shifted >= {1'b0, inst};
  assign remainder_next = fits ? difference[INST_W-1:0] : shifted[INST_W-1:0];
  assign quotient       = {rest[QUOTIENT_W-2:0], fits};
  assign busy           = left != '0;
  assign divided        = left == COUNT_W'(1);

  always_ff @(posedge clk) begin
    if (rst) begin
      left      <= '0;
      rest      <= '0;
      remainder <= '0;
    end else if (start) begin
      left      <= COUNT_W'(QUOTIENT_W);
      rest      <= {dividend, FRAC'(0)};
      remainder <= '0;
    end else if (busy) begin
      left      <= left - COUNT_W'(1);
      rest      <= quotient;
      remainder <= remainder_next;
    end
  end

  // The difference fits where it is used.
  logic unused;
  assign unused = &{1'b0, difference[INST_W]};
endmodule
