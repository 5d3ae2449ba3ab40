//! Experiments of the studies of execution-unit occupancy, W3 to W6, as frames, and their notes.
//!
//! Every case is run in two ways. As in the source, all programs start together and each runs once
//! ([`once`]), for the time until all have finished, or for the score of SciMark's kernels. A program
//! of SPEC is as many processes as it has inputs, and one in [`single_process`]. In addition all have
//! equal work and start again until the last has done its own ([`equal`]), so that both classes are
//! there all of the time, for system throughput. Pairs are run once at other lengths, too
//! ([`lengths`]).
//!
//! Labels of a frame's cases: `title`, for people, `load`, which is the key without the length, and
//! `length`. Their programs are the classes: `int` and `fp` of a pair, or `all`.

mod notes;
mod score;

pub(super) use notes::notes;

use crate::frame::{Case, Frame};
use crate::simulate::chips::l2_event;
use crate::simulate::programs::instance;
use crate::simulate::{
    CaseSpec, DescriptionSource as _, ExperimentSpec, Presets, map_jobs, part_error, run_every_case,
};
use crate::study::StudyError;
use consort_experiment::watch::FpuUse;
use consort_experiment::{
    AloneWork, Contender, Experiment, ExperimentContext, ExperimentError, ProgramCounters,
    RunOptions, RunResult, RunUntil, Sequence,
};
use consort_sim::chip::Chip;
use consort_sim::contention::CpiStack;
use consort_sim::describe::DescribeError;
use consort_sim::engine::{RunMode, SimulatedProgram};
use consort_sim::machine::Quantity;
use consort_sim::program::{self, ProgramSpec, presets};
use consort_sim::workload::{ProgramInstance, Workload};
use score::{KernelPart, ScoredFpuWatch};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Length of the programs of a pair, in proportion to what their descriptions say.
#[derive(Clone, Copy, Debug)]
struct PairLength {
    /// The end of its rows' keys.
    name: &'static str,
    /// Length of all programs, at the full scale.
    share: f64,
    /// Length of the floating-point programs, on top of that.
    fp: f64,
}

impl PairLength {
    /// Length of all programs, at the context's scale.
    fn share(self, context: &ExperimentContext<'_>) -> f64 {
        context.by_scale(0.01, self.share)
    }
}

/// The first is the source's.
const LENGTHS: [PairLength; 4] = [
    length("as-it-is", 1.0, 1.0),
    length("shortened", 0.1, 1.0),
    length("shortened-fp-halved", 0.1, 0.5),
    length("shortened-fp-doubled", 0.1, 2.0),
];

const fn length(name: &'static str, share: f64, fp: f64) -> PairLength {
    PairLength { name, share, fp }
}

/// Number of threads that a Java machine runs next to those of its program (compilers, collectors,
/// timers) and that wake at all; estimated. They wake every 50 ms, as HotSpot's periodic tasks do;
/// compiling at the beginning is left out.
const HELPERS: usize = 3;

/// Program of a helper thread.
///
/// # Errors
/// None: a test reads the description.
fn helper_program() -> Result<Arc<ProgramSpec>, DescribeError> {
    program::parse("helper.toml", include_str!("helper.toml")).map(Arc::new)
}

/// Method by which programs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunMethod {
    /// The source's method: all programs start together and each runs once, as many processes one
    /// after the other as it has inputs. The lengths of the programs of a pair are those of
    /// [`LENGTHS`] at this position.
    Once(usize),
    /// The same with a program as one process.
    SingleProcess,
    /// Equal work for all, again and again until the last has done its own.
    Equal,
}

impl RunMethod {
    fn length(self) -> PairLength {
        match self {
            Self::Once(length) => LENGTHS[length],
            Self::SingleProcess | Self::Equal => LENGTHS[0],
        }
    }
}

/// A workload on a machine with the work of its programs.
type ExperimentSetup = (Experiment, Vec<AloneWork>);

/// A case with its machine and the work of its programs: as many threads as the machine has CPUs.
struct OccupancyCase {
    /// Beginning of its row keys.
    key: String,
    chip: Arc<Chip>,
    load: OccupancyLoad,
}

