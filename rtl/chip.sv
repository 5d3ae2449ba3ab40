// The units of a chip: one per large core, each with its own group of small cores.
//
// Groups are of equal size. REGIONS = 1: each is a region of neighbouring cores, the large one
// first, as where groups have last-level caches of their own. REGIONS = 0: the large cores are the
// first of the chip, and the small ones are dealt to them in order. Ports are by logical core of
// the chip, those of the exchange by group.
module chip #(
    // 0: hrrs, 1: kuths, 2: tcs.
    parameter int POLICY = 0,
    parameter int N = 4,
    parameter int GROUPS = 1,
    parameter int REGIONS = 1,
    parameter int QUEUE = 1,
    parameter int LAGGING = 0,
    parameter int IMMEDIATE = 0,
    parameter int SUM_W = 64,
    parameter int INC_W = 32,
    parameter int TINC_W = 32,
    localparam int W = $clog2(N)
) (
    input  logic                clk,
    input  logic                rst,
    input  logic                quantum_tick,
    input  logic [2*N-1:0]      cpl,
    input  logic [N-1:0]        idle,
    input  logic [N*INC_W-1:0]  inst_inc,
    input  logic [TINC_W-1:0]   time_inc,
    input  logic [N-1:0]        call_valid,
    input  logic [N-1:0]        call_active,
    input  logic [N-1:0]        ltc_save,
    input  logic [N-1:0]        ltc_restore,
    input  logic [N*SUM_W-1:0]  ltc_in,
    output logic [N*SUM_W-1:0]  ltc_out,
    output logic [N-1:0]        ready,
    input  logic [GROUPS-1:0]   swap_ack,
    output logic [GROUPS-1:0]   swap_req,
    output logic [GROUPS*W-1:0] small_id,
    output logic [GROUPS*W-1:0] large_id,
    output logic [N-1:0]        tss_save,
    output logic [N-1:0]        tss_load,
    output logic [GROUPS-1:0]   quantum_taken,
    output logic [GROUPS-1:0]   decided
);
  localparam int M = N / GROUPS;
  localparam int MW = $clog2(M);

  generate
    for (genvar g = 0; g < GROUPS; g++) begin : g_group
      logic [2*M-1:0] own_cpl;
      logic [M-1:0] own_idle, own_save, own_load;
      logic [MW-1:0] own_small, own_large;

      for (genvar i = 0; i < M; i++) begin : g_core
        localparam int C = REGIONS != 0 ? g * M + i : i == 0 ? g : GROUPS + g * (M - 1) + i - 1;
        assign own_cpl[2*i +: 2] = cpl[2*C +: 2];
        assign own_idle[i]       = idle[C];
        assign tss_save[C]       = own_save[i];
        assign tss_load[C]       = own_load[i];
      end

      // The chip's numbers of the cores that are exchanged.
      always_comb begin
        small_id[g*W +: W] = '0;
        large_id[g*W +: W] = '0;
        for (int i = 0; i < M; i++) begin
          if (own_small == MW'(i)) begin
            small_id[g*W +: W] = W'(REGIONS != 0 ? g * M + i :
                                    i == 0 ? g : GROUPS + g * (M - 1) + i - 1);
          end
          if (own_large == MW'(i)) begin
            large_id[g*W +: W] = W'(REGIONS != 0 ? g * M + i :
                                    i == 0 ? g : GROUPS + g * (M - 1) + i - 1);
          end
        end
      end

      if (POLICY == 2) begin : g_tcs
        logic [M*INC_W-1:0] own_inc;
        logic [M-1:0] own_valid, own_active, own_out, own_in, own_ready;
        logic [M*SUM_W-1:0] own_ltc_in, own_ltc_out;

        for (genvar i = 0; i < M; i++) begin : g_core
          localparam int C = REGIONS != 0 ? g * M + i : i == 0 ? g : GROUPS + g * (M - 1) + i - 1;
          assign own_inc[i*INC_W +: INC_W]    = inst_inc[C*INC_W +: INC_W];
          assign own_valid[i]                 = call_valid[C];
          assign own_active[i]                = call_active[C];
          assign own_out[i]                   = ltc_save[C];
          assign own_in[i]                    = ltc_restore[C];
          assign own_ltc_in[i*SUM_W +: SUM_W] = ltc_in[C*SUM_W +: SUM_W];
          assign ltc_out[C*SUM_W +: SUM_W]    = own_ltc_out[i*SUM_W +: SUM_W];
          assign ready[C]                     = own_ready[i];
        end

        tcs #(
            .N        (M),
            .QUEUE    (QUEUE),
            .LAGGING  (LAGGING),
            .IMMEDIATE(IMMEDIATE),
            .SUM_W    (SUM_W),
            .INC_W    (INC_W),
            .TINC_W   (TINC_W)
        ) unit (
            .clk          (clk),
            .rst          (rst),
            .quantum_tick (quantum_tick),
            .cpl          (own_cpl),
            .idle         (own_idle),
            .inst_inc     (own_inc),
            .time_inc     (time_inc),
            .call_valid   (own_valid),
            .call_active  (own_active),
            .ltc_save     (own_out),
            .ltc_restore  (own_in),
            .ltc_in       (own_ltc_in),
            .ltc_out      (own_ltc_out),
            .ready        (own_ready),
            .swap_ack     (swap_ack[g]),
            .swap_req     (swap_req[g]),
            .small_id     (own_small),
            .large_id     (own_large),
            .tss_save     (own_save),
            .tss_load     (own_load),
            .quantum_taken(quantum_taken[g]),
            .decided      (decided[g])
        );
      end else begin : g_turns
        for (genvar i = 0; i < M; i++) begin : g_core
          localparam int C = REGIONS != 0 ? g * M + i : i == 0 ? g : GROUPS + g * (M - 1) + i - 1;
          assign ltc_out[C*SUM_W +: SUM_W] = '0;
          assign ready[C]                  = 1'b1;
        end
        // These decide in any cycle in which no exchange is under way.
        assign quantum_taken[g] = quantum_tick;
        assign decided[g]       = !swap_req[g];

        if (POLICY == 1) begin : g_kuths
          kuths #(
              .N    (M),
              .QUEUE(QUEUE)
          ) unit (
              .clk         (clk),
              .rst         (rst),
              .quantum_tick(quantum_tick),
              .cpl         (own_cpl),
              .idle        (own_idle),
              .swap_ack    (swap_ack[g]),
              .swap_req    (swap_req[g]),
              .small_id    (own_small),
              .large_id    (own_large),
              .tss_save    (own_save),
              .tss_load    (own_load)
          );
        end else begin : g_hrrs
          hrrs #(
              .N    (M),
              .QUEUE(QUEUE)
          ) unit (
              .clk         (clk),
              .rst         (rst),
              .quantum_tick(quantum_tick),
              .cpl         (own_cpl),
              .idle        (own_idle),
              .swap_ack    (swap_ack[g]),
              .swap_req    (swap_req[g]),
              .small_id    (own_small),
              .large_id    (own_large),
              .tss_save    (own_save),
              .tss_load    (own_load)
          );
        end
      end
    end

    if (POLICY != 2) begin : g_unused
      logic unused;
      assign unused = &{1'b0, inst_inc, time_inc, call_valid, call_active, ltc_save, ltc_restore,
                        ltc_in};
    end
  endgenerate
endmodule
