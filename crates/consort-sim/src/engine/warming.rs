//! Warming the caches of another place: additional misses over time.
//!
//! With nothing of its own in a cache, a thread's content grows with the instructions n that it
//! runs: `dc/dn = m(c)`, m the bytes that it brings in per instruction when it holds c (footprint
//! theory: Xiang, Ding, Luo and Bao, "HOTL: a higher order theory of locality", ASPLOS 2013;
//! the same way from empty to full by which [`MissCurve`] divides shared caches). In the end it
//! holds C and misses `m(C)`, which it would have missed anyway. So from content c₀ on it misses
//! additionally, until it holds c,
//!
//! `X = ∫ (1 − m(C)/m(c)) dc` from c₀ to c, which is `c − c₀ − m(C)·n`, bytes,
//!
//! never more than everything that it lacks, and nothing where a smaller content misses no more.
//! What a thread would gain by holding more than it held where it comes from is no cost of the move,
//! so C is at most that.
//!
//! Lines that it has written elsewhere are invalid where it returns: of the lines that it touched
//! there, the share w that its write-backs show. It misses them as `w·X` from an empty cache.
//!
//! These misses are paid as they happen, at the price that misses of that level have where the
//! thread is now, and count as accesses, traffic and energy of the level that supplies them.
//!
//! Between two ages, in instructions since it came, the integral is taken as linear, so that rates
//! stay constant between events; at each of these ages it is exact.
//!
//! Pitfalls: the traffic is counted, but does not slow other threads down. A thread's first cache
//! contents are there when it starts.

use super::counts::{LEVELS, ThreadCounts, add_activity, add_stack};
use super::observer::EnergyMeter;
use crate::chip::{Chip, PuPlace};
use crate::contention::{CpiStack, InstructionActivity, ThreadRates, time_to_fill};
use crate::phase::{LineEffect, MissCurve, Phase};
use crate::program::MixSpec;

/// First age, instructions, up to which additional misses are taken together.
const FIRST_AGE: f64 = 4096.0;
/// Each further age over the one before.
const NEXT_AGE: f64 = 4.0;
/// Bytes per line of the curves.
const CURVE_LINE_BYTES: f64 = 64.0;
/// Misses per instruction below which the solution does not show the price of one.
const FEW: f64 = 1e-7;
/// Additional time per instruction that is negligible, cycles.
const NOTHING: f64 = 1e-9;

/// A thread's way to a warm cache at each level.
#[derive(Clone, Debug, Default)]
pub(crate) struct CacheWarming {
    levels: [WarmingLevel; LEVELS],
    /// Instructions since it came to this place.
    age: f64,
    /// Instructions to the next age; `None` if everything is warm.
    left: Option<f64>,
    /// Share of the misses beyond the L1D that it waits for.
    waited: f64,
    /// Contents that it found here, until its rates are known.
    arrived: Option<InitialContents>,
    /// Latency of the supplier of misses of its LLC, s; `None` if that is memory.
    elsewhere_s: Option<f64>,
    /// Additional misses and cycles of an instruction.
    pub(crate) flow: InstructionActivity,
    /// Additional cycles of an instruction by cause.
    pub(crate) stack: CpiStack,
    /// Energy of both, J per instruction.
    pub(crate) energy_j: f64,
}

/// Cache contents that a thread finds at the place that it comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct InitialContents {
    /// Bytes of its own.
    pub(crate) found: [f64; LEVELS],
    /// Share of its footprint that siblings hold there, 0 to 1.
    pub(crate) siblings: [f64; LEVELS],
    /// Bytes that it held where it comes from.
    pub(crate) held: [f64; LEVELS],
    /// Instructions that it has run elsewhere since it was there.
    pub(crate) away: [f64; LEVELS],
    /// Latency of the supplier of misses of its LLC, s; `None` if that is memory.
    pub(crate) elsewhere_s: Option<f64>,
}

/// One level, in instructions from empty.
#[derive(Clone, Copy, Debug, Default)]
struct WarmingLevel {
    /// Instructions that would have brought in what is there.
    filled: f64,
    /// The same for what is there in the end.
    full: f64,
    /// Share of the lines touched elsewhere that are invalid here, 0 to 1.
    stale: f64,
    /// Instructions that touch as many lines as were touched elsewhere.
    touched: f64,
    /// Most that it holds in the end, bytes; `None` if not limited.
    most: Option<f64>,
    /// Bytes that an instruction brings in even then.
    anyway: f64,
    /// Positions of the last answer in the tables of data and code.
    steps: [usize; 2],
}