enum OccupancyLoad {
    /// Copies of an integer program on half of the CPUs, of a floating-point one on the others:
    /// with equal work, and at each of [`LENGTHS`].
    Pair {
        equal: ExperimentSetup,
        whole: Vec<ExperimentSetup>,
    },
    /// Threads that each run all of the kernels, in an order of their own, and what the runtime runs
    /// next to them.
    Kernels(Sequence, Arc<ProgramSpec>),
}

impl OccupancyCase {
    /// Finds machine and programs, and measures their work alone. The workload is a pair, or kernels
    /// if its label `load` says so.
    fn prepare(
        context: &ExperimentContext<'_>,
        spec: &ExperimentSpec,
        case: &CaseSpec,
    ) -> Result<Self, StudyError> {
        let key = case.key.clone().unwrap_or_default();
        let machine = case.machine.as_deref().unwrap_or(&spec.machine);
        let chip = Presets.load_chip(machine).map_err(part_error(&key))?;
        let names = case.workload.as_deref().unwrap_or_default().split('+');
        let programs = names.map(|name| presets::find(name).map(Arc::new));
        let programs: Result<Vec<Arc<ProgramSpec>>, _> = programs.collect();
        let programs = programs.map_err(part_error(&key))?;
        let is_pair = case.labels.get("load").is_none_or(|load| load != "kernels");
        let load = match &programs[..] {
            [int, fp] if is_pair => {
                let alone_s = spec.alone_s(context);
                let equal = Experiment::new(&chip, copies(&chip, [int, fp]), alone_s);
                let work = equal
                    .measure_work(context.seed())
                    .map_err(part_error(&key))?;
                let whole = { LENGTHS.iter() }
                    .map(|length| whole_programs(context, &chip, [int, fp], *length));
                OccupancyLoad::Pair {
                    equal: (equal, work),
                    whole: whole.collect::<Result<_, _>>().map_err(part_error(&key))?,
                }
            }
            kernels => {
                // Several quanta for each kernel of a thread.
                let part_s = context.by_scale(3.0, 10.0);
                let sequence = Sequence::measure(&chip, kernels, part_s, context.seed());
                OccupancyLoad::Kernels(
                    sequence.map_err(part_error(&key))?,
                    helper_program().map_err(part_error(&key))?,
                )
            }
        };
        Ok(Self { key, chip, load })
    }

    /// Workload and work under a seed: orders of kernels are drawn anew for each.
    fn setup(&self, method: RunMethod, seed: u64) -> ExperimentSetup {
        let (sequence, helper) = match (&self.load, method) {
            (OccupancyLoad::Pair { whole, .. }, RunMethod::Once(length)) => {
                return whole[length].clone();
            }
            (OccupancyLoad::Pair { whole, .. }, RunMethod::SingleProcess) => {
                return whole[0].clone();
            }
            (OccupancyLoad::Pair { equal, .. }, RunMethod::Equal) => return equal.clone(),
            (OccupancyLoad::Kernels(sequence, helper), _) => (sequence, helper),
        };
        // Threads with the same order share one program, as copies do.
        let mut known: BTreeMap<Vec<usize>, Arc<ProgramSpec>> = BTreeMap::new();
        let thread = |n: usize| {
            let order = sequence.order(seed, n as u64);
            let program = known
                .entry(order.clone())
                .or_insert_with(|| Arc::new(sequence.program(&self.key, &order)));
            instance(format!("thread#{}", n + 1), program, 1)
        };
        let mut entries: Vec<ProgramInstance> = self.programs().map(thread).collect();
        let mut work = vec![sequence.work(); entries.len()];
        // Helpers come last, so that `programs` excludes them. Their work is endless, since they
        // serve the others and end with them.
        for n in 1..=HELPERS {
            entries.push(instance(format!("helper#{n}"), helper, 1));
            work.push(AloneWork {
                instructions: SimulatedProgram::ENDLESS,
                alone_s: 0.0,
            });
        }
        let workload = Workload {
            text: self.key.clone(),
            entries,
        };
        let alone_s = sequence.work().alone_s;
        (Experiment::new(&self.chip, workload, alone_s), work)
    }

