//! The PMU itself: counts in, samples out.

use super::noise::Noise;
use super::quantity::{MachineFacts, amount};
use super::readout::{PmuError, Readout, ReadoutSource, ReadoutValue};
use super::signals::{EventCount, LastCounts, PmuFormula};
use crate::engine::{SampleSource, ThreadCounts};
use crate::machine::{MachineSpec, PmuEventSpec, Quantity};
use consort_core::{Reading, Sample, Signal, SignalOffers, ThreadId, Tier};
use std::collections::BTreeMap;

/// Signals and quantities that a PMU is to measure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PmuRequest {
    /// Signals; `None` for all that the machine's events usually feed. Fewer take fewer quanta.
    pub signals: Option<Vec<Signal>>,
    /// Extra quantities.
    pub readouts: Vec<Readout>,
}

impl PmuRequest {
    fn formulas(&self, events: &[PmuEventSpec]) -> Vec<PmuFormula> {
        match &self.signals {
            Some(signals) => PmuFormula::for_signals(events, signals),
            None => PmuFormula::usual_formulas(events),
        }
    }

    /// True if samples shall contain threads' shares of the energy, which the machine meters.
    fn wants_energy(&self) -> bool {
        let signals = self.signals.as_ref();
        signals.is_some_and(|signals| signals.contains(&Signal::Energy))
    }
}

/// Nanoseconds per second.
const NS_PER_S: f64 = 1e9;

/// Signals that the operating system counts, exactly.
const SOFTWARE: [Signal; 6] = [
    Signal::CpuTime,
    Signal::WaitTime,
    Signal::ContextSwitches,
    Signal::Migrations,
    Signal::FutexReturns,
    Signal::BlockingReturns,
];

/// The PMUs of a machine, by thread.
#[derive(Clone, Debug)]
pub struct SimulatedPmu {
    events: Vec<PmuEventSpec>,
    facts: MachineFacts,
    noise: f64,
    seed: u64,
    cycles: Option<usize>,
    instructions: Option<usize>,
    /// Events that count in every quantum.
    always: Vec<usize>,
    /// Events that take turns.
    groups: Vec<Vec<usize>>,
    formulas: Vec<PmuFormula>,
    readouts: Vec<ReadoutSource>,
    offers: SignalOffers,
    threads: BTreeMap<ThreadId, CountedThread>,
}

/// A thread that is being counted.
#[derive(Clone, Debug)]
struct CountedThread {
    noise: Noise,
    memory: LastCounts,
    turn: usize,
    now_ns: u64,
}

impl SimulatedPmu {
    /// Plans the groups of events for a request. `seed` is that of the read noise.
    ///
    /// Signals that the machine cannot feed are not offered; policies check what they need.
    ///
    /// # Errors
    /// Readouts that the machine has no events or counters for.
    pub fn new(machine: &MachineSpec, request: &PmuRequest, seed: u64) -> Result<Self, PmuError> {
        let events = machine.pmu.events.clone();
        let slots = CounterSlots::new(&events, machine.pmu.programmable as usize);
        let readouts = request.readouts.iter();
        let readouts: Result<Vec<ReadoutSource>, PmuError> = readouts
            .map(|&readout| {
                ReadoutSource::new(readout, &machine.name, &events, |e| slots.is_countable(e))
            })
            .collect();
        let mut pmu = Self {
            facts: MachineFacts::from_machine(machine),
            noise: machine.pmu.read_noise,
            seed,
            cycles: slots.base(&events, Quantity::Cycles),
            instructions: slots.base(&events, Quantity::Instructions),
            always: slots.always.clone(),
            groups: Vec::new(),
            formulas: slots.formulas(&events, request),
            readouts: readouts?,
            offers: SOFTWARE.map(|s| (s, Tier::Software)).into_iter().collect(),
            threads: BTreeMap::new(),
            events,
        };
        pmu.offers.set_machine(&machine.name);
        if machine.os.instrumented_locks {
            pmu.offers.add(Signal::Bottlenecks, Tier::Software);
        }
        if request.wants_energy() {
            pmu.offers.add(Signal::Energy, Tier::Counters);
        }
        pmu.groups = groups(&pmu.turns(), slots.budget);
        pmu.offer();
        Ok(pmu)
    }

