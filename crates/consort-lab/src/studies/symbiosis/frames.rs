//! Runs of the drawn workloads as frames, and the disadvantages of cores that policies learn in
//! them.

use super::views::charged;
use super::{DrawnMix, NEAR_FIRST_HALF, PreparedMix, chip};
use crate::frame::{Case, Frame};
use crate::simulate::{ExperimentSpec, map_jobs, part_error, run_every_case};
use crate::study::StudyError;
use consort_core::plan::{Decision, Placement};
use consort_core::policies::CORE_DISADVANTAGE;
use consort_core::stats::mean;
use consort_experiment::watch::RemoteMemoryWatch;
use consort_experiment::{ExperimentContext, ProgramCounters, RunResult};
use consort_sim::chip::Chip;
use consort_sim::contention::CpiStack;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

/// The policy that learns which cores are faster.
const LEARNING: &str = "core-asymmetry";

/// One run.
struct SymbioticRun {
    result: RunResult,
    /// All programs together.
    counters: ProgramCounters,
    /// Share of its time that a thread is away from the node of its memory, 0 to 1.
    away: f64,
    facts: DecisionFacts,
}

/// Facts that decisions of a run report.
#[derive(Clone, Debug, Default, PartialEq)]
struct DecisionFacts {
    /// The last disadvantage of each core; `None` if none was reported.
    learnt: Vec<Option<f64>>,
    /// Time of the quanta in which threads were measured alone, s.
    alone_s: f64,
}

impl DecisionFacts {
    fn new(chip: &Chip) -> Self {
        Self {
            learnt: vec![None; chip.domains().cores],
            alone_s: 0.0,
        }
    }

    fn add(&mut self, decision: &Decision, chip: &Chip) {
        // Only the quanta in which `symbiotic` measures threads alone have a length of their own.
        self.alone_s += decision.quantum_ns.unwrap_or(0) as f64 * 1e-9;
        for (thread, reason) in &decision.report.threads {
            let mut facts = reason.facts.iter();
            let reported = facts.find(|fact| fact.name == CORE_DISADVANTAGE);
            let at = match decision.placements.get(thread) {
                Some(Placement::Restricted(pus)) => pus.first(),
                _ => None,
            };
            let core = at.and_then(|pu| chip.topology().core_of(pu));
            if let Some((core, reported)) = core.zip(reported) {
                self.learnt[core] = Some(reported.value);
            }
        }
    }
}

impl SymbioticRun {
    fn run(prepared: &PreparedMix, policy: &str, seed: u64) -> Result<Self, StudyError> {
        let chip = Arc::clone(&prepared.experiment.chip);
        let away = RemoteMemoryWatch::new(&chip);
        let facts = Rc::new(RefCell::new(DecisionFacts::new(&chip)));
        let known = Rc::clone(&facts);
        let listener =
            Box::new(move |decision: &Decision| known.borrow_mut().add(decision, &chip)) as _;
        let result = prepared.run(policy, seed, Box::new(away.clone()), Some(listener))?;
        let mut counters = ProgramCounters::default();
        for program in &result.programs {
            counters.add(&program.counters);
        }
        Ok(Self {
            result,
            counters,
            away: away.share(),
            facts: facts.take(),
        })
    }

    fn cpi(&self) -> f64 {
        self.counters.cycles / self.counters.instructions
    }

    fn slowdowns(&self) -> impl Iterator<Item = f64> {
        self.result.programs.iter().map(|program| program.slowdown)
    }
}

/// A value of a run.
type RunValue = fn(&SymbioticRun) -> f64;

/// Values of a run by the key of the measure.
const VALUES: &[(&str, RunValue)] = &[
    ("stp", |run| run.result.stp),
    ("antt", |run| run.result.antt),
    ("unfairness", |run| run.result.unfairness),
    ("makespan_s", |run| run.result.makespan_s),
    ("largest_slowdown", |run| {
        run.slowdowns().fold(0.0, f64::max)
    }),
    ("smallest_slowdown", |run| {
        run.slowdowns().fold(f64::INFINITY, f64::min)
    }),
    ("migrations_hz", |run| {
        let thread_s = run.result.simulated_s * run.result.programs.len() as f64;
        run.result.migrations as f64 / thread_s
    }),
    ("away_percent", |run| 100.0 * run.away),
    ("alone_percent", |run| {
        100.0 * (run.facts.alone_s / run.result.simulated_s)
    }),
    ("decision_us", |run| run.result.decision_us.mean),
    ("cpi", SymbioticRun::cpi),
    // Cycles on a CPU that no cause of the stack explains are those of switches and moves.
    ("cpi_moves", |run| {
        run.cpi() - run.counters.stack().iter().sum::<f64>()
    }),
    ("cpi_waiting", |run| {
        let stack = CpiStack::NAMES.iter().zip(run.counters.stack());
        let memory = stack.filter(|(name, _)| ["memory", "queue"].contains(name));
        memory.map(|(_, cpi)| cpi).sum()
    }),
];