    /// Runs the case by a method under a policy with a seed.
    fn run(
        &self,
        method: RunMethod,
        policy: &str,
        seed: u64,
    ) -> Result<OccupancyOutcome, ExperimentError> {
        let watch = ScoredFpuWatch::new(&self.chip, self.kernels(seed));
        let contender = Contender::new(policy, "linux")?;
        let (experiment, work) = self.setup(method, seed);
        let options = RunOptions {
            mode: match method {
                RunMethod::Once(_) => RunUntil::AllFinished.mode(),
                RunMethod::SingleProcess => RunMode::Once,
                RunMethod::Equal => RunUntil::EqualWork.mode(),
            },
            // The run consumes its observer; the clone shares the counts with `watch`.
            observer: Some(Box::new(watch.clone())),
            listener: None,
        };
        let result = experiment.run_with(&contender, &work, seed, options)?;
        let (quantity, _) = l2_event(self.chip.spec());
        let l2_misses = result.programs.iter().map(|program| {
            let counters = &program.counters;
            match quantity {
                Quantity::L2Misses => counters.l2_misses,
                Quantity::L2DataMisses => counters.llc_accesses - counters.llc_code_accesses,
                _ => counters.llc_accesses,
            }
        });
        let (fpu, score_mflops) = watch.finish();
        Ok(OccupancyOutcome {
            l2_misses: l2_misses.collect(),
            result,
            fpu,
            score_mflops,
        })
    }

    /// The kernels of each thread in its order; of a pair, none.
    fn kernels(&self, seed: u64) -> Vec<Vec<KernelPart>> {
        let OccupancyLoad::Kernels(sequence, _) = &self.load else {
            return Vec::new();
        };
        let thread = |n: usize| {
            let order = sequence.order(seed, n as u64).into_iter();
            order.filter_map(|part| KernelPart::new(sequence, part))
        };
        self.programs().map(|n| thread(n).collect()).collect()
    }

    /// Its programs, without the runtime's threads.
    fn programs(&self) -> Range<usize> {
        0..self.chip.places().len()
    }

    /// Names of the classes of programs with the programs of each.
    fn classes(&self) -> Vec<(&'static str, Range<usize>)> {
        let threads = self.chip.places().len();
        match self.load {
            OccupancyLoad::Pair { .. } => {
                vec![("int", 0..threads / 2), ("fp", threads / 2..threads)]
            }
            OccupancyLoad::Kernels(..) => vec![("all", self.programs())],
        }
    }
}

/// Copies of two programs from beginning to end, at a length.
fn whole_programs(
    context: &ExperimentContext<'_>,
    chip: &Arc<Chip>,
    [int, fp]: [&Arc<ProgramSpec>; 2],
    length: PairLength,
) -> Result<ExperimentSetup, ExperimentError> {
    let share = length.share(context);
    let programs = [(int, share), (fp, share * length.fp)]
        .map(|(program, factor)| Arc::new(stretch_phases(program, factor)));
    let experiment = Experiment {
        until: RunUntil::AllFinished,
        ..Experiment::new(chip, copies(chip, programs.each_ref()), 0.0)
    };
    let work = experiment.measure_work(context.seed())?;
    Ok((experiment, work))
}

/// Copies of two programs, each on half of the CPUs.
fn copies(chip: &Chip, programs: [&Arc<ProgramSpec>; 2]) -> Workload {
    let copies = chip.places().len() / 2;
    let mut entries = Vec::new();
    for program in programs {
        let copy = |n| instance(format!("{}#{n}", program.name), program, 1);
        entries.extend((1..=copies).map(copy));
    }
    Workload {
        text: programs.map(|p| format!("{copies}*{}", p.name)).join("+"),
        entries,
    }
}

