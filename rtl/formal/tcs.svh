// Properties of tcs beside those of every unit.
`include "formal/exchange.svh"

// An unknown core, which stands for all of them.
(* anyconst *) logic [W-1:0] other;
logic taken_before, pending_before, go_before, long_before;
logic [N-1:0] active_before;
logic [SUM_W-1:0] sum_of_small, sum_of_large, sum_of_other;
always_comb assume (32'(other) < N);
always_ff @(posedge clk) begin
  taken_before   <= quantum_taken;
  pending_before <= pending != '0;
  go_before      <= go;
  long_before    <= due_long;
  active_before  <= active;
  sum_of_small   <= ltc_out[best*SUM_W +: SUM_W];
  sum_of_large   <= ltc_out[on_large*SUM_W +: SUM_W];
end

always_comb begin
  if (started && !was_rst) begin
    // Nobody is preferred who is not active, nor while quotients are missing.
    if (go_before) begin
      active_small : assert (active_before[small_id]);
      all_added : assert (!pending_before && !taken_before);
    end
    // What stirred the quantum is forgotten with it.
    if (taken_before) cleared : assert (!stirred && !tick_waits);
  end
  if (started) begin
    divides_pending : assert (!divider_busy || pending[dividing]);
    scans_when_due : assert (!decided || (due && !swap_req));
  end
end
