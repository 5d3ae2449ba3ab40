//! Traced programs and the reference engine that executes them.
//!
//! [`TracedProgram`] is a program with its trace: one that ships, by name, or a file that
//! `consort profile --trace` wrote. [`run_together`] runs several on parts of a machine, each alone
//! and all together.

use consort_core::{PuId, hint};
use consort_ops::Op;
use consort_ops::trace::{Damage, Ops, Trace, TraceError};
use consort_reference::{
    OpSource, Reference, ReferenceError, SlotCause, ThreadOutcome, TracePlacement,
};
use consort_sim::chip::Chip;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use thiserror::Error;

pub use consort_reference::RunLength;

const EXTENSION: &str = "trace";
/// Beginning of the names of kernels, which are no programs that people use.
const KERNEL: &str = "kernel-";

/// The beginning of a program's trace, to be run again and again; of several threads, that of the
/// one that executes most.
#[derive(Clone, Debug)]
pub struct TracedProgram {
    name: String,
    trace: Arc<Trace>,
    thread: usize,
    instructions: u64,
}

/// Reason why there is no such program.
#[derive(Debug, Error)]
pub enum TracedError {
    /// No trace of this name ships.
    #[error("unknown traced program '{name}'; {hint}, or a file that ends with .{EXTENSION}")]
    Unknown {
        /// The name.
        name: String,
        /// The nearest names.
        hint: String,
    },
    /// A trace that ships is damaged.
    #[error("trace of {name}: {damage}")]
    Damaged {
        /// The program.
        name: String,
        /// Damage found in it.
        damage: Damage,
    },
    /// A folder that cannot be read.
    #[error("cannot read {}: {cause}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Reason of the system.
        cause: std::io::Error,
    },
    /// A folder without traces.
    #[error("{} contains no traces; make some with `consort profile --trace FILE.trace`", .0.display())]
    NoTraces(PathBuf),
    /// A file that is no trace.
    #[error(transparent)]
    File(#[from] TraceError),
}

impl TracedProgram {
    /// Names of the programs whose traces ship.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        FILES.iter().map(|(name, _)| *name)
    }

    /// A program whose trace ships, or a trace file: by a path, or by its name if no program has
    /// that.
    ///
    /// # Errors
    /// A name that no trace has, a file that is no trace.
    pub fn find(name: &str) -> Result<Self, TracedError> {
        if let Some((name, bytes)) = FILES.iter().find(|(known, _)| *known == name) {
            return Self::from_shipped(name, bytes);
        }
        let path = Path::new(name);
        let is_trace = path.extension().is_some_and(|end| end == EXTENSION);
        if is_trace
            || consort_describe::input::is_path(name)
            || consort_describe::input::is_file(name)
        {
            return Ok(Self::from_trace(&file_stem(path), Trace::open(path)?));
        }
        Err(TracedError::Unknown {
            name: name.to_owned(),
            hint: hint(name, Self::names()),
        })
    }

    /// All programs whose traces ship, kernels among them.
    ///
    /// # Errors
    /// A damaged trace, which the tests rule out.
    pub fn load_all() -> Result<Vec<Self>, TracedError> {
        FILES
            .iter()
            .map(|(name, bytes)| Self::from_shipped(name, bytes))
            .collect()
    }

    /// The traces of a folder, by name.
    ///
    /// # Errors
    /// A folder that cannot be read or has no trace, a file that is no trace.
    pub fn load_folder(folder: &Path) -> Result<Vec<Self>, TracedError> {
        let unreadable = |cause| TracedError::Folder {
            folder: folder.to_owned(),
            cause,
        };
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_some_and(|end| end == EXTENSION) {
                paths.push(path);
            }
        }
        if paths.is_empty() {
            return Err(TracedError::NoTraces(folder.to_owned()));
        }
        paths.sort();
        let open = |path: &PathBuf| Ok(Self::from_trace(&file_stem(path), Trace::open(path)?));
        paths.iter().map(open).collect()
    }

    fn from_shipped(name: &str, bytes: &[u8]) -> Result<Self, TracedError> {
        let trace = Trace::from_bytes(bytes).map_err(|damage| TracedError::Damaged {
            name: name.to_owned(),
            damage,
        })?;
        Ok(Self::from_trace(name, trace))
    }

    fn from_trace(name: &str, trace: Trace) -> Self {
        let threads = trace.threads().iter().enumerate();
        let lengths = threads.map(|(thread, reported)| (reported.instructions, Reverse(thread)));
        let (instructions, Reverse(thread)) = lengths.max().unwrap_or((0, Reverse(0)));
        Self {
            name: name.to_owned(),
            trace: Arc::new(trace),
            thread,
            instructions,
        }
    }

    /// The same program with at most this number of instructions of its trace.
    #[must_use]
    pub fn with_limit(mut self, instructions: u64) -> Self {
        self.instructions = self.instructions.min(instructions);
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True for a kernel, which does one thing only.
    pub fn is_kernel(&self) -> bool {
        self.name.starts_with(KERNEL)
    }

    /// Instructions from the beginning until it starts again.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Its operations once.
    pub fn ops(&self) -> impl Iterator<Item = Op> + '_ {
        TracePrefix {
            ops: self.trace.thread_ops(self.thread),
            left: self.instructions,
        }
    }
}

