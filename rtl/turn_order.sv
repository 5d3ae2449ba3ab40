// Whose turn it is among the cores on small cores.
//
// QUEUE = 1 keeps the queue of the algorithm's text: who leaves the large core is appended, and
// who is passed over keeps its place at the head. QUEUE = 0 keeps the counter of the drawn unit:
// the search begins behind the core that was chosen last, so that who is passed over waits for the
// next round. The two differ only after a core was passed over.
//
// `scan_pos` reads the order from outside, place 0 first. In the counter's order the large core
// has a place, which callers skip.
module turn_order #(
    parameter int N = 4,
    parameter int QUEUE = 1,
    localparam int W = $clog2(N)
) (
    input  logic         clk,
    input  logic         rst,
    // Cores that may be chosen; never the one on the large core.
    input  logic [N-1:0] able,
    // First of them, if there is one.
    output logic         found,
    output logic [W-1:0] first,
    // Core at a place of the order.
    input  logic [W-1:0] scan_pos,
    output logic [W-1:0] scan_id,
    // An exchange: `small_id` gets the large core, `large_id` leaves it.
    input  logic         taken,
    input  logic [W-1:0] small_id,
    input  logic [W-1:0] large_id
);
  localparam logic [W-1:0] LAST = W'(N - 1);

  generate
    if (QUEUE != 0) begin : g_queue
      // Places N-2 to 0 from the left, W bits each; place 0 is the head.
      logic [(N-1)*W-1:0] order, shifted;
      logic behind;

      always_comb begin
        found = 1'b0;
        first = order[0 +: W];
        for (int i = N - 2; i >= 0; i--) begin
          if (able[order[i*W +: W]]) begin
            found = 1'b1;
            first = order[i*W +: W];
          end
        end
      end

      // Places from the chosen core's on take what stands behind them.
      always_comb begin
        behind  = 1'b0;
        shifted = order;
        for (int i = 0; i < N - 2; i++) begin
          behind = behind || (order[i*W +: W] == small_id);
          if (behind) shifted[i*W +: W] = order[(i+1)*W +: W];
        end
        shifted[(N-2)*W +: W] = large_id;
      end

      always_ff @(posedge clk) begin
        if (rst) begin
          for (int i = 0; i < N - 1; i++) order[i*W +: W] <= W'(i + 1);
        end else if (taken) begin
          order <= shifted;
        end
      end

      always_comb begin
        scan_id = order[0 +: W];
        for (int i = 1; i < N - 1; i++) begin
          if (scan_pos == W'(i)) scan_id = order[i*W +: W];
        end
      end
    end else begin : g_counter
      logic [W-1:0] pointer;
      logic [W:0] place;

      // The lowest from the pointer on, else the lowest of all.
      always_comb begin
        found = 1'b0;
        first = '0;
        for (int i = N - 1; i >= 0; i--) begin
          if (able[i]) begin
            found = 1'b1;
            first = W'(i);
          end
        end
        for (int i = N - 1; i >= 0; i--) begin
          if (able[i] && (W'(i) >= pointer)) first = W'(i);
        end
      end

      always_ff @(posedge clk) begin
        if (rst) pointer <= W'(1);
        else if (taken) pointer <= (small_id == LAST) ? '0 : small_id + W'(1);
      end

      always_comb begin
        place = {1'b0, pointer} + {1'b0, scan_pos};
        if (place > {1'b0, LAST}) place = place - (W + 1)'(N);
        scan_id = place[W-1:0];
      end

      // The counter does not ask who leaves.
      logic unused;
      assign unused = &{1'b0, large_id, place[W]};
    end
  endgenerate

`ifdef FORMAL
  `include "formal/turn_order.svh"
`endif
endmodule