/// The curves by which a level fills.
#[derive(Clone, Copy)]
struct LevelFilling<'a> {
    data: &'a MissCurve,
    /// None for the L1D.
    code: Option<&'a MissCurve>,
}

impl LevelFilling<'_> {
    /// Bytes held after so many instructions, and bytes that one more brings in; `steps` as for
    /// [`MissCurve::content_after`].
    fn content_after(&self, instructions: f64, [of_data, of_code]: &mut [usize; 2]) -> (f64, f64) {
        let data = self.data.content_after(instructions, of_data);
        let code = self
            .code
            .map(|code| code.content_after(instructions, of_code));
        let code = code.unwrap_or_default();
        (data.0 + code.0, data.1 + code.1)
    }

    /// Instructions from empty until so many bytes are held.
    fn time_to(&self, bytes: f64) -> f64 {
        if bytes <= 0.0 {
            return 0.0;
        }
        match self.code {
            None => self.data.fill_for(bytes),
            Some(code) => time_to_fill(bytes, self.data, code),
        }
    }

    /// Lines missed while a level fills between two times, in instructions from empty, that are not
    /// missed when full.
    fn additional_lines(&self, level: &mut WarmingLevel, (from, to): (f64, f64)) -> f64 {
        let to = to.min(level.full);
        if to <= from {
            return 0.0;
        }
        let before = self.content_after(from, &mut level.steps).0;
        let missed = self.content_after(to, &mut level.steps).0 - before;
        (missed - level.anyway * (to - from)).max(0.0) / CURVE_LINE_BYTES
    }
}

fn filling(phase: &Phase, level: usize, line_bytes: f64) -> LevelFilling<'_> {
    LevelFilling {
        data: phase.data_for(line_bytes),
        code: (level > 0).then_some(phase.code_for(line_bytes)),
    }
}

/// Place at which a thread warms its caches, and its rates there.
#[derive(Clone, Copy)]
pub(crate) struct WarmingPlace<'a> {
    pub(crate) chip: &'a Chip,
    pub(crate) meter: &'a dyn EnergyMeter,
    /// Physical CPU.
    pub(crate) pu: usize,
    pub(crate) home: usize,
    pub(crate) rates: &'a ThreadRates,
    pub(crate) phase: &'a Phase,
}

impl WarmingPlace<'_> {
    fn place(&self) -> PuPlace {
        self.chip.places()[self.pu]
    }

    fn line_bytes(&self) -> f64 {
        f64::from(self.chip.spec().memory.line_bytes)
    }

    fn lines(&self) -> LineEffect {
        LineEffect::for_data(&self.phase.spec, self.line_bytes())
    }

    /// Returns the bytes of each level that it holds in the end, as the curves count them.
    fn final_bytes(&self) -> [f64; LEVELS] {
        held_bytes(self.rates).map(|bytes| bytes / self.lines().space)
    }

    /// Share of the misses beyond the L1D that a thread that holds so much in the L2 waits for: the
    /// others are prefetched.
    fn waited_share(&self, held: f64) -> f64 {
        let curve = self.phase.data_for(self.line_bytes());
        let raw = curve.mpki(held) / 1000.0 * self.lines().misses;
        let share = if raw > FEW {
            self.rates.flow.l2_misses / raw
        } else {
            1.0 - self.phase.spec.prefetch.effectiveness
        };
        share.clamp(0.0, 1.0)
    }

    /// Cycles of one miss, given those of all misses per instruction; if there are too few, a
    /// latency over the overlap of long misses.
    fn price(&self, cycles: f64, misses: f64, latency_s: f64) -> f64 {
        if misses > FEW {
            return cycles / misses;
        }
        latency_s * self.chip.frequency_hz(self.place()) / self.rates.mlp.max(1.0)
    }

    fn l2_price(&self, latency_s: f64) -> f64 {
        self.price(self.rates.stack.l2, self.rates.flow.l1d_misses, latency_s)
    }

    fn llc_price(&self) -> f64 {
        let flow = &self.rates.flow;
        let latency_s = self.chip.spec().llc.latency_ns * 1e-9;
        self.price(
            self.rates.stack.llc,
            flow.l2_misses - flow.llc_misses,
            latency_s,
        )
    }

    fn memory_price(&self, elsewhere_s: Option<f64>) -> f64 {
        let (stack, flow) = (&self.rates.stack, &self.rates.flow);
        match elsewhere_s {
            Some(latency_s) => self.price(0.0, 0.0, latency_s),
            None => {
                let latency_s = self.chip.memory_latency_ns(self.place(), self.home) * 1e-9;
                self.price(stack.memory + stack.queue, flow.llc_misses, latency_s)
            }
        }
    }
}