/// Runs drawn workloads with memory near the first half of the cores: `drawn` workloads of the
/// size of each of the experiment's cases, in cores. Labels are `cores` and `number`.
pub(in crate::studies) fn near(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    frame(context, spec, NEAR_FIRST_HALF)
}

/// Runs drawn workloads, as [`near`] does, with memory evenly placed.
pub(in crate::studies) fn even(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    frame(context, spec, None)
}

/// The drawn workloads of an experiment.
fn mixes(context: &ExperimentContext<'_>, spec: &ExperimentSpec) -> Vec<DrawnMix> {
    let mut mixes = Vec::new();
    for case in &spec.cases {
        if !case.full_only || context.by_scale(false, true) {
            let count = case.drawn.map_or(1, |drawn| drawn.at_scale(context));
            mixes.extend(DrawnMix::draw_all(context.seed(), case.size, count));
        }
    }
    mixes
}

/// Every run of an experiment: by workload, then policy, then run. Frames of one study share them.
fn run_mixes(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
    memory: Option<&[u32]>,
) -> Result<Arc<Vec<SymbioticRun>>, StudyError> {
    // The kind only decides what is taken from the runs, so experiments that differ in nothing else
    // share them.
    let without_kind = ExperimentSpec {
        kind: None,
        ..spec.clone()
    };
    let key = serde_json::to_string(&without_kind).map_err(part_error("runs"))?;
    let key = format!("symbiotic runs with memory on {memory:?}: {key}");
    context.get_or_compute(&key, || {
        let prepared = map_jobs(context, &mixes(context, spec), |mix| {
            PreparedMix::new(mix, memory, spec.alone_s(context), context)
        })?;
        let jobs = (&prepared[..], &spec.policies[..], spec.runs(context));
        run_every_case(context, jobs, |mix, policy, seed| {
            SymbioticRun::run(mix, policy, seed)
        })
    })
}

fn frame(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
    memory: Option<&[u32]>,
) -> Result<Frame, StudyError> {
    let mut cases = Vec::new();
    for mix in mixes(context, spec) {
        let labels = [
            ("cores", mix.cores.to_string()),
            ("number", mix.number.to_string()),
        ];
        cases.push(Case {
            key: mix.key(),
            labels: labels
                .map(|(label, value)| (label.to_owned(), value))
                .into(),
            programs: mix.names(),
        });
    }
    let all = run_mixes(context, spec, memory)?;
    let mut frame = Frame::new(cases, spec.policies.clone(), spec.runs(context));
    for (measure, value) in VALUES {
        frame.set_run_values(measure, all.iter().map(value).collect());
    }
    let mut charged_stp = [Vec::new(), Vec::new()];
    for (n, run) in all.iter().enumerate() {
        // Linux decides in the kernel.
        let is_linux = frame.policies[n / frame.runs % frame.policies.len()] == "linux";
        let decision_us = if is_linux {
            0.0
        } else {
            run.result.decision_us.mean
        };
        charged_stp[0].push(charged(run.result.stp, decision_us));
        charged_stp[1].push(charged(run.result.stp, 1000.0));
    }
    let [measured, at_1000_us] = charged_stp;
    frame.set_run_values("stp_charged", measured);
    frame.set_run_values("stp_at_1000_us", at_1000_us);
    frame.set_run_values("alone_s", vec![spec.alone_s(context); all.len()]);
    for (cause, name) in CpiStack::NAMES.iter().enumerate() {
        let cpi = all.iter().map(|run| run.counters.stack()[cause]);
        frame.set_run_values(&format!("cpi_{name}"), cpi.collect());
    }
    let slowdowns = all.iter().map(|run| run.slowdowns().collect());
    frame.set_program_values("slowdown", slowdowns.collect());
    Ok(frame)
}

