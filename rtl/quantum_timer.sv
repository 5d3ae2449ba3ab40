// The counter of the quantum: a tick every QUANTUM cycles.
module quantum_timer #(
    // 1 ms at 2.66 GHz.
    parameter int QUANTUM = 2_660_000,
    localparam int W = $clog2(QUANTUM)
) (
    input  logic clk,
    input  logic rst,
    output logic quantum_tick
);
  logic [W-1:0] count;

  assign quantum_tick = count == W'(QUANTUM - 1);

  always_ff @(posedge clk) begin
    if (rst || quantum_tick) count <= '0;
    else count <= count + W'(1);
  end
endmodule
