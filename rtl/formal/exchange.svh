// What holds of every unit's exchanges. Included in the units, which name `user`, `active` cores
// (those that have something to run), and the port.
logic started = 1'b0;
logic was_rst, asked, acked, ticked;
logic [N-1:0] user_before, runs_before;
logic [W-1:0] small_before, large_before, on_before;

always_comb assume (rst == !started);

always_ff @(posedge clk) begin
  started      <= 1'b1;
  was_rst      <= rst;
  asked        <= swap_req;
  acked        <= swap_ack;
  ticked       <= quantum_tick;
  user_before  <= user;
  runs_before  <= ~idle;
  small_before <= small_id;
  large_before <= large_id;
  on_before    <= on_large;
end

always_comb begin
  if (started && !was_rst) begin
    // No exchange with a core that was in kernel mode or had nothing to run in the cycle before.
    if (swap_req && !asked) begin
      user_of_small : assert (user_before[small_id]);
      user_of_large : assert (user_before[large_id]);
      small_runs : assert (runs_before[small_id]);
      of_two : assert (small_id != large_id && large_id == on_before && small_id == on_large);
    end
    // One request at a time, the same until it is acknowledged.
    if (asked && !acked) begin
      stands : assert (swap_req && small_id == small_before && large_id == large_before);
    end
    if (asked && acked) ends : assert (!swap_req);
  end
  if (started) begin
    in_range : assert (32'(on_large) < N && 32'(small_id) < N && 32'(large_id) < N);
    saved_by_two : assert (tss_save == '0 || swap_req);
  end
end
