// Properties of hrrs beside those of every unit.
`include "formal/exchange.svh"

// At the end of a quantum somebody else gets the large core, if anybody can.
logic [N-1:0] others;
always_comb begin
  others            = user_before & runs_before;
  others[on_before] = 1'b0;
  if (started && !was_rst && ticked && !asked && user_before[on_before] && others != '0) begin
    given_away : assert (swap_req);
  end
end