/// The same program, every phase this many times as long.
fn stretch_phases(program: &ProgramSpec, factor: f64) -> ProgramSpec {
    let mut stretched = program.clone();
    for phase in &mut stretched.phases {
        phase.length_ginstr *= factor;
    }
    stretched
}

/// Results of one run.
struct OccupancyOutcome {
    result: RunResult,
    /// L2 misses of each program, as the chip's event counts them.
    l2_misses: Vec<f64>,
    fpu: FpuUse,
    /// Cumulative SciMark score; NaN of a pair.
    score_mflops: f64,
}

/// Runs each program once, all started together.
pub(super) fn once(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    run_methods(context, spec, &[RunMethod::Once(0)])
}

/// Runs each program once at a tenth of its length, all started together.
pub(super) fn shortened(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    run_methods(context, spec, &[RunMethod::Once(1)])
}

/// Runs each program once as one process, all started together.
pub(super) fn single_process(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    run_methods(context, spec, &[RunMethod::SingleProcess])
}

/// Runs each program once at the other lengths.
pub(super) fn lengths(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    let all: Vec<RunMethod> = (1..LENGTHS.len()).map(RunMethod::Once).collect();
    run_methods(context, spec, &all)
}

/// Equal work, again and again until the last has done its own.
pub(super) fn equal(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    run_methods(context, spec, &[RunMethod::Equal])
}

fn run_methods(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
    methods: &[RunMethod],
) -> Result<Frame, StudyError> {
    // All methods share the prepared cases, whose work takes long to measure.
    let name = format!("occupancy: {:?} {:?}", spec.alone_s, spec.cases);
    let cases = context.get_or_compute(&name, || {
        map_jobs(context, &spec.cases, |case| {
            OccupancyCase::prepare(context, spec, case)
        })
    })?;
    let runs = spec.runs(context);
    let mut all: Vec<(RunMethod, &OccupancyCase)> = Vec::new();
    for &method in methods {
        all.extend(cases.iter().map(|case| (method, case)));
    }
    let run = |(method, case): &(RunMethod, &OccupancyCase), policy: &String, seed| {
        let outcome = case.run(*method, policy, seed);
        outcome.map_err(part_error(&format!("{} under {policy}", case.key)))
    };
    let outcomes = run_every_case(context, (&all, &spec.policies, runs), run)?;
    let named = all
        .iter()
        .map(|&(method, case)| describe_case(case, method, methods.len() > 1));
    let mut frame = Frame::new(named.collect(), spec.policies.clone(), runs);
    let each = spec.policies.len() * runs;
    let runs = { all.iter() }.flat_map(|case| std::iter::repeat_n(case, each));
    let percent = { runs.clone() }.map(|(method, _)| 100.0 * method.length().share(context));
    frame.set_run_values("length_percent", percent.collect());
    let cases: Vec<&OccupancyCase> = runs.map(|(_, case)| *case).collect();
    fill_frame(&mut frame, &outcomes, &cases);
    Ok(frame)
}

/// The case of a row; its key names the length if there are several of them.
fn describe_case(case: &OccupancyCase, method: RunMethod, several: bool) -> Case {
    let length = method.length().name;
    let labels = [
        ("title", case.key.replace('/', " ")),
        ("load", case.key.clone()),
        ("length", length.to_owned()),
    ];
    let classes = case.classes().into_iter().map(|(name, _)| name.to_owned());
    Case {
        key: match several {
            true => format!("{}/{length}", case.key),
            false => case.key.clone(),
        },
        labels: labels
            .map(|(label, value)| (label.to_owned(), value))
            .into(),
        programs: classes.collect(),
    }
}

/// A value of a run.
type OccupancyValue = fn(&OccupancyOutcome) -> f64;

/// Values of a run by the key of the measure.
const RUN_VALUES: &[(&str, OccupancyValue)] = &[
    ("makespan_s", |o| o.result.makespan_s),
    ("scimark_mflops", |o| o.score_mflops),
    ("stp", |o| o.result.stp),
    ("antt", |o| o.result.antt),
    ("unfairness", |o| o.result.unfairness),
    ("migrations", |o| o.result.migrations as f64),
    ("fpu_mean_percent", |o| 100.0 * o.fpu.mean),
    ("fpu_busiest_percent", |o| 100.0 * o.fpu.busiest),
    ("fpu_idlest_percent", |o| 100.0 * o.fpu.idlest),
];

