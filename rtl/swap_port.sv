// The exchange that a unit has asked for: one at a time, from `go` until `swap_ack`.
//
// The cores store their thread's registers while the request stands (`tss_save`); in the cycle
// after the acknowledgement they load the other's (`tss_load`). It also holds who is on the large
// core, which is who the exchange puts there from the request on.
module swap_port #(
    parameter int N = 4,
    localparam int W = $clog2(N)
) (
    input  logic         clk,
    input  logic         rst,
    // Asks for an exchange with `chosen`; not while one is under way.
    input  logic         go,
    input  logic [W-1:0] chosen,
    input  logic         swap_ack,
    // The logical core that is on the large core.
    output logic [W-1:0] on_large,
    // True while an exchange is under way.
    output logic         swap_req,
    output logic [W-1:0] small_id,
    output logic [W-1:0] large_id,
    output logic [N-1:0] tss_save,
    output logic [N-1:0] tss_load
);
  logic loads;

  always_ff @(posedge clk) begin
    if (rst) begin
      on_large <= '0;
      swap_req <= 1'b0;
      small_id <= '0;
      large_id <= '0;
      loads    <= 1'b0;
    end else begin
      loads <= swap_req && swap_ack;
      if (go) begin
        swap_req <= 1'b1;
        small_id <= chosen;
        large_id <= on_large;
        on_large <= chosen;
      end else if (swap_ack) begin
        swap_req <= 1'b0;
      end
    end
  end

  always_comb begin
    for (int i = 0; i < N; i++) begin
      tss_save[i] = swap_req && ((small_id == W'(i)) || (large_id == W'(i)));
      tss_load[i] = loads && ((small_id == W'(i)) || (large_id == W'(i)));
    end
  end
endmodule
