// A worked example for one unit of four cores, as lines of comma-separated values: one for each
// cycle in which something that is shown changes. POLICY is the module's parameter.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "Vchip.h"
#include "verilated.h"

namespace {

Vchip* chip;
int cycle = 0;
std::string last;

// Levels before the edge, the request after it.
void show() {
  char line[160];
  std::snprintf(line, sizeof line, "%d,%d%d%d%d,%d%d%d%d,%d,%d,%d,%d,%d,%d", chip->quantum_tick,
                (chip->cpl & 3) == 3, (chip->cpl >> 2 & 3) == 3, (chip->cpl >> 4 & 3) == 3,
                (chip->cpl >> 6 & 3) == 3, chip->idle & 1, chip->idle >> 1 & 1,
                chip->idle >> 2 & 1, chip->idle >> 3 & 1, chip->ready == 15, chip->decided,
                chip->swap_req, chip->small_id, chip->large_id, chip->swap_ack);
  if (last != line) std::printf("%d,%s\n", cycle, line);
  last = line;
}

void step() {
  chip->clk = 0;
  chip->eval();
  show();
  chip->clk = 1;
  chip->eval();
  cycle++;
  chip->quantum_tick = 0;
  chip->swap_ack = 0;
  chip->ltc_restore = 0;
}

void steps(int n) {
  for (int i = 0; i < n; i++) step();
}

void tick() {
  chip->quantum_tick = 1;
  step();
}

void acknowledge() {
  chip->swap_ack = 1;
  step();
}

}  // namespace

int main() {
  VerilatedContext context;
  chip = new Vchip(&context);
  chip->cpl = 0xff;
  chip->rst = 1;
  chip->clk = 0;
  chip->eval();
  chip->clk = 1;
  chip->eval();
  chip->rst = 0;
  std::puts("cycle,quantum_tick,user,idle,ready,decided,swap_req,small_id,large_id,swap_ack");
#if POLICY == 2
  // All come with sums of 0; core 2 is the slowest.
  chip->ltc_restore = 15;
  step();
  const std::uint32_t per_cycle[4] = {4, 3, 1, 2};
  for (int i = 0; i < 4; i++) chip->inst_inc[i] = per_cycle[i];
  chip->time_inc = 1;
  steps(3);
  tick();
  steps(215);
  acknowledge();
  steps(2);
#else
  steps(2);
#if POLICY == 1
  // Core 3 comes back from the kernel.
  chip->cpl = 0x3f;
  steps(2);
  chip->cpl = 0xff;
  step();
#else
  // Core 1 is idle and passed over.
  chip->idle = 2;
  step();
#endif
  tick();
  steps(3);
  acknowledge();
  chip->idle = 0;
  steps(2);
  // The large core is in the kernel at the next quantum's end.
  chip->cpl = POLICY == 1 ? 0x3f : 0xcf;
  step();
  tick();
  steps(3);
  chip->cpl = 0xff;
  steps(3);
  acknowledge();
  steps(2);
#endif
  delete chip;
  return 0;
}
