// tcs: the most critical thread gets the large core. The unit of one large core and its N-1 small
// ones.
//
// Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
// thesis, UPC 2015), TCS. Decides as the policy `tcs:arithmetic=integer,immediate=false` of
// consort-core does, with IMMEDIATE = 1 as `tcs:arithmetic=integer`.
//
// At the end of a quantum every active interval ends; one divider adds them to the sums in turn,
// then one comparator goes through the small cores. Should anybody go idle, enter or leave the
// kernel, stall or go on meanwhile, it begins again, so that a decision is always one about the
// cycle in which it is made (`decided`).
module tcs #(
    parameter int N = 4,
    parameter int QUEUE = 1,
    // 1: the lowest long-term sum gets the large core; 0: the highest.
    parameter int LAGGING = 0,
    // 1: long-term criticality decides as soon as a thread stalls or goes on; 0: at the end of that
    // quantum, but at once if the large core has nothing to run.
    parameter int IMMEDIATE = 0,
    parameter int INST_W = 32,
    parameter int TIME_W = 32,
    parameter int SUM_W = 64,
    parameter int FRAC = 16,
    parameter int INC_W = 4,
    parameter int TINC_W = 1,
    localparam int W = $clog2(N)
) (
    input  logic               clk,
    input  logic               rst,
    input  logic               quantum_tick,
    input  logic [2*N-1:0]     cpl,
    input  logic [N-1:0]       idle,
    input  logic [N*INC_W-1:0] inst_inc,
    input  logic [TINC_W-1:0]  time_inc,
    // Call-downs: the thread on a core stalls (0) or goes on (1). Taken where `ready`.
    input  logic [N-1:0]       call_valid,
    input  logic [N-1:0]       call_active,
    // The operating system switches a thread out, later reads its sum, and switches one in.
    input  logic [N-1:0]       ltc_save,
    input  logic [N-1:0]       ltc_restore,
    input  logic [N*SUM_W-1:0] ltc_in,
    output logic [N*SUM_W-1:0] ltc_out,
    output logic [N-1:0]       ready,
    input  logic               swap_ack,
    output logic               swap_req,
    output logic [W-1:0]       small_id,
    output logic [W-1:0]       large_id,
    output logic [N-1:0]       tss_save,
    output logic [N-1:0]       tss_load,
    // The quantum ends, for the counters, with this cycle; an exchange is decided in it.
    output logic               quantum_taken,
    output logic               decided
);
  localparam int QUOTIENT_W = TIME_W + FRAC;
  // Of the two criticalities.
  localparam int KEY_W = SUM_W > INST_W ? SUM_W : INST_W;
  // Places in the order of turns; the counter's has one for the large core.
  localparam logic [W-1:0] LAST_PLACE = W'(QUEUE != 0 ? N - 2 : N - 1);

  logic [N-1:0] user, active, active_now, closes, restores, pending, divided_for;
  logic [N*INST_W-1:0] committed, slot_inst;
  logic [N*TIME_W-1:0] slot_time;
  logic [W-1:0] on_large, dividing, next_pending;
  logic divider_busy, divided, starts, tick_waits, changed, stirred, stirred_now;
  logic [QUOTIENT_W-1:0] quotient;

  always_comb begin
    for (int i = 0; i < N; i++) user[i] = &cpl[2*i +: 2];
  end

  // Who is active from the next cycle on.
  assign ready    = ~pending;
  assign restores = ltc_restore & ready;
  always_comb begin
    for (int i = 0; i < N; i++) begin
      active_now[i] = active[i];
      if (ready[i]) begin
        if (ltc_restore[i]) active_now[i] = 1'b1;
        else if (ltc_save[i]) active_now[i] = 1'b0;
        else if (call_valid[i]) active_now[i] = call_active[i];
      end
    end
  end
  assign changed = active_now != active;

  // The quantum's end waits until every slot is free.
  assign quantum_taken = (quantum_tick || tick_waits) && pending == '0;
  assign closes        = active & (~active_now | {N{quantum_taken}});
  assign stirred_now   = stirred || changed;

  always_ff @(posedge clk) begin
    if (rst) begin
      active     <= '0;
      tick_waits <= 1'b0;
      stirred    <= 1'b0;
    end else begin
      active     <= active_now;
      tick_waits <= (quantum_tick || tick_waits) && !quantum_taken;
      stirred    <= stirred_now && !quantum_taken;
    end
  end

  generate
    for (genvar i = 0; i < N; i++) begin : g_core
      tcs_core #(
          .INST_W    (INST_W),
          .TIME_W    (TIME_W),
          .SUM_W     (SUM_W),
          .QUOTIENT_W(QUOTIENT_W),
          .INC_W     (INC_W),
          .TINC_W    (TINC_W)
      ) counters (
          .clk      (clk),
          .rst      (rst),
          .inst_inc (inst_inc[i*INC_W +: INC_W]),
          .time_inc (time_inc),
          .quantum  (quantum_taken),
          .active   (active[i]),
          .closes   (closes[i]),
          .restore  (restores[i]),
          .ltc_in   (ltc_in[i*SUM_W +: SUM_W]),
          .divided  (divided_for[i]),
          .quotient (quotient),
          .committed(committed[i*INST_W +: INST_W]),
          .sum      (ltc_out[i*SUM_W +: SUM_W]),
          .pending  (pending[i]),
          .slot_inst(slot_inst[i*INST_W +: INST_W]),
          .slot_time(slot_time[i*TIME_W +: TIME_W])
      );
    end
  endgenerate

  // The divider takes the lowest core whose slot is full.
  assign starts = pending != '0 && !divider_busy;
  always_comb begin
    next_pending = '0;
    for (int i = N - 1; i >= 0; i--) if (pending[i]) next_pending = W'(i);
    for (int i = 0; i < N; i++) divided_for[i] = divided && dividing == W'(i);
  end
  always_ff @(posedge clk) begin
    if (rst) dividing <= '0;
    else if (starts) dividing <= next_pending;
  end

  divider #(
      .INST_W(INST_W),
      .TIME_W(TIME_W),
      .FRAC  (FRAC)
  ) divide (
      .clk     (clk),
      .rst     (rst),
      .start   (starts),
      .dividend(slot_time[next_pending*TIME_W +: TIME_W]),
      .inst    (slot_inst[dividing*INST_W +: INST_W]),
      .busy    (divider_busy),
      .divided (divided),
      .quotient(quotient)
  );

  // By which counter an exchange is to be decided, if at all.
  logic due, due_long, may_scan, stable, eligible, better, go, unused_found;
  logic [N-1:0] last_user, last_idle;
  logic [W-1:0] unused_first;
  // The scan: first the large core, then place after place, then the decision.
  logic scanning, complete, best_active, found;
  logic [W-1:0] place, candidate, looked_at, best;
  logic [KEY_W-1:0] key, best_key;

  assign stable   = !changed && user == last_user && idle == last_idle;
  assign may_scan = due && user[on_large] && pending == '0 && !swap_req && !quantum_taken;
  assign decided  = may_scan && scanning && complete && stable;
  assign go       = decided && found;

  assign looked_at = scanning ? candidate : on_large;
  always_comb begin
    if (due_long) key = KEY_W'(ltc_out[looked_at*SUM_W +: SUM_W]);
    else key = KEY_W'(committed[looked_at*INST_W +: INST_W]);
    // The fewest instructions, the highest sum or the lowest.
    if (!due_long || (LAGGING != 0)) key = ~key;
  end
  assign eligible = candidate != on_large && user[candidate] && !idle[candidate]
      && active[candidate];
  // Of equals the one whose turn it is stays.
  assign better   = !best_active || key > best_key;

  always_ff @(posedge clk) begin
    if (rst) begin
      due         <= 1'b0;
      due_long    <= 1'b0;
      last_user <= '0;
      last_idle <= '0;
      scanning    <= 1'b0;
      complete    <= 1'b0;
      best_active <= 1'b0;
      found       <= 1'b0;
      place       <= '0;
      best        <= '0;
      best_key    <= '0;
    end else begin
      last_user <= user;
      last_idle <= idle;
      if (changed && ((IMMEDIATE != 0) || !active_now[on_large])) begin
        due      <= 1'b1;
        due_long <= 1'b1;
      end else if (quantum_taken) begin
        due      <= 1'b1;
        due_long <= stirred_now && (IMMEDIATE == 0);
      end else if (decided) begin
        due <= 1'b0;
      end
      if (!may_scan || decided || (scanning && !stable)) begin
        scanning <= 1'b0;
      end else if (!scanning) begin
        scanning    <= stable;
        complete    <= 1'b0;
        place       <= '0;
        found       <= 1'b0;
        best        <= on_large;
        best_active <= active[on_large];
        best_key    <= key;
      end else if (!complete) begin
        complete <= place == LAST_PLACE;
        place    <= place + W'(1);
        if (eligible && better) begin
          found       <= 1'b1;
          best        <= candidate;
          best_active <= 1'b1;
          best_key    <= key;
        end
      end
    end
  end

  turn_order #(
      .N    (N),
      .QUEUE(QUEUE)
  ) turns (
      .clk     (clk),
      .rst     (rst),
      .able    ('0),
      .found   (unused_found),
      .first   (unused_first),
      .scan_pos(place),
      .scan_id (candidate),
      .taken   (go),
      .small_id(best),
      .large_id(on_large)
  );

  swap_port #(
      .N(N)
  ) port (
      .clk     (clk),
      .rst     (rst),
      .go      (go),
      .chosen  (best),
      .swap_ack(swap_ack),
      .on_large(on_large),
      .swap_req(swap_req),
      .small_id(small_id),
      .large_id(large_id),
      .tss_save(tss_save),
      .tss_load(tss_load)
  );

  logic unused;
  assign unused = &{1'b0, unused_found, unused_first};

`ifdef FORMAL
  `include "formal/tcs.svh"
`endif
endmodule