fn held_bytes(rates: &ThreadRates) -> [f64; LEVELS] {
    [rates.l1d_bytes, rates.l2_bytes, rates.llc_bytes]
}

impl CacheWarming {
    /// Comes to another place, where rates are not known yet; [`CacheWarming::apply_rates`] takes them in.
    pub(crate) fn arrive(&mut self, arrived: InitialContents) {
        *self = Self {
            arrived: Some(arrived),
            elsewhere_s: arrived.elsewhere_s,
            ..Self::default()
        };
    }

    pub(crate) fn end(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn is_open(&self) -> bool {
        self.arrived.is_some() || self.left.is_some()
    }

    pub(crate) fn is_new(&self) -> bool {
        self.arrived.is_some()
    }

    pub(crate) fn instructions_left(&self) -> f64 {
        self.left.unwrap_or(f64::INFINITY)
    }

    pub(crate) fn cycles(&self) -> f64 {
        self.stack.l2 + self.stack.llc + self.stack.memory
    }

    /// Applies the rates at a place, after coming to it or after they have changed.
    pub(crate) fn apply_rates(&mut self, here: &WarmingPlace<'_>) {
        let held = here.final_bytes();
        let arrived = self.arrived.take();
        for (number, level) in self.levels.iter_mut().enumerate() {
            let filling = filling(here.phase, number, here.line_bytes());
            let space = here.lines().space;
            if let Some(arrived) = &arrived {
                level.most = Some(arrived.held[number] / space);
            }
            let held = held[number].min(level.most.unwrap_or(f64::INFINITY));
            level.full = filling.time_to(held);
            level.anyway = filling.content_after(level.full, &mut level.steps).1;
            if let Some(arrived) = &arrived {
                let found = (arrived.found[number] / space).min(held);
                let own = 1.0 - arrived.siblings[number];
                let lacking = (held - found) * own;
                level.filled = match lacking > 0.0 {
                    true => filling.time_to(held - lacking),
                    false => level.full,
                };
                level.stale = here.phase.spec.writeback_share * own;
                level.touched = arrived.away[number].min(level.filled);
            }
        }
        self.waited = here.waited_share(held[1]);
        self.begin_age(here);
    }

    pub(crate) fn note_instructions(&mut self, instructions: f64) {
        let Some(left) = &mut self.left else {
            return;
        };
        *left -= instructions;
        self.age += instructions;
        for level in &mut self.levels {
            level.filled += instructions;
        }
    }

    /// Computes what is missed until the next age, and ends the warming if that is nothing.
    pub(crate) fn begin_age(&mut self, here: &WarmingPlace<'_>) {
        let mut next = FIRST_AGE;
        while next <= self.age * (1.0 + 1e-9) {
            next *= NEXT_AGE;
        }
        let span = next - self.age;
        let mut missed = [0.0; LEVELS];
        for (number, missed) in missed.iter_mut().enumerate() {
            let filling = filling(here.phase, number, here.line_bytes());
            let level = &mut self.levels[number];
            let from = level.filled;
            let mut lines = filling.additional_lines(level, (from, from + span));
            if level.stale > 0.0 {
                let written = LevelFilling {
                    code: None,
                    ..filling
                };
                let until = next.min(level.touched);
                lines += level.stale * written.additional_lines(level, (self.age, until));
            }
            *missed = lines * here.lines().misses / span;
        }
        self.charge(here, missed);
        if self.cycles() > NOTHING {
            self.left = Some(span);
        } else {
            self.end();
        }
    }

    /// Sets what an instruction takes with additional misses of each level.
    fn charge(&mut self, here: &WarmingPlace<'_>, missed: [f64; LEVELS]) {
        let (chip, place) = (here.chip, here.place());
        let hz = chip.frequency_hz(place);
        let l2 = chip.core_spec(place).l2.as_ref();
        // Without an L2 the LLC supplies what the L1D misses.
        let beyond_l2 = l2.map_or(missed[0], |_| missed[1]);
        let has_llc = chip.llc_kib(place.llc) > 0.0;
        let (of_llc, beyond_llc) = match has_llc {
            true => (beyond_l2, missed[2]),
            false => (0.0, beyond_l2),
        };
        let waited = self.waited;
        let from_memory = self.elsewhere_s.map_or(beyond_llc, |_| 0.0);
        self.flow = InstructionActivity {
            l1d_misses: missed[0],
            l2_misses: beyond_l2 * waited,
            llc_accesses: of_llc,
            llc_misses: beyond_llc * waited,
            prefetched_lines: from_memory * (1.0 - waited),
            memory_lines: from_memory,
            outstanding_cycles: from_memory * chip.memory_latency_ns(place, here.home) * 1e-9 * hz,
            ..InstructionActivity::default()
        };
        self.stack = CpiStack {
            l2: l2.map_or(0.0, |l2| missed[0] * here.l2_price(l2.latency_cycles / hz)),
            llc: of_llc * waited * here.llc_price(),
            memory: beyond_llc * waited * here.memory_price(self.elsewhere_s),
            ..CpiStack::default()
        };
        let core = place.core;
        self.energy_j = here.meter.instruction_j(core, &MixSpec::NONE, &self.flow);
    }
}

impl CacheWarming {
    /// Adds what instructions miss additionally to counts.
    pub(crate) fn count(&self, instructions: f64, counts: &mut ThreadCounts) {
        add_activity(&mut counts.flow, &self.flow, instructions);
        add_stack(&mut counts.stack, &self.stack, instructions);
        counts.refill_cycles += self.cycles() * instructions;
        counts.energy_j += self.energy_j * instructions;
    }

