//! The counting tiers on the threads of a run: hardware groups and software groups.

use crate::counters::{
    CounterBudget, EventRates, Notice, PlanInput, PmuProgram, SoftwareEvents, ThreadGroups,
    core_pmus, fill_signals, is_nmi_watchdog_on, plan,
};
use crate::live::Host;
use crate::perf::{GroupDelta, PerfTarget};
use crate::sampling::switch_cost_ns;
use consort_core::{Sample, ThreadId, Tier};
use std::collections::{BTreeMap, BTreeSet};

/// Events opened per quantum. To open one costs 30 microseconds, up to 0.3 ms under load, and a quantum
/// must not be spent on that.
const OPENS_PER_QUANTUM: usize = 64;

/// The groups of all counting tiers, with the events that they count.
#[derive(Debug, Default)]
pub(in crate::live) struct ThreadCounters {
    hardware: Option<HardwareCounters>,
    software: Option<SoftwareCounters>,
}

#[derive(Debug)]
struct HardwareCounters {
    programs: Vec<PmuProgram>,
    /// Programs that count accesses of the L1D, or do not, whichever are not in use.
    others: Vec<PmuProgram>,
    counts_l1d: bool,
    groups: ThreadGroups,
    rates: BTreeMap<ThreadId, Vec<EventRates>>,
    /// Counts of all threads that were read in this quantum.
    read: Vec<GroupDelta>,
}

/// The software tier, which is on only while a policy decides by states or calls, because its events
/// make each switch of a thread slower, in virtual machines by up to 14 microseconds.
#[derive(Debug)]
struct SoftwareCounters {
    events: SoftwareEvents,
    groups: ThreadGroups,
    /// Threads that are to be counted once it is on.
    uncounted: BTreeSet<ThreadId>,
    is_on: bool,
    /// True once calls are counted.
    counts_calls: bool,
    /// CPU time that the events add to a switch, ns; measured when they are first on.
    switch_ns: u64,
}

impl ThreadCounters {
    /// Prepares every counting tier that the host has, with at most `fd_budget` descriptors.
    pub(super) fn new(host: &Host, fd_budget: usize) -> Self {
        let has = |tier: Tier| host.tiers.iter().any(|t| t.tier == tier && t.available);
        let both = has(Tier::Counters) && has(Tier::Software);
        let share = fd_budget / if both { 2 } else { 1 };
        let software = host.software.clone();
        Self {
            hardware: has(Tier::Counters).then(|| HardwareCounters::new(host, share)),
            software: software.map(|events| SoftwareCounters::new(events, share)),
        }
    }

    /// Switches the software tier on or off. It stays on once calls are counted. Returns true if it is
    /// wanted.
    pub(super) fn count_switches(&mut self, on: bool) -> bool {
        let Some(software) = &mut self.software else {
            return on;
        };
        let on = on || software.counts_calls;
        software.switch_events(on);
        on
    }

    /// CPU time that the counting events add to each switch of a thread, ns; 0 while none are on.
    pub(super) fn switch_cost_ns(&self) -> u64 {
        let software = self.software.as_ref().filter(|software| software.is_on);
        software.map_or(0, |software| software.switch_ns)
    }

    /// Counts returns from futex and blocking calls too, from now on; returns the obstacles.
    pub(in crate::live) fn count_calls(&mut self) -> Vec<String> {
        let software = self.software.as_mut();
        software.map_or_else(Vec::new, SoftwareCounters::count_calls)
    }

    /// Counts accesses of the L1D or not, from now on: they take a counter from other signals.
    pub(in crate::live) fn count_l1d(&mut self, on: bool) {
        if let Some(hardware) = self.hardware.as_mut()
            && hardware.counts_l1d != on
        {
            hardware.counts_l1d = on;
            std::mem::swap(&mut hardware.programs, &mut hardware.others);
            hardware.rates.clear();
            hardware.read.clear();
            let layout = hardware.programs.iter().flat_map(PmuProgram::specs);
            hardware.groups.change_layout(layout.collect());
        }
    }

    /// Counts a thread from the next quantum on.
    pub(in crate::live) fn count_thread(&mut self, id: ThreadId) {
        if let Some(hardware) = &mut self.hardware {
            hardware.groups.enqueue_thread(id);
        }
        if let Some(software) = &mut self.software {
            if software.is_on {
                software.groups.enqueue_thread(id);
            } else {
                software.uncounted.insert(id);
            }
        }
    }

    pub(super) fn forget(&mut self, id: ThreadId) {
        if let Some(hardware) = &mut self.hardware {
            hardware.groups.forget(id);
            hardware.rates.remove(&id);
        }
        if let Some(software) = &mut self.software {
            software.groups.forget(id);
            software.uncounted.remove(&id);
        }
    }

    /// Begins a quantum, after all threads were read: opens groups on threads that wait for them, so
    /// that the next reading covers the whole quantum. Returns notices for the user.
    pub(in crate::live) fn begin_quantum(&mut self) -> Vec<Notice> {
        let mut notices = Vec::new();
        if let Some(hardware) = &mut self.hardware {
            // Notes when another program takes the counters away, and when they are back.
            notices.extend(hardware.groups.note_losses(&hardware.read));
            hardware.read.clear();
            notices.extend(hardware.groups.attach_queued());
        }
        if let Some(software) = &mut self.software {
            notices.extend(software.groups.attach_queued());
        }
        notices
    }

