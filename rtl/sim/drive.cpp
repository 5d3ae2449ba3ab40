// Drives the model of `chip` from standard input and tells what it did on standard output.
//
// A request is a number of cycles and the inputs of the first of them; in the others nothing is
// asked or counted, and levels stay. The reply comes after that many cycles, or after the first in
// which a quantum is taken, an exchange is decided, or a request for one begins or ends. Numbers
// are little-endian, and every port is as long as Verilator's type for it.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>

#include "Vchip.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

namespace {

std::unique_ptr<VerilatedContext> context;
std::unique_ptr<Vchip> chip;
#if VM_TRACE
std::unique_ptr<VerilatedVcdC> trace;
#endif

template <typename Port>
bool take(Port& port) {
  return std::fread(&port, sizeof(Port), 1, stdin) == 1;
}

template <typename Port>
void tell(const Port& port) {
  std::fwrite(&port, sizeof(Port), 1, stdout);
}

template <typename Port>
void clear(Port& port) {
  std::memset(&port, 0, sizeof(Port));
}

void half(int level) {
  chip->clk = level;
  chip->eval();
#if VM_TRACE
  if (trace) trace->dump(context->time());
#endif
  context->timeInc(1);
}

bool take_inputs() {
  return take(chip->quantum_tick) && take(chip->cpl) && take(chip->idle) && take(chip->inst_inc) &&
         take(chip->time_inc) && take(chip->call_valid) && take(chip->call_active) &&
         take(chip->ltc_save) && take(chip->ltc_restore) && take(chip->ltc_in) &&
         take(chip->swap_ack);
}

void clear_strobes() {
  clear(chip->quantum_tick);
  clear(chip->inst_inc);
  clear(chip->time_inc);
  clear(chip->call_valid);
  clear(chip->ltc_save);
  clear(chip->ltc_restore);
  clear(chip->swap_ack);
}

void reset() {
  chip->rst = 1;
  std::memset(&chip->cpl, 0xff, sizeof(chip->cpl));
  half(0);
  half(1);
  chip->rst = 0;
}

}  // namespace

int main(int argc, char** argv) {
  context = std::make_unique<VerilatedContext>();
  chip = std::make_unique<Vchip>(context.get());
#if VM_TRACE
  if (argc > 1) {
    context->traceEverOn(true);
    trace = std::make_unique<VerilatedVcdC>();
    chip->trace(trace.get(), 5);
    trace->open(argv[1]);
  }
#else
  (void)argc;
  (void)argv;
#endif
  clear_strobes();
  clear(chip->idle);
  clear(chip->call_active);
  clear(chip->ltc_in);
  reset();
  std::uint32_t most = 0;
  while (take(most) && take_inputs()) {
    std::uint32_t ran = 0;
    bool stops = false;
    auto taken = chip->quantum_taken;
    auto decided = chip->decided;
    auto ready = chip->ready;
    while (!stops && ran < most) {
      half(0);
      taken = chip->quantum_taken;
      decided = chip->decided;
      ready = chip->ready;
      const auto before = chip->swap_req;
      half(1);
      ran++;
      stops = taken != 0 || decided != 0 || chip->swap_req != before;
      clear_strobes();
    }
    tell(ran);
    tell(taken);
    tell(decided);
    tell(ready);
    tell(chip->ready);
    tell(chip->swap_req);
    tell(chip->small_id);
    tell(chip->large_id);
    tell(chip->ltc_out);
    tell(chip->tss_save);
    tell(chip->tss_load);
    std::fflush(stdout);
  }
#if VM_TRACE
  if (trace) trace->close();
#endif
  return 0;
}