/// The programs of a class in a run.
type ProgramClass<'a> = (&'a OccupancyOutcome, Range<usize>);

/// A value of a class in a run.
type ClassValue = fn(&ProgramClass<'_>) -> f64;

/// Values of a class by the key of the measure.
const CLASS_VALUES: &[(&str, ClassValue)] = &[
    ("slowdown", |class| {
        let programs = &class.0.result.programs[class.1.clone()];
        programs.iter().map(|p| p.slowdown).sum::<f64>() / programs.len() as f64
    }),
    ("end_s", |class| {
        let programs = class.0.result.programs[class.1.clone()].iter();
        programs.map(|p| p.together_s).fold(0.0, f64::max)
    }),
    ("l2_mpki", |class| {
        1000.0 * sum_l2_misses(class) / sum_counters(class).instructions
    }),
    ("fpu_busy_percent", |class| {
        100.0 * sum_counters(class).fpu_busy()
    }),
    ("cpi", |class| {
        let sum = sum_counters(class);
        sum.cycles / sum.instructions
    }),
];

fn sum_counters((outcome, programs): &ProgramClass<'_>) -> ProgramCounters {
    let mut sum = ProgramCounters::default();
    for program in &outcome.result.programs[programs.clone()] {
        sum.add(&program.counters);
    }
    sum
}

fn sum_l2_misses((outcome, programs): &ProgramClass<'_>) -> f64 {
    outcome.l2_misses[programs.clone()].iter().sum()
}

/// Sets the measures of runs, of the classes, and of all programs of a case without the runtime's.
fn fill_frame(frame: &mut Frame, outcomes: &[OccupancyOutcome], cases: &[&OccupancyCase]) {
    for (measure, value) in RUN_VALUES {
        frame.set_run_values(measure, outcomes.iter().map(value).collect());
    }
    let runs = || outcomes.iter().zip(cases);
    let misses = runs().map(|(outcome, case)| sum_l2_misses(&(outcome, case.programs())));
    let misses: Vec<f64> = misses.collect();
    let instructions = runs().map(|(outcome, case)| {
        let sum = sum_counters(&(outcome, case.programs()));
        sum.instructions
    });
    let mpki = { misses.iter().zip(instructions) }.map(|(misses, all)| 1000.0 * misses / all);
    frame.set_run_values("all_l2_mpki", mpki.collect());
    frame.set_run_values("l2_misses_g", misses.iter().map(|all| all / 1e9).collect());
    let classes = |value: &dyn Fn(&ProgramClass<'_>) -> f64| -> Vec<Vec<f64>> {
        let values = runs().map(|(outcome, case)| {
            let classes = case.classes().into_iter();
            classes
                .map(|(_, programs)| value(&(outcome, programs)))
                .collect()
        });
        values.collect()
    };
    for (measure, value) in CLASS_VALUES {
        frame.set_program_values(measure, classes(value));
    }
    for (cause, name) in CpiStack::NAMES.iter().enumerate() {
        let cpi = classes(&|class| sum_counters(class).stack()[cause]);
        frame.set_program_values(&format!("cpi_{name}"), cpi);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helper_wakes_twenty_times_a_second() {
        let helper = helper_program().unwrap();
        assert_eq!(helper.io.unwrap().blocked_us, 50_000.0);
    }

    #[test]
    fn stretched_phases_keep_their_proportion() {
        let mcf = presets::find("mcf").unwrap();
        let half = stretch_phases(&mcf, 0.5);
        assert_eq!(half.phases.len(), mcf.phases.len());
        let both = half.phases.iter().zip(&mcf.phases);
        assert!({ both }.all(|(half, whole)| 2.0 * half.length_ginstr == whole.length_ginstr));
    }
}
