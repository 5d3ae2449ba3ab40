// Properties of kuths beside those of every unit.
`include "formal/exchange.svh"

logic [N-1:0] due_before, others;
logic decided_before, began_before;
always_ff @(posedge clk) begin
  due_before     <= due_bits_now;
  decided_before <= decides;
  began_before   <= go;
end

always_comb begin
  others            = due_before;
  others[on_before] = 1'b0;
  if (started && !was_rst) begin
    // Bits are cleared each quantum, and those of the last one once they have decided.
    if (ticked) cleared : assert (bits == '0);
    if (decided_before) spent : assert (due_bits == '0 && !due);
    // Where a small core's bit is set, the large core goes to one of those.
    if (swap_req && !asked && others != '0) returned_first : assert (due_before[small_id]);
    // The large core's bit alone leaves it there.
    if (due_before[on_before] && others == '0 && runs_before[on_before]) begin
      stays_there : assert (!began_before);
    end
  end
end
