//! Simulated instructions per second of the host: the two scenarios that the simulator is
//! built for.
//!
//! Pitfall: the one group whose figures depend on the host, its load and the build.

use super::alone::{instance, machine, once};
use super::check::{Check, Published, Tolerance, Topic};
use super::error::ValidateError;
use super::group::{GroupOutput, Inputs};
use consort_core::Machine;
use consort_sim::chip::Chip;
use consort_sim::engine::Instance;
use consort_sim::machine::presets;
use consort_sim::pmu::{Request, SimulatedPmu};
use consort_sim::program;
use std::sync::Arc;
use std::time::Instant;

/// The group's name.
pub(super) const NAME: &str = "speed";

const SPEED: Topic<'static> = Topic {
    group: NAME,
    source: "aim of the project; instruction-level simulators reach 1e5 to 1e7, analytic ones 1e11",
    unit: "instr/host s",
    tolerance: Tolerance::absolute(0.0),
};

/// Single-threaded programs of every kind.
const PROGRAMS: [&str; 20] = [
    "mcf",
    "hmmer",
    "gcc",
    "povray",
    "lbm",
    "milc",
    "namd",
    "bzip2",
    "sjeng",
    "astar",
    "gobmk",
    "h264ref",
    "soplex",
    "libquantum",
    "omnetpp",
    "leslie3d",
    "perlbench",
    "sphinx3",
    "bwaves",
    "gromacs",
];

/// Work that no program comes to the end of, instructions.
const ENDLESS: f64 = 1e18;

/// A machine with a load, placed at random every quantum.
struct Scenario {
    id: &'static str,
    machine: &'static str,
    programs: usize,
    quantum_ns: u64,
    /// Quanta at quick and at full scale.
    quanta: [u32; 2],
    aim: f64,
}

const SCENARIOS: [Scenario; 2] = [
    Scenario {
        id: "power8-100-ms",
        machine: "power8",
        programs: 20,
        quantum_ns: 100_000_000,
        quanta: [100, 600],
        aim: 1e13,
    },
    Scenario {
        id: "acmp-1-ms",
        machine: "acmp-1+3",
        programs: 4,
        quantum_ns: 1_000_000,
        quanta: [2_000, 20_000],
        aim: 5e11,
    },
];

pub(super) fn run(inputs: &Inputs<'_>) -> Result<GroupOutput, ValidateError> {
    let checks = SCENARIOS.iter().map(|scenario| scenario.check(inputs));
    Ok(GroupOutput {
        checks: checks.collect::<Result<_, _>>()?,
        tables: Vec::new(),
        notes: vec![format!(
            "Measured now, on one core of this host, counters and energy included, {}; other \
             programs on the host slow it down.",
            if cfg!(debug_assertions) {
                "by a build that was not optimised for speed"
            } else {
                "by an optimised build"
            }
        )],
    })
}

impl Scenario {
    fn check(&self, inputs: &Inputs<'_>) -> Result<Check, ValidateError> {
        let spec = presets::find(self.machine)?;
        let chip = Arc::new(Chip::new(&spec, Some(2))?);
        let seed = inputs.context.seed();
        let pmu = SimulatedPmu::new(chip.spec(), &Request::default(), seed)?;
        let settings = once(seed, "random");
        let work = self.work()?;
        let mut machine = machine(&chip, &work, &settings, self.quantum_ns, Box::new(pmu))?;
        let quanta = inputs.context.by_scale(self.quanta[0], self.quanta[1]);
        let start = Instant::now();
        for _ in 0..quanta {
            machine.observe()?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let results = machine.results();
        let instructions: f64 = results.iter().map(|r| r.instructions).sum();
        let what = format!(
            "{} programs on {} with 2 PUs per core at most, a new placement every {} ms",
            self.programs,
            self.machine,
            self.quantum_ns / 1_000_000
        );
        let note = format!("{quanta} quanta, {instructions:.2e} instructions in {seconds:.2} s");
        let published = Published::AtLeast(self.aim);
        Ok(SPEED
            .check(self.id, what, published, instructions / seconds)
            .noting(note))
    }

    fn work(&self) -> Result<Vec<Instance>, ValidateError> {
        let names = PROGRAMS.iter().take(self.programs);
        let one = |name: &&str| {
            Ok(instance(
                &Arc::new(program::presets::find(name)?),
                1,
                ENDLESS,
            ))
        };
        names.map(one).collect()
    }
}