    /// The signals that samples have, each with its tier.
    pub fn offers(&self) -> &SignalOffers {
        &self.offers
    }

    /// Quanta until every event has counted once.
    pub fn quanta(&self) -> usize {
        self.groups.len().max(1)
    }

    /// Names of the events that count in a turn: the turn's own, after those of every turn.
    pub fn counted_events(&self, turn: usize) -> impl Iterator<Item = &PmuEventSpec> {
        let group = self.groups.get(turn % self.quanta());
        let turns = group.into_iter().flatten();
        self.always.iter().chain(turns).map(|&e| &self.events[e])
    }

    /// Sample that the counters give of a thread over the quantum that has just ended.
    pub fn sample(&mut self, thread: ThreadId, truth: &ThreadCounts, interval_ns: u64) -> Sample {
        let (seed, noise, events) = (self.seed, self.noise, self.events.len());
        // Taken for a moment, so that the rest of the PMU can be read while a thread changes.
        let mut threads = std::mem::take(&mut self.threads);
        let watched = threads.entry(thread).or_insert_with(|| CountedThread {
            noise: Noise::new(seed, thread, noise),
            memory: LastCounts::new(events),
            turn: 0,
            now_ns: 0,
        });
        watched.now_ns += interval_ns;
        let mut sample = software_sample(truth, interval_ns);
        self.count(watched, &mut sample, truth, interval_ns);
        self.derive(watched, &mut sample, interval_ns);
        self.threads = threads;
        sample
    }

    /// The readout of a thread, by its place in the request; none before its events have counted.
    pub fn readout(&self, thread: ThreadId, index: usize) -> Option<ReadoutValue> {
        let watched = self.threads.get(&thread)?;
        let readout = self.readouts.get(index)?;
        readout.value(&watched.memory, watched.now_ns)
    }

    /// The events that each signal and readout needs to have turns.
    fn turns(&self) -> Vec<Vec<usize>> {
        let formulas = self.formulas.iter().map(PmuFormula::events);
        let wants = formulas.chain(self.readouts.iter().map(ReadoutSource::events));
        let turning = |want: Vec<usize>| {
            let events = want.into_iter().filter(|e| !self.always.contains(e));
            events.collect()
        };
        wants.map(turning).collect()
    }

    fn offer(&mut self) {
        let formulas = self.formulas.iter().map(PmuFormula::signal);
        let cycles = self.cycles.map(|_| Signal::Cycles);
        let instructions = self.instructions.map(|_| Signal::Instructions);
        for signal in formulas.chain(cycles).chain(instructions) {
            self.offers.add(signal, Tier::Counters);
        }
        let stacks = self.formulas.iter();
        let stack = stacks.flat_map(|f| f.components(&self.events)).collect();
        self.offers.set_stack(stack);
    }

    /// Lets the counters of the thread's turn count.
    fn count(
        &self,
        watched: &mut CountedThread,
        sample: &mut Sample,
        truth: &ThreadCounts,
        interval_ns: u64,
    ) {
        let mut read = |event: usize| {
            let exact = amount(self.events[event].counts, truth, self.facts);
            watched.noise.read(exact)
        };
        let mut set = |signal, raw| {
            let reading = Reading::fully_counted(raw, Tier::Counters, interval_ns);
            sample.set(signal, reading);
        };
        let Some(cycles) = self.cycles.map(&mut read) else {
            return;
        };
        set(Signal::Cycles, cycles);
        let instructions = self.instructions.map(&mut read);
        if let Some(instructions) = instructions {
            set(Signal::Instructions, instructions);
        }
        if cycles <= 0.0 {
            return;
        }
        self.store_counts(watched, truth, interval_ns, cycles, instructions);
    }