    /// Rates at a clock of so many Hz, with what is missed because caches are not warm.
    pub(crate) fn add_to_rates(&self, rates: &ThreadRates, hz: f64) -> ThreadRates {
        let mut rates = *rates;
        let more = self.cycles();
        if more > 0.0 {
            rates.ips = 1.0 / (1.0 / rates.ips + more / hz);
            rates.cpi += more;
            add_activity(&mut rates.flow, &self.flow, 1.0);
            add_stack(&mut rates.stack, &self.stack, 1.0);
        }
        rates
    }

    /// Returns the bytes of each level that a thread of these rates holds which has run so many
    /// instructions since its levels were last updated.
    pub(crate) fn held_bytes(
        &self,
        rates: &ThreadRates,
        phase: &Phase,
        passed: f64,
        line_bytes: f64,
    ) -> [f64; LEVELS] {
        if let Some(arrived) = &self.arrived {
            return arrived.found;
        }
        let mut held = held_bytes(rates);
        if self.is_open() {
            let space = LineEffect::for_data(&phase.spec, line_bytes).space;
            for (number, held) in held.iter_mut().enumerate() {
                let level = &self.levels[number];
                let filling = filling(phase, number, line_bytes);
                let there = filling.content_after(level.filled + passed, &mut [0; 2]).0;
                let touched = |time: f64| filling.data.content_after(time, &mut 0).0;
                let age = (self.age + passed).min(level.touched);
                let invalid = level.stale * (touched(level.touched) - touched(age));
                *held = held.min((there - invalid) * space);
            }
        }
        held
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{PlainEnergy, chip, program};
    use super::*;
    use crate::program::PhaseSpec;
    use proptest::prelude::*;

    /// Bytes of each level that a thread holds in the end.
    const HELD: [f64; LEVELS] = [32e3, 256e3, 2e6];

    fn phase(mpki: impl Fn(usize) -> f64) -> Phase {
        let mut spec: PhaseSpec = program().phases[0].clone();
        spec.data_mpki = (0..14).map(mpki).collect();
        spec.prefetch.effectiveness = 0.0;
        Phase::new(&spec)
    }

    fn falling() -> Phase {
        phase(|i| 40.0 / f64::from(1 << i))
    }

    fn rates() -> ThreadRates {
        ThreadRates {
            ips: 2e9,
            mlp: 2.0,
            l1d_bytes: HELD[0],
            l2_bytes: HELD[1],
            llc_bytes: HELD[2],
            ..ThreadRates::default()
        }
    }

    fn here<'a>(chip: &'a Chip, rates: &'a ThreadRates, phase: &'a Phase) -> WarmingPlace<'a> {
        WarmingPlace {
            chip,
            meter: &PlainEnergy,
            pu: 0,
            home: 0,
            rates,
            phase,
        }
    }

    /// Lines missed additionally at each level, and cycles, by an age in instructions.
    fn missed(phase: &Phase, arrived: InitialContents, age: f64) -> ([f64; LEVELS], f64) {
        let (chip, rates) = (chip(1), rates());
        let here = here(&chip, &rates, phase);
        let mut warming = CacheWarming::default();
        warming.arrive(arrived);
        warming.apply_rates(&here);
        let (mut lines, mut cycles, mut ran) = ([0.0; LEVELS], 0.0, 0.0);
        while warming.is_open() && ran < age {
            let span = warming.instructions_left().min(age - ran);
            let flow = warming.flow;
            let more = [flow.l1d_misses, flow.llc_accesses, flow.llc_misses];
            for (sum, more) in lines.iter_mut().zip(more) {
                *sum += more * span;
            }
            cycles += warming.cycles() * span;
            ran += span;
            warming.note_instructions(span);
            if warming.instructions_left() <= 0.0 {
                warming.begin_age(&here);
            }
        }
        (lines, cycles)
    }