fn file_stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or(path.as_os_str());
    stem.to_string_lossy().into_owned()
}

impl OpSource for TracedProgram {
    fn start(&self) -> Box<dyn Iterator<Item = Op> + '_> {
        Box::new(self.ops())
    }
}

/// The first instructions of a trace.
struct TracePrefix<'a> {
    ops: Ops<'a>,
    left: u64,
}

impl Iterator for TracePrefix<'_> {
    type Item = Op;

    fn next(&mut self) -> Option<Op> {
        let op = self.ops.next()?;
        if op.first {
            self.left = self.left.checked_sub(1)?;
        }
        Some(op)
    }
}

include!(concat!(env!("OUT_DIR"), "/traces.rs"));

/// Reason why programs cannot be run.
#[derive(Debug, Error)]
pub enum TracedRunError {
    /// More programs than CPUs.
    #[error("{programs} programs on {pus} CPUs; the reference runs one program per CPU")]
    TooMany {
        /// Programs.
        programs: usize,
        /// CPUs.
        pus: usize,
    },
    /// The reference's own reason.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
}

/// One program of a run.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramRun {
    /// Its name.
    pub name: String,
    /// CPU on which it ran.
    pub pu: u32,
    /// Time of the measured instructions alone, s.
    pub alone_s: f64,
    /// Time of the measured instructions with the others, s.
    pub together_s: f64,
    /// The latter over the former.
    pub slowdown: f64,
    /// Instructions measured.
    pub instructions: f64,
    /// Instructions per cycle together.
    pub ipc: f64,
    /// Energy; the reference knows none.
    pub energy_j: Option<f64>,
    /// Cycles per instruction by cause, alone.
    pub stack_alone: BTreeMap<&'static str, f64>,
    /// Cycles per instruction by cause, together.
    pub stack: BTreeMap<&'static str, f64>,
}

/// Programs that ran together.
#[derive(Clone, Debug, Serialize)]
pub struct TracedRun {
    /// `reference`.
    pub fidelity: &'static str,
    /// Seed of what is drawn.
    pub seed: u64,
    /// Programs by place.
    pub programs: Vec<ProgramRun>,
    /// System throughput.
    pub stp: f64,
    /// Average normalised turnaround time.
    pub antt: f64,
    /// Largest slowdown over smallest.
    pub unfairness: f64,
    /// Time of the slowest program, s.
    pub makespan_s: f64,
    /// Instructions executed in all, those before measurement included.
    pub simulated_instructions: f64,
    /// Time that the run took here, s.
    pub host_s: f64,
    /// Instructions executed per second here, 10^6.
    pub simulated_minstr_per_host_s: f64,
}

