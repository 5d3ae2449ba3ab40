//! Programs in place of recorded threads: measured ones if they are given, else the described
//! program that is nearest in what the recording shows.

use crate::failure::bad_input;
use anyhow::Result;
use consort_core::{Mix, Observation, ThreadId, ThreadObservation};
use consort_data::recording::{Recording, RecordingError};
use consort_sim::program::{PhaseSpec, ProgramSpec, presets};
use consort_sim::workload::WorkloadItem;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Share of one CPU from which on a thread counts: others hardly disturb their co-runners.
const ACTIVE_FROM: f64 = 0.05;

/// The suite whose programs may stand for recorded threads.
const SUITE: &str = "spec2006";

/// Capacity, bytes, whose misses rank programs by their waits for memory.
const CAPACITY_BYTES: f64 = 1_048_576.0;

/// A group of recorded threads of one name, and the program that stands for it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct StandIn {
    /// Name of the threads.
    pub(super) name: String,
    /// Mean number of them that ran at a time; rounded, at least 1.
    pub(super) threads: usize,
    /// CPU time while they were recorded, s.
    pub(super) cpu_s: f64,
    /// Share of one CPU that each had while it was there, 0 to 1.
    pub(super) cpu_share: f64,
    /// The program in their place, as workloads name it.
    pub(super) program: String,
    /// Basis of that choice: measured, or the way it was guessed.
    pub(super) basis: String,
    /// True if the program is a guess.
    pub(super) guessed: bool,
    /// Mix of instructions by time, if it was recorded.
    pub(super) mix: Option<Mix>,
    /// Share of CPU time behind loads, if it was recorded.
    pub(super) memory_stall: Option<f64>,
}

/// A group of recorded threads of one name that is not simulated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct DroppedThreads {
    /// Name of the threads.
    pub(super) name: String,
    /// Number of them in the whole recording.
    pub(super) threads: usize,
    /// CPU time while they were recorded, s.
    pub(super) cpu_s: f64,
    /// Reason for leaving them out.
    pub(super) why: &'static str,
}

/// Sums over threads of one name.
#[derive(Clone, Debug, Default)]
struct ThreadSums {
    ids: BTreeSet<ThreadId>,
    cpu_ns: f64,
    lived_ns: f64,
    mix: Mix,
    mix_ns: f64,
    stall_ns: f64,
    stalls_known_ns: f64,
}

impl ThreadSums {
    fn add(&mut self, seen: &Observation, thread: &ThreadObservation) {
        let cpu_ns = thread.sample.cpu_time_ns();
        self.ids.insert(thread.id);
        self.cpu_ns += cpu_ns;
        self.lived_ns += seen.interval_ns as f64;
        if let Some(mix) = thread.sample.mix {
            self.mix = self.mix.plus(mix, cpu_ns);
            self.mix_ns += cpu_ns;
        }
        if let Some(stall) = thread.sample.get(consort_core::Signal::MemoryStall) {
            self.stall_ns += stall * cpu_ns;
            self.stalls_known_ns += cpu_ns;
        }
    }

    fn mix(&self) -> Option<Mix> {
        (self.mix_ns > 0.0).then(|| Mix::default().plus(self.mix, 1.0 / self.mix_ns))
    }

    fn memory_stall(&self) -> Option<f64> {
        (self.stalls_known_ns > 0.0).then(|| self.stall_ns / self.stalls_known_ns)
    }
}

/// Returns the stand-in for each group of threads, and the groups that have none; both the busiest
/// first.
pub(super) fn find_stand_ins(
    recording: &Recording,
    profiles: &BTreeMap<String, String>,
) -> Result<(Vec<StandIn>, Vec<DroppedThreads>)> {
    let sums = RecordingSums::read(recording).map_err(bad_input)?;
    let unknown = { profiles.keys() }.find(|name| !sums.managed.contains_key(*name));
    if let Some(name) = unknown {
        let hint = consort_core::hint(name, sums.managed.keys().map(String::as_str));
        return Err(bad_input(format!(
            "--program {name}: no recorded thread has that name; {hint}"
        )));
    }
    let candidates = candidates()?;
    let dropped = sums.dropped_threads();
    let duration_ns = sums.duration_ns;
    let active = { sums.managed.into_iter() }.filter(|(_, sum)| is_active(sum, duration_ns));
    let stands = active.map(|(name, sum)| stand_in(name, &sum, duration_ns, profiles, &candidates));
    let mut stands: Vec<StandIn> = stands.collect();
    stands.sort_by(|a, b| b.cpu_s.total_cmp(&a.cpu_s));
    Ok((stands, dropped))
}

