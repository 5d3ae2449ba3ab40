// Nobody is starved: while somebody can be chosen all the time, at most N - 2 others are chosen
// before it from a queue, and N - 1 by a counter, which does not put who leaves the large core
// behind the others. Included in turn_order.
localparam int MOST = QUEUE != 0 ? N - 2 : N - 1;
(* anyconst *) logic [W-1:0] watched;
logic [W:0] passed, ahead;
logic begun = 1'b0;

always_comb assume (32'(watched) < N);

always_ff @(posedge clk) begin
  begun <= 1'b1;
  if (rst || !able[watched] || (taken && small_id == watched)) passed <= '0;
  else if (taken) passed <= passed + 1'b1;
end

generate
  if (QUEUE != 0) begin : g_formal_queue
    // The queue holds everybody but who is on the large core, once; so many come before.
    logic [N-1:0] listed;
    always_comb begin
      ahead            = '0;
      listed           = '0;
      listed[large_id] = 1'b1;
      for (int i = 0; i < N - 1; i++) begin
        listed[g_queue.order[i*W +: W]] = 1'b1;
        if (g_queue.order[i*W +: W] == watched) ahead = (W + 1)'(i);
      end
      if (begun) begin
        all_listed : assert (&listed);
      end
    end
  end else begin : g_formal_counter
    // Cores from the counter to the watched one; who leaves the large core may be among them.
    logic behind;
    always_comb begin
      ahead  = '0;
      behind = g_counter.pointer > watched;
      for (int i = 0; i < N; i++) begin
        if (W'(i) >= g_counter.pointer ? (behind || W'(i) < watched)
                                       : (behind && W'(i) < watched)) begin
          ahead = ahead + 1'b1;
        end
      end
      if (begun) counter_in_range : assert (32'(g_counter.pointer) < N);
    end
  end
endgenerate

always_comb begin
  if (begun) begin
    not_starved : assert (32'(passed) <= MOST);
    nearer : assert (passed == '0 || 32'(passed) + 32'(ahead) <= MOST);
  end
end
