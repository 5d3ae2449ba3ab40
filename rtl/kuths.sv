// kuths: who has just come back from the kernel gets the large core. The unit of one large core
// and its N-1 small ones.
//
// Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
// thesis, UPC 2015), KUTHS. Decides as the policy `kuths` of consort-core does; see hrrs.sv for
// the ports.
module kuths #(
    parameter int N = 4,
    parameter int QUEUE = 1,
    localparam int W = $clog2(N)
) (
    input  logic           clk,
    input  logic           rst,
    input  logic           quantum_tick,
    input  logic [2*N-1:0] cpl,
    input  logic [N-1:0]   idle,
    input  logic           swap_ack,
    output logic           swap_req,
    output logic [W-1:0]   small_id,
    output logic [W-1:0]   large_id,
    output logic [N-1:0]   tss_save,
    output logic [N-1:0]   tss_load
);
  logic [N-1:0] user, was_user, ready, able, on_small;
  // Transition bits of this quantum, and those that the due exchange goes by.
  logic [N-1:0] bits, bits_now, due_bits, due_bits_now;
  logic [W-1:0] on_large, first, unused_scan;
  logic due, due_now, decides, found, some_small, stays, go;

  always_comb begin
    for (int i = 0; i < N; i++) user[i] = &cpl[2*i +: 2];
    on_small           = '1;
    on_small[on_large] = 1'b0;
  end

  assign bits_now     = bits | (user & ~was_user);
  assign due_bits_now = quantum_tick ? bits_now : due_bits;

  // Idle cores and those in the kernel are passed over. If a small core's bit is set, only those
  // whose bit is set may come.
  assign some_small = |(due_bits_now & on_small);
  assign ready      = user & ~idle & on_small;
  assign able       = some_small ? (ready & due_bits_now) : ready;

  // The large core's bit alone leaves it there, unless it has gone idle since.
  assign stays   = !some_small && due_bits_now[on_large] && !idle[on_large];
  assign due_now = due || quantum_tick || idle[on_large];
  assign decides = due_now && user[on_large] && !swap_req;
  assign go      = decides && found && !stays;

  always_ff @(posedge clk) begin
    if (rst) begin
      was_user <= '1;
      bits     <= '0;
      due_bits <= '0;
      due      <= 1'b0;
    end else begin
      was_user <= user;
      bits     <= quantum_tick ? '0 : bits_now;
      due_bits <= decides ? '0 : due_bits_now;
      due      <= due_now && !decides;
    end
  end

  turn_order #(
      .N    (N),
      .QUEUE(QUEUE)
  ) turns (
      .clk     (clk),
      .rst     (rst),
      .able    (able),
      .found   (found),
      .first   (first),
      .scan_pos('0),
      .scan_id (unused_scan),
      .taken   (go),
      .small_id(first),
      .large_id(on_large)
  );

  swap_port #(
      .N(N)
  ) port (
      .clk     (clk),
      .rst     (rst),
      .go      (go),
      .chosen  (first),
      .swap_ack(swap_ack),
      .on_large(on_large),
      .swap_req(swap_req),
      .small_id(small_id),
      .large_id(large_id),
      .tss_save(tss_save),
      .tss_load(tss_load)
  );

  logic unused;
  assign unused = &{1'b0, unused_scan};

`ifdef FORMAL
  `include "formal/kuths.svh"
`endif
endmodule