fn is_active(sum: &ThreadSums, duration_ns: f64) -> bool {
    sum.cpu_ns / duration_ns >= ACTIVE_FROM
}

/// Recorded threads, by their names.
struct RecordingSums {
    managed: BTreeMap<String, ThreadSums>,
    /// Threads that Consort observed and did not place.
    unmanaged: BTreeMap<String, ThreadSums>,
    /// Threads that began and ended within one interval, so that no plan was for them.
    brief: BTreeMap<String, ThreadSums>,
    duration_ns: f64,
}

impl RecordingSums {
    fn read(recording: &Recording) -> Result<Self, RecordingError> {
        let mut sums = Self {
            managed: BTreeMap::new(),
            unmanaged: BTreeMap::new(),
            brief: BTreeMap::new(),
            duration_ns: 1.0,
        };
        let mut living = BTreeSet::new();
        for quantum in recording.quanta() {
            let seen = quantum?.observation;
            sums.duration_ns = sums.duration_ns.max(seen.time_ns as f64);
            for thread in &seen.threads {
                living.insert(thread.id);
                let threads = match thread.managed {
                    true => &mut sums.managed,
                    false => &mut sums.unmanaged,
                };
                let sum = threads.entry(thread.name.to_string()).or_default();
                sum.add(&seen, thread);
            }
            for thread in seen
                .exited
                .iter()
                .filter(|thread| !living.contains(&thread.id))
            {
                let sum = sums.brief.entry(thread.name.to_string()).or_default();
                sum.add(&seen, thread);
            }
        }
        Ok(sums)
    }

    fn dropped_threads(&self) -> Vec<DroppedThreads> {
        let idle = { self.managed.iter() }.filter(|(_, sum)| !is_active(sum, self.duration_ns));
        let idle = idle.map(|group| (group, "less than a twentieth of a CPU"));
        let unmanaged = self.unmanaged.iter().map(|group| (group, "not managed"));
        let brief = self
            .brief
            .iter()
            .map(|group| (group, "ended within one interval"));
        let dropped = idle.chain(unmanaged).chain(brief);
        let dropped = dropped.map(|((name, sum), why)| DroppedThreads {
            name: name.clone(),
            threads: sum.ids.len(),
            cpu_s: sum.cpu_ns / 1e9,
            why,
        });
        let mut dropped: Vec<DroppedThreads> = dropped.collect();
        dropped.sort_by(|a, b| b.cpu_s.total_cmp(&a.cpu_s));
        dropped
    }
}

fn stand_in(
    name: String,
    sum: &ThreadSums,
    duration_ns: f64,
    profiles: &BTreeMap<String, String>,
    candidates: &[ProgramSpec],
) -> StandIn {
    let (mix, memory_stall) = (sum.mix(), sum.memory_stall());
    let (program, basis, guessed) = match (profiles.get(&name), mix) {
        (Some(file), _) => (
            workload_file(file),
            "measured: the file that was given",
            false,
        ),
        (None, Some(mix)) => (
            nearest_program(candidates, mix, memory_stall),
            "guessed: nearest by recorded mix and waits for memory",
            true,
        ),
        (None, None) => (
            "gcc".to_owned(),
            "guessed: the recording has only CPU times",
            true,
        ),
    };
    let at_a_time = (sum.lived_ns / duration_ns).round().max(1.0);
    StandIn {
        name,
        threads: at_a_time as usize,
        cpu_s: sum.cpu_ns / 1e9,
        cpu_share: sum.cpu_ns / sum.lived_ns.max(1.0),
        program,
        basis: basis.to_owned(),
        guessed,
        mix,
        memory_stall,
    }
}

