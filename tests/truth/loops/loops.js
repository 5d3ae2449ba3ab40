// Loops of JavaScript: `node loops.js LOOP rate KIB_SMALL KIB_LARGE | run KIB SECONDS`.
"use strict";
const SLICE_S = 0.03;
const SLICES = 15;
const loops = {
  sum(kib) {
    const a = new Float64Array(kib * 128).fill(1.5);
    let at = 0;
    return () => {
      let total = 0;
      for (let i = at; i < at + 2048 && i < a.length; i++) total += a[i];
      at = at + 4096 > a.length ? 0 : at + 2048;
      return total > 0 ? 1 : 0;
    };
  },
  gather(kib) {
    const a = new Int32Array(kib * 256).fill(3);
    let x = 123456789, total = 0;
    return () => {
      for (let i = 0; i < 2000; i++) {
        x ^= x << 13; x ^= x >>> 17; x ^= x << 5;
        total = (total + a[(x >>> 0) % a.length]) | 0;
      }
      return total ? 1 : 0;
    };
  },
  table(kib) {
    const map = new Map();
    const n = Math.floor(kib * 1024 / 64);
    for (let i = 0; i < n; i++) map.set(i * 7919, i);
    let x = 123456789, total = 0;
    return () => {
      for (let i = 0; i < 1000; i++) {
        x ^= x << 13; x ^= x >>> 17; x ^= x << 5;
        total += map.get(((x >>> 0) % n) * 7919) & 1;
      }
      return total >= 0 ? 1 : 0;
    };
  },
};
const seconds = () => process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6;
function workFor(step, time) {
  const start = seconds();
  let now = start, done = 0;
  while (now - start < time) {
    for (let i = 0; i < 20; i++) done += step();
    now = seconds();
  }
  return done / (now - start);
}
const [name, verb, first, second] = process.argv.slice(2);
const loop = loops[name];
if (verb === "rate") {
  const small = loop(Number(first)), large = loop(Number(second)), ratios = [];
  workFor(small, 0.3);
  workFor(large, 0.3);
  for (let i = 0; i < SLICES; i++) {
    const before = workFor(small, SLICE_S), between = workFor(large, 2 * SLICE_S);
    ratios.push(between / ((before + workFor(small, SLICE_S)) / 2));
  }
  ratios.sort((a, b) => a - b);
  console.log(ratios[(SLICES - 1) / 2]);
} else {
  workFor(loop(Number(first)), Number(second));
}
