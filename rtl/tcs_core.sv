// The counters of one logical core for tcs: what it committed in the quantum, and the active
// interval and the criticality sum of the thread that is on it.
//
// All counters saturate. An interval that has ended waits in a slot for the divider that the
// unit's cores share, while the next one is already counted.
module tcs_core #(
    parameter int INST_W = 32,
    parameter int TIME_W = 32,
    parameter int SUM_W = 64,
    parameter int QUOTIENT_W = 48,
    parameter int INC_W = 4,
    parameter int TINC_W = 1
) (
    input  logic                  clk,
    input  logic                  rst,
    // Instructions committed in this cycle, and ticks of the timer that all cores share.
    input  logic [INC_W-1:0]      inst_inc,
    input  logic [TINC_W-1:0]     time_inc,
    // The quantum ends with this cycle.
    input  logic                  quantum,
    // The thread is active in this cycle; its interval ends with it.
    input  logic                  active,
    input  logic                  closes,
    // The operating system gives the sum of the thread that it switches in.
    input  logic                  restore,
    input  logic [SUM_W-1:0]      ltc_in,
    // The divider's answer.
    input  logic                  divided,
    input  logic [QUOTIENT_W-1:0] quotient,
    // Instructions of the last whole quantum: its short-term criticality, the higher the fewer.
    output logic [INST_W-1:0]     committed,
    // Long-term criticality.
    output logic [SUM_W-1:0]      sum,
    // The interval that waits for the divider.
    output logic                  pending,
    output logic [INST_W-1:0]     slot_inst,
    output logic [TIME_W-1:0]     slot_time
);
  logic [INST_W-1:0] done, done_now, own_done, own_now;
  logic [TIME_W-1:0] own_time, time_now;
  logic [SUM_W-1:0] sum_now;

  saturating #(
      .W     (INST_W),
      .MORE_W(INC_W)
  ) add_done (
      .value(done),
      .more (inst_inc),
      .sum  (done_now)
  );

  saturating #(
      .W     (INST_W),
      .MORE_W(INC_W)
  ) add_own (
      .value(own_done),
      .more (active ? inst_inc : '0),
      .sum  (own_now)
  );

  saturating #(
      .W     (TIME_W),
      .MORE_W(TINC_W)
  ) add_time (
      .value(own_time),
      .more (active ? time_inc : '0),
      .sum  (time_now)
  );

  saturating #(
      .W     (SUM_W),
      .MORE_W(QUOTIENT_W)
  ) add_sum (
      .value(sum),
      .more (quotient),
      .sum  (sum_now)
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      done      <= '0;
      own_done  <= '0;
      own_time  <= '0;
      committed <= '0;
      sum       <= '0;
      pending   <= 1'b0;
      slot_inst <= '0;
      slot_time <= '0;
    end else begin
      done <= quantum ? '0 : done_now;
      if (quantum) committed <= done_now;
      own_done <= closes ? '0 : own_now;
      own_time <= closes ? '0 : time_now;
      if (closes) begin
        slot_inst <= own_now;
        slot_time <= time_now;
      end
      // An interval without instructions adds nothing.
      if (closes) pending <= |own_now;
      else if (divided) pending <= 1'b0;
      if (restore) sum <= ltc_in;
      else if (divided) sum <= sum_now;
    end
  end

`ifdef FORMAL
  // The quantum's count begins anew with it.
  logic ended = 1'b0;
  always_ff @(posedge clk) ended <= quantum && !rst;
  always_comb if (ended) anew : assert (done == '0);
`endif
endmodule