/// A path in the notation of workloads, quoted if needed.
fn workload_file(path: &str) -> String {
    let item = WorkloadItem::File {
        path: path.to_owned(),
        threads: None,
    };
    item.to_string()
}

fn candidates() -> Result<Vec<ProgramSpec>> {
    let suites = presets::suites()?;
    let names = suites.get(SUITE).into_iter().flatten();
    Ok(names
        .map(|name| presets::find(name))
        .collect::<Result<_, _>>()?)
}

/// The name of the program that is nearest: by mix, and by whether it misses a middling cache as
/// often, among the others, as the threads wait for memory.
fn nearest_program(candidates: &[ProgramSpec], mix: Mix, memory_stall: Option<f64>) -> String {
    let mut by_misses: Vec<&ProgramSpec> = candidates.iter().collect();
    by_misses.sort_by(|a, b| misses(a).total_cmp(&misses(b)));
    let last = by_misses.len().saturating_sub(1).max(1) as f64;
    let ranked = by_misses.iter().enumerate();
    let distance = |rank: usize, program: &ProgramSpec| {
        let [fp, load, store, branch] = shares(program);
        let of_mix = [
            fp - mix.fp,
            load - mix.load,
            store - mix.store,
            branch - mix.branch,
        ];
        let of_memory = memory_stall.map_or(0.0, |stall| rank as f64 / last - stall);
        of_mix.iter().map(|d| d * d).sum::<f64>() + of_memory * of_memory
    };
    let nearest = ranked.min_by(|a, b| distance(a.0, a.1).total_cmp(&distance(b.0, b.1)));
    nearest.map_or_else(|| "gcc".to_owned(), |(_, program)| program.name.clone())
}

fn misses(program: &ProgramSpec) -> f64 {
    let phases = &program.phases;
    let weight: f64 = phases.iter().map(|phase| phase.length_ginstr).sum();
    let missed = |phase: &PhaseSpec| {
        let at = (CAPACITY_BYTES / 8_192.0).log2().round() as usize;
        let mpki = phase.data_mpki.get(at).copied().unwrap_or(0.0);
        mpki * phase.length_ginstr
    };
    phases.iter().map(missed).sum::<f64>() / weight.max(1e-12)
}

/// Shares of floating point, loads, stores and branches over all phases.
fn shares(program: &ProgramSpec) -> [f64; 4] {
    let weight: f64 = program.phases.iter().map(|phase| phase.length_ginstr).sum();
    let mut sums = [0.0; 4];
    for phase in &program.phases {
        let mix = &phase.mix;
        for (sum, share) in sums
            .iter_mut()
            .zip([mix.fp, mix.load, mix.store, mix.branch])
        {
            *sum += share * phase.length_ginstr / weight.max(1e-12);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mix by time like that of a program.
    fn mix_of(name: &str) -> Mix {
        let [fp, load, store, branch] = shares(&presets::find(name).unwrap());
        Mix {
            fp,
            load,
            store,
            branch,
            ..Mix::default()
        }
    }

    #[test]
    fn path_with_signs_is_one_item() {
        assert_eq!(workload_file("/ws@2/c++.toml"), "\"/ws@2/c++.toml\"");
        assert_eq!(workload_file("/a/b.toml"), "/a/b.toml");
    }

    #[test]
    fn program_is_nearest_to_itself() {
        let candidates = candidates().unwrap();
        for name in ["hmmer", "mcf", "povray", "lbm"] {
            assert_eq!(nearest_program(&candidates, mix_of(name), None), name);
        }
    }

    #[test]
    fn waits_for_memory_select_missing_programs() {
        let candidates = candidates().unwrap();
        let find = |stall| {
            let name = nearest_program(&candidates, mix_of("hmmer"), Some(stall));
            misses(&presets::find(&name).unwrap())
        };
        assert!(find(0.95) > 5.0 * find(0.0).max(0.1));
    }
}