    /// Remembers what the turn has counted.
    fn store_counts(
        &self,
        watched: &mut CountedThread,
        truth: &ThreadCounts,
        interval_ns: u64,
        cycles: f64,
        instructions: Option<f64>,
    ) {
        let group = self.groups.get(watched.turn % self.quanta());
        let counting = self.always.iter().chain(group.into_iter().flatten());
        for &event in counting {
            let known = match event {
                e if Some(e) == self.cycles => Some(cycles),
                e if Some(e) == self.instructions => instructions,
                _ => None,
            };
            let exact = || amount(self.events[event].counts, truth, self.facts);
            let seen = EventCount {
                amount: known.unwrap_or_else(|| watched.noise.read(exact())),
                cycles,
                on_pu_s: truth.on_pu_s,
                begin_ns: watched.now_ns - interval_ns,
                end_ns: watched.now_ns,
            };
            watched.memory.set(event, seen);
        }
        watched.turn += 1;
    }

    /// Adds the signals that follow from the thread's last counts.
    fn derive(&self, watched: &CountedThread, sample: &mut Sample, interval_ns: u64) {
        let memory = &watched.memory;
        for formula in &self.formulas {
            if let Some((event, value)) = formula.value(memory, interval_ns) {
                let seen = memory.get(event);
                let reading = seen.map(|seen| aged_reading(value, seen, watched.now_ns));
                reading
                    .into_iter()
                    .for_each(|r| sample.set(formula.signal(), r));
            }
            if let Some(stack) = formula.stack(memory, &self.events) {
                sample.stack = Some((stack, Tier::Counters));
            }
        }
    }
}

/// A value whose event counted in an earlier quantum, or in the last.
fn aged_reading(value: f64, seen: EventCount, now_ns: u64) -> Reading {
    let mut reading = Reading {
        raw: value,
        tier: Tier::Counters,
        enabled_ns: now_ns - seen.begin_ns,
        running_ns: seen.end_ns - seen.begin_ns,
    };
    if reading.is_multiplexed() {
        reading.raw = value * (reading.running_ns as f64 / reading.enabled_ns as f64);
    }
    // Rounding must not lift a share of 1 above 1.
    while reading.scaled_value().is_some_and(|scaled| scaled > value) {
        reading.raw = reading.raw.next_down();
    }
    reading
}

/// Returns a sample of the signals that the operating system provides.
fn software_sample(truth: &ThreadCounts, interval_ns: u64) -> Sample {
    let mut sample = Sample::default();
    let values = [
        truth.on_pu_s * NS_PER_S,
        truth.wait_s * NS_PER_S,
        truth.context_switches as f64,
        truth.migrations as f64,
        truth.futex_returns as f64,
        truth.io_returns as f64,
    ];
    for (signal, value) in SOFTWARE.into_iter().zip(values) {
        sample.set(
            signal,
            Reading::fully_counted(value, Tier::Software, interval_ns),
        );
    }
    sample
}

/// Allotment of counters to events.
struct CounterSlots {
    /// Events with counters of their own, and cycles and instructions.
    always: Vec<usize>,
    /// Counters that are left for the others.
    budget: usize,
}

impl CounterSlots {
    fn new(events: &[PmuEventSpec], programmable: usize) -> Self {
        let fixed = (0..events.len()).filter(|&e| events[e].fixed);
        let mut slots = Self {
            always: fixed.collect(),
            budget: programmable,
        };
        for quantity in [Quantity::Cycles, Quantity::Instructions] {
            let has = slots.base(events, quantity).is_some();
            let event = events.iter().position(|event| event.counts == quantity);
            if let Some(event) = event.filter(|_| !has && slots.budget > 0) {
                slots.always.push(event);
                slots.budget -= 1;
            }
        }
        slots
    }

