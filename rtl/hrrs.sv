// hrrs: everybody gets the large core in turn. The unit of one large core and its N-1 small ones.
//
// Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
// thesis, UPC 2015), HRRS. Decides as the policy `hrrs` of consort-core does, which is asked at
// every cycle; rtl/README.md has the ports, docs/decisions/ what the thesis leaves open.
//
// All ports are by logical core; core 0 is on the large core after reset.
module hrrs #(
    parameter int N = 4,
    parameter int QUEUE = 1,
    localparam int W = $clog2(N)
) (
    input  logic           clk,
    input  logic           rst,
    // End of the quantum.
    input  logic           quantum_tick,
    // Privilege levels, 2 bits each; 3 is user code.
    input  logic [2*N-1:0] cpl,
    // Cores that have nothing to run.
    input  logic [N-1:0]   idle,
    input  logic           swap_ack,
    output logic           swap_req,
    output logic [W-1:0]   small_id,
    output logic [W-1:0]   large_id,
    output logic [N-1:0]   tss_save,
    output logic [N-1:0]   tss_load
);
  logic [N-1:0] user, able;
  logic [W-1:0] on_large, first, unused_scan;
  logic due, due_now, decides, found, go;

  always_comb begin
    for (int i = 0; i < N; i++) user[i] = &cpl[2*i +: 2];
    // The active bits of those that may come.
    able = user & ~idle;
    able[on_large] = 1'b0;
  end

  // An exchange is due at the end of a quantum and while the large core is idle, and waits for
  // the large core to leave the kernel.
  assign due_now = due || quantum_tick || idle[on_large];
  assign decides = due_now && user[on_large] && !swap_req;
  assign go      = decides && found;

  always_ff @(posedge clk) begin
    if (rst) due <= 1'b0;
    else due <= due_now && !decides;
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
  `include "formal/hrrs.svh"
`endif
endmodule