    fn arrived(found: [f64; LEVELS]) -> InitialContents {
        InitialContents {
            found,
            siblings: [0.0; LEVELS],
            held: HELD,
            away: [0.0; LEVELS],
            elsewhere_s: None,
        }
    }

    const COLD: [f64; LEVELS] = [0.0; LEVELS];
    const LONG: f64 = 1e12;

    #[test]
    fn warm_thread_pays_nothing() {
        assert_eq!(missed(&falling(), arrived(HELD), LONG), (COLD, 0.0));
    }

    #[test]
    fn stream_pays_nothing_for_cold_caches() {
        let stream = phase(|_| 20.0);
        let (lines, _) = missed(&stream, arrived(COLD), LONG);
        // But for the few lines that it finds again in the first 8 KiB of data and of code.
        let first = 2.0 * 8192.0 / CURVE_LINE_BYTES;
        assert!(lines.iter().all(|&lines| lines <= first), "{lines:?}");
    }

    #[test]
    fn fitting_data_is_fetched_once() {
        // Nothing is missed when 64 KiB are held, and almost everything before.
        let fits = phase(|i| if i < 3 { 300.0 } else { 0.0 });
        let (lines, cycles) = missed(&fits, arrived(COLD), LONG);
        // With 8 KiB of code.
        let all = (64.0 + 8.0) * 1024.0 / CURVE_LINE_BYTES;
        assert!((0.8..=1.0).contains(&(lines[1] / all)), "{lines:?}");
        assert!(cycles > 0.0);
    }

    #[test]
    fn written_lines_are_fetched_again() {
        let mut spec = falling().spec.clone();
        spec.writeback_share = 1.0 / 3.0;
        let writing = Phase::new(&spec);
        let back = |away: f64| InitialContents {
            away: [away; LEVELS],
            ..arrived(HELD)
        };
        let written = |away| missed(&writing, back(away), LONG).0;
        let cold = missed(&writing, arrived(COLD), LONG).0;
        // A third of the data that an empty cache would miss, when all has been touched elsewhere;
        // code, 8 KiB of it, is not written.
        let third = written(LONG).map(|lines| 3.0 * lines);
        assert!(
            (third[0] / cold[0] - 1.0).abs() < 1e-3,
            "{third:?} {cold:?}"
        );
        assert!(
            (cold[1] - third[1] - 128.0).abs() < 4.0,
            "{third:?} {cold:?}"
        );
        assert!(written(1e4)[1] < written(1e6)[1] && written(1e6)[1] <= written(LONG)[1]);
        assert_eq!(missed(&falling(), back(LONG), LONG).0, COLD);
    }

    #[test]
    fn no_more_than_was_held_is_fetched() {
        let smaller = HELD.map(|held| held / 4.0);
        let some = InitialContents {
            held: smaller,
            ..arrived(smaller)
        };
        assert_eq!(missed(&falling(), some, LONG).0, COLD);
    }

    #[test]
    fn siblings_data_is_not_fetched() {
        let alone = missed(&falling(), arrived(COLD), LONG).1;
        let shared = InitialContents {
            siblings: [1.0; LEVELS],
            ..arrived(COLD)
        };
        assert_eq!(missed(&falling(), shared, LONG).1, 0.0);
        assert!(alone > 0.0);
    }

    proptest! {
        #[test]
        fn additional_misses_grow_up_to_the_lack(
            raw in prop::collection::vec(0.0f64..60.0, 14),
            share in 0.0f64..1.0,
            less in 0.0f64..1.0,
            age in 1e2f64..1e9,
        ) {
            let phase = phase(|i| raw[i]);
            let some = HELD.map(|held| held * share);
            let fewer = some.map(|found| found * less);
            let (lines, cycles) = missed(&phase, arrived(some), age);
            for (lines, (held, found)) in lines.iter().zip(HELD.iter().zip(some)) {
                let lacking = (held - found) / CURVE_LINE_BYTES;
                prop_assert!(*lines <= lacking * (1.0 + 1e-3) + 1.0, "{lines} of {lacking}");
            }
            let (_, later) = missed(&phase, arrived(some), 4.0 * age);
            let (_, lacking_more) = missed(&phase, arrived(fewer), LONG);
            let (_, in_the_end) = missed(&phase, arrived(some), LONG);
            prop_assert!(later >= cycles * (1.0 - 1e-9));
            prop_assert!(lacking_more >= in_the_end * (1.0 - 1e-3) - 1.0);
        }
    }
}