    /// The event that counts a quantity in every quantum.
    fn base(&self, events: &[PmuEventSpec], quantity: Quantity) -> Option<usize> {
        let mut always = self.always.iter().copied();
        always.find(|&event| events[event].counts == quantity)
    }

    fn is_countable(&self, event: usize) -> bool {
        self.budget > 0 || self.always.contains(&event)
    }

    /// The signals that are wanted and can be had; nothing without cycles.
    fn formulas(&self, events: &[PmuEventSpec], request: &PmuRequest) -> Vec<PmuFormula> {
        let mut formulas = request.formulas(events);
        let cycles = self.base(events, Quantity::Cycles).is_some();
        formulas.retain(|formula| {
            let countable = formula.events().into_iter().all(|e| self.is_countable(e));
            cycles && countable
        });
        formulas
    }
}

impl SampleSource for SimulatedPmu {
    fn offers(&self) -> &SignalOffers {
        Self::offers(self)
    }

    fn sample(&mut self, thread: ThreadId, counts: &ThreadCounts, interval_ns: u64) -> Sample {
        Self::sample(self, thread, counts, interval_ns)
    }
}

/// Packs events that are wanted together into groups of at most `budget` events.
///
/// The events of one want share a group where they fit; a wider want fills groups of its own. Wide
/// wants come first, then the narrower ones into the first group with room, so that there are few
/// groups. No event is in two groups unless a want needs it together with others. A budget of 0
/// gives no groups.
pub(super) fn groups(wants: &[Vec<usize>], budget: usize) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    if budget == 0 {
        return groups;
    }
    let mut order: Vec<&Vec<usize>> = wants.iter().filter(|want| !want.is_empty()).collect();
    order.sort_by_key(|want| core::cmp::Reverse(want.len()));
    for want in order {
        for part in want.chunks(budget) {
            place(&mut groups, part, budget);
        }
    }
    groups
}

fn place(groups: &mut Vec<Vec<usize>>, part: &[usize], budget: usize) {
    let lacking = |group: &[usize]| part.iter().filter(|e| !group.contains(e)).count();
    let fits = |group: &&mut Vec<usize>| group.len() + lacking(group) <= budget;
    match groups.iter_mut().find(fits) {
        Some(group) => {
            let new: Vec<usize> = part
                .iter()
                .copied()
                .filter(|e| !group.contains(e))
                .collect();
            group.extend(new);
        }
        None => groups.push(part.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wide_want_fills_own_groups_first() {
        let wants = [vec![7], vec![0, 1, 2, 3, 4], vec![5, 6], vec![2]];
        assert_eq!(groups(&wants, 4), [vec![0, 1, 2, 3], vec![4, 5, 6, 7]]);
    }

    #[test]
    fn without_counters_there_are_no_groups() {
        assert!(groups(&[vec![1]], 0).is_empty());
        assert!(groups(&[], 4).is_empty());
    }

    proptest! {
        #[test]
        fn groups_keep_budget_and_fitting_wants_together(
            wants in prop::collection::vec(prop::collection::btree_set(0usize..12, 0..8), 0..8),
            budget in 1usize..7,
        ) {
            let wants: Vec<Vec<usize>> = wants.into_iter().map(|w| w.into_iter().collect()).collect();
            let groups = groups(&wants, budget);
            for group in &groups {
                let mut unique = group.clone();
                unique.sort_unstable();
                unique.dedup();
                prop_assert!(unique.len() == group.len() && group.len() <= budget);
            }
            for want in &wants {
                let within = |group: &Vec<usize>| want.iter().all(|e| group.contains(e));
                let counted = want.iter().all(|e| groups.iter().any(|g| g.contains(e)));
                prop_assert!(counted);
                prop_assert!(want.is_empty() || want.len() > budget || groups.iter().any(within));
            }
        }
    }
}