    /// Adds a thread's counts since the last quantum to a sample; returns the number of sleeps that it
    /// has begun, if that is counted.
    pub(super) fn fill(&mut self, id: ThreadId, sample: &mut Sample) -> Option<u64> {
        if let Some(hardware) = &mut self.hardware {
            hardware.fill(id, sample);
        }
        self.software.as_mut()?.fill(id, sample)
    }
}

impl HardwareCounters {
    fn new(host: &Host, fd_budget: usize) -> Self {
        let [programs, others] = [false, true].map(|l1d| programs(host, l1d));
        let layout = programs.iter().flat_map(PmuProgram::specs).collect();
        Self {
            groups: ThreadGroups::new(layout, OPENS_PER_QUANTUM).with_fd_budget(fd_budget),
            programs,
            others,
            counts_l1d: false,
            rates: BTreeMap::new(),
            read: Vec::new(),
        }
    }

    fn fill(&mut self, id: ThreadId, sample: &mut Sample) {
        let Some(deltas) = self.groups.read(id) else {
            return;
        };
        let rates = self.rates.entry(id).or_default();
        // One for each PMU: a thread may run on cores of several types.
        rates.resize(self.programs.len(), EventRates::default());
        fill_signals(sample, &self.programs, rates, &deltas);
        self.read.extend(deltas);
    }
}

impl SoftwareCounters {
    fn new(events: SoftwareEvents, fd_budget: usize) -> Self {
        Self {
            groups: ThreadGroups::new(events.layout(), OPENS_PER_QUANTUM).with_fd_budget(fd_budget),
            events,
            uncounted: BTreeSet::new(),
            is_on: false,
            counts_calls: false,
            switch_ns: 0,
        }
    }

    fn switch_events(&mut self, is_on: bool) {
        if is_on == self.is_on {
            return;
        }
        self.is_on = is_on;
        if is_on {
            // Measured once, on this thread.
            if self.switch_ns == 0 {
                let open = || self.events.open(PerfTarget::Thread { tid: 0 });
                self.switch_ns = switch_cost_ns(open).unwrap_or(0);
            }
            let begun = std::mem::take(&mut self.uncounted).into_iter();
            begun.for_each(|id| self.groups.enqueue_thread(id));
        } else {
            self.uncounted = self.groups.detach_all();
        }
    }

    fn count_calls(&mut self) -> Vec<String> {
        // A second change of layout would detach and attach all threads for nothing.
        if !self.events.has_uncounted_calls() {
            return Vec::new();
        }
        let refused = self.events.count_calls();
        let layout = self.events.layout();
        self.groups.change_layout(layout);
        self.counts_calls = true;
        refused
    }

    fn fill(&mut self, id: ThreadId, sample: &mut Sample) -> Option<u64> {
        // The layout has one group.
        let delta = self.groups.read(id)?.pop()?;
        self.events.fill(sample, &delta)
    }
}

/// Makes one program per PMU of the host that the event file knows, with all groups on at once,
/// rotated by the kernel; with accesses of the L1D or without.
fn programs(host: &Host, l1d: bool) -> Vec<PmuProgram> {
    let Some(file) = host.event_file() else {
        return Vec::new();
    };
    let watchdog = is_nmi_watchdog_on(&host.root);
    let program = |pmu: crate::counters::Pmu| {
        let events = file.pmus.iter().find(|e| e.is_named(&pmu.name))?;
        let input = PlanInput {
            pmu: pmu.name.clone(),
            events,
            budget: CounterBudget::from_pmu(events, watchdog),
        };
        let wanted = events.wanted(l1d);
        let plan = plan(&wanted, &[input]);
        PmuProgram::new(&plan, &pmu.name, pmu.kind, events)
    };
    core_pmus(&host.root)
        .into_iter()
        .filter_map(program)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::{Sample, Signal};
    use std::path::Path;

    #[test]
    fn software_tier_counts_only_while_on() {
        let Ok(events) = SoftwareEvents::probe(Path::new("/")) else {
            eprintln!("skipped: software events are not permitted");
            return;
        };
        let mut counting = ThreadCounters {
            software: Some(SoftwareCounters::new(events, 64)),
            ..ThreadCounters::default()
        };
        let id = ThreadId {
            pid: std::process::id(),
            tid: u32::try_from(nix::unistd::gettid().as_raw()).unwrap(),
            start_ticks: 0,
        };
        counting.count_thread(id);
        let mut is_counted = |on: bool| {
            counting.count_switches(on);
            counting.begin_quantum();
            let mut sample = Sample::default();
            counting.fill(id, &mut sample);
            sample.get(Signal::CpuTime).is_some()
        };
        assert!(!is_counted(false));
        assert!(is_counted(true));
        assert!(!is_counted(false));
        assert!(is_counted(true));
        counting.forget(id);
        assert!(counting.fill(id, &mut Sample::default()).is_none());
    }
}
