// Properties of tcs beside those of every unit.
`include "formal/exchange.svh"

logic taken_before, pending_before, go_before;
logic [N-1:0] active_before;
always_ff @(posedge clk) begin
  taken_before   <= quantum_taken;
  pending_before <= pending != '0;
  go_before      <= go;
  active_before  <= active;
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
    // Who was found in a scan is still the one to have.
    if (scanning && found) begin
      still_able : assert (best != on_large && active[best] && last_user[best] && !last_idle[best]);
    end
  end
end