/// The disadvantage that [`LEARNING`] has learnt of each core in the end, with the latency of
/// memory there. Cases are the cores of each workload, labels `cores`, `core`, `place` (both
/// together) and `node`; the policies are machines: memory near the first half of the cores
/// (`one-node`), and evenly placed (`all-nodes`).
pub(in crate::studies) fn learnt(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    let machines = [("one-node", NEAR_FIRST_HALF), ("all-nodes", None)];
    let all = [
        run_mixes(context, spec, machines[0].1)?,
        run_mixes(context, spec, machines[1].1)?,
    ];
    let runs = spec.runs(context);
    let learning = spec.policies.iter().position(|policy| policy == LEARNING);
    let learning = learning.ok_or_else(|| StudyError::part(LEARNING, "is not run"))?;
    let mut cases = Vec::new();
    let [mut disadvantages, mut latencies, mut expected] = [const { Vec::new() }; 3];
    for (n, mix) in mixes(context, spec).iter().enumerate() {
        let first = (n * spec.policies.len() + learning) * runs;
        let chips = [
            chip(mix.cores, machines[0].1)?,
            chip(mix.cores, machines[1].1)?,
        ];
        let ideal = chips
            .each_ref()
            .map(|chip| memory_latencies(chip, mix.cores));
        for core in 0..mix.cores {
            let place = chips[0].places().iter().find(|place| place.core == core);
            let labels = [
                ("cores", mix.cores.to_string()),
                ("core", core.to_string()),
                ("place", format!("{}/{core}", mix.cores)),
                ("node", place.map_or(0, |place| place.node).to_string()),
            ];
            cases.push(Case {
                key: format!("{}/{core}", mix.key()),
                labels: labels
                    .map(|(label, value)| (label.to_owned(), value))
                    .into(),
                programs: Vec::new(),
            });
            for (all, latencies_ns) in all.iter().zip(&ideal) {
                let logs: Vec<f64> = latencies_ns.iter().map(|ns| libm::log(*ns)).collect();
                for run in &all[first..first + runs] {
                    disadvantages.push(run.facts.learnt[core].unwrap_or(f64::NAN));
                    latencies.push(latencies_ns[core]);
                    // A disadvantage is the logarithm of a core's latency over the geometric mean
                    // of all cores.
                    expected.push(logs[core] - mean(&logs).unwrap_or(0.0));
                }
            }
        }
    }
    let policies = machines.map(|(name, _)| name.to_owned());
    let mut frame = Frame::new(cases, policies.into(), runs);
    frame.set_run_values("disadvantage", disadvantages);
    frame.set_run_values("memory_latency_ns", latencies);
    frame.set_run_values("expected_disadvantage", expected);
    Ok(frame)
}

/// Idle latency of memory from each core: mean over the nodes that have any, ns.
fn memory_latencies(chip: &Chip, cores: usize) -> Vec<f64> {
    let nodes = 0..chip.domains().nodes;
    let homes: BTreeSet<usize> = nodes.map(|node| chip.memory_node(node)).collect();
    let latency = |core: usize| {
        let place = *chip.places().iter().find(|place| place.core == core)?;
        let all = homes
            .iter()
            .map(|&home| chip.memory_latency_ns(place, home));
        mean(&all.collect::<Vec<_>>())
    };
    (0..cores).filter_map(latency).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{CaseSpec, ScaledValue};
    use crate::testing::workers;
    use consort_core::plan::{Fact, Reason};
    use consort_core::{PuId, ThreadId};
    use consort_experiment::Scale;

    #[test]
    fn fact_of_pu_belongs_to_its_core() {
        let chip = chip(4, None).unwrap();
        let mut facts = DecisionFacts::new(&chip);
        let mut decision = Decision {
            quantum_ns: Some(500_000_000),
            ..Decision::default()
        };
        let thread = ThreadId {
            pid: 1,
            tid: 1,
            start_ticks: 0,
        };
        let reason = Reason {
            considered: String::new(),
            chosen: String::new(),
            facts: vec![Fact {
                name: CORE_DISADVANTAGE.into(),
                value: 0.25,
                unit: "".into(),
            }],
        };
        decision.place(thread, Placement::Restricted(PuId(5).into()), reason);
        facts.add(&decision, &chip);
        facts.add(&Decision::default(), &chip);
        assert_eq!(facts.learnt, [None, None, Some(0.25), None]);
        assert_eq!(facts.alone_s, 0.5);
    }

    /// Evenly placed, memory stays where `linux` leaves threads; with one node about half of them
    /// are away from it.
    #[test]
    fn machines_differ_in_place_of_memory() {
        let context = ExperimentContext::new(8, Scale::Quick, workers(2), &|_| ());
        let spec = ExperimentSpec {
            policies: ["linux", LEARNING].map(str::to_owned).into(),
            alone_s: Some(ScaledValue {
                quick: 0.5,
                full: 0.5,
            }),
            cases: vec![CaseSpec {
                size: 4,
                ..CaseSpec::default()
            }],
            ..ExperimentSpec::default()
        };
        let (near, even) = (
            near(&context, &spec).unwrap(),
            even(&context, &spec).unwrap(),
        );
        assert_eq!(even.run_values(0, 0, "away_percent"), [0.0]);
        let of = |measure| near.run_values(0, 0, measure)[0];
        assert!((of("away_percent") - 50.0).abs() < 10.0);
        let ends = of("largest_slowdown") / of("smallest_slowdown");
        assert!((of("unfairness") - ends).abs() < 1e-12);
        assert_eq!(near.program_values(0, 0, "slowdown")[0].len(), 8);
        let learnt = learnt(&context, &spec).unwrap();
        let cores = 0..learnt.cases.len();
        let all = cores.flat_map(|core| learnt.run_values(core, 0, "disadvantage"));
        assert_eq!(all.filter(|value| value.is_finite()).count(), 4);
    }
}