/// Runs programs alone and together, one per CPU from the first.
///
/// # Errors
/// More programs than CPUs, programs without instructions.
pub fn run_together(
    chip: &Chip,
    programs: &[TracedProgram],
    length: RunLength,
    seed: u64,
) -> Result<TracedRun, TracedRunError> {
    let pus = chip.places().len();
    if programs.len() > pus {
        let programs = programs.len();
        return Err(TracedRunError::TooMany { programs, pus });
    }
    let start = Instant::now();
    let place = |(pu, program)| TracePlacement {
        pu: PuId(pu),
        space: pu,
        program,
    };
    let placements: Vec<TracePlacement<'_>> = (0..)
        .zip(programs)
        .map(|(pu, p)| place((pu, p as _)))
        .collect();
    let run = |placed: &[TracePlacement<'_>]| Reference::new(chip, placed, seed)?.run(length);
    let alone: Vec<ThreadOutcome> = { placements.iter() }
        .map(|one| Ok(run(std::slice::from_ref(one))?.threads.swap_remove(0)))
        .collect::<Result<_, ReferenceError>>()?;
    let together = run(&placements)?.threads;
    let rows = programs.iter().zip(alone.iter().zip(&together)).zip(0..);
    let rows = rows.map(|((program, both), pu)| program_run(chip, program, both, pu));
    let runs = 2 * programs.len() as u64;
    let executed = (runs * (length.warm_up + length.measured)) as f64;
    Ok(traced_run(
        rows.collect(),
        seed,
        executed,
        start.elapsed().as_secs_f64(),
    ))
}

fn program_run(
    chip: &Chip,
    program: &TracedProgram,
    (alone, together): (&ThreadOutcome, &ThreadOutcome),
    pu: u32,
) -> ProgramRun {
    let hz = chip.frequency_hz(chip.places()[pu as usize]);
    let seconds = |outcome: &ThreadOutcome| outcome.cycles as f64 / hz;
    ProgramRun {
        name: program.name().to_owned(),
        pu,
        alone_s: seconds(alone),
        together_s: seconds(together),
        slowdown: together.cycles as f64 / alone.cycles.max(1) as f64,
        instructions: together.instructions as f64,
        ipc: together.ipc(),
        energy_j: None,
        stack_alone: stack(alone),
        stack: stack(together),
    }
}

fn stack(outcome: &ThreadOutcome) -> BTreeMap<&'static str, f64> {
    let instructions = outcome.instructions.max(1) as f64;
    let of = |cause: SlotCause| (cause.name(), outcome.stack.cycles(cause) / instructions);
    SlotCause::ALL.map(of).into()
}

fn traced_run(programs: Vec<ProgramRun>, seed: u64, executed: f64, host_s: f64) -> TracedRun {
    let slowdowns = || programs.iter().map(|p| p.slowdown);
    let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let largest = most(&mut slowdowns());
    let smallest = 1.0 / most(&mut slowdowns().map(f64::recip));
    TracedRun {
        fidelity: "reference",
        seed,
        stp: slowdowns().map(f64::recip).sum(),
        antt: slowdowns().sum::<f64>() / programs.len().max(1) as f64,
        unfairness: largest / smallest,
        makespan_s: most(&mut programs.iter().map(|p| p.together_s)),
        programs,
        simulated_instructions: executed,
        host_s,
        simulated_minstr_per_host_s: executed / 1e6 / host_s.max(f64::MIN_POSITIVE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_ops::OpKind;
    use consort_ops::trace::{TraceInfo, TraceRecorder};

    #[test]
    fn longest_thread_is_the_program() {
        let mut recorder = TraceRecorder::new();
        for (number, count) in [(1, 5), (2, 3)] {
            let op = Op::new(OpKind::Integer, 0x1000 * number as u64);
            (0..count).for_each(|_| recorder.push(number, &op));
        }
        let traced = TracedProgram::from_trace("several", recorder.finish(TraceInfo::default()));
        assert_eq!(traced.instructions(), 5);
        assert!(traced.ops().map(|op| op.address).eq([0x1000; 5]));
    }

    #[test]
    fn every_shipped_trace_is_whole_and_long_enough() {
        let all = TracedProgram::load_all().unwrap();
        let programs = all.iter().filter(|traced| !traced.is_kernel()).count();
        assert!(programs >= 24, "{programs}");
        for program in all {
            assert!(program.instructions() >= 200_000, "{}", program.name());
            let counted = program.with_limit(1000).ops().filter(|op| op.first).count();
            assert_eq!(counted, 1000);
        }
    }

    #[test]
    fn what_is_no_program_is_named() {
        let error = TracedProgram::find("bzip3").unwrap_err().to_string();
        assert!(error.contains("'bzip3'"), "{error}");
        for path in ["/nonexistent/x.trace", "./champ.trace.xz"] {
            let error = TracedProgram::find(path).unwrap_err();
            assert!(matches!(error, TracedError::File(_)), "{error}");
        }
        let error = TracedProgram::find("Cargo.toml").unwrap_err().to_string();
        assert!(error.starts_with("Cargo.toml is no trace"), "{error}");
    }
}
