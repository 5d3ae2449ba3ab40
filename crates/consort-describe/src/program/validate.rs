//! Limits of what a program file may say.
//!
//! Every number has a range here, which the message names. Ranges are wide: they keep out what
//! cannot be, not what is unusual.

use super::branch::{BranchSpec, ResolutionSpec};
use super::ilp::{ChainSpec, DivisionSpec, ILP_WINDOWS, IlpSpec, MOST_CHAIN_SETS};
use super::spec::{
    CURVE_KIB, MixSpec, PhaseSpec, ProgramSpec, StageSpec, StretchSpec, ThreadsSpec,
};
use crate::describe::{KeyScope, Problems, ValueRange};

/// Most that shares may deviate from their sum, because they are written with few decimals.
const ROUNDING: f64 = 0.005;
/// Threads that a program can have.
const MOST_THREADS: u32 = 65_536;
/// Locks that a program can have. Each is kept in memory, and with more no two threads ever meet.
const MOST_LOCKS: u32 = 65_536;
/// Misses per kilo-instruction: at most one per instruction.
const MOST_MPKI: f64 = 1000.0;

const SHARE: ValueRange = (0.0, 1.0);

/// Notes everything in a program description that cannot be.
pub fn validate(spec: &ProgramSpec, problems: &mut Problems) {
    let at = &mut KeyScope::new(problems, "");
    // Names stand in workload expressions, where `+`, `*`, `@` and the like have a meaning.
    let (name, plain) = (&spec.name, |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')
    });
    at.require(
        !name.is_empty() && name.chars().all(plain),
        "name",
        format!("is '{name}'; expected letters, digits, '-', '.' and '_'"),
    );
    at.require(!spec.suite.is_empty(), "suite", "is empty; expected a name");
    at.check_optional(
        "page_faults_per_minstr",
        spec.page_faults_per_minstr,
        (0.0, 1e5),
    );
    let message = "is missing; expected at least one [[phase]]";
    at.require(!spec.phases.is_empty(), "phase", message);
    for (i, phase) in spec.phases.iter().enumerate() {
        check_phase(phase, at.child(&format!("phase[{i}]")));
    }
    if let Some(b) = &spec.burstiness {
        let mut at = at.child("burstiness");
        at.check_range("log_sd", b.log_sd, (0.0, 3.0));
        at.check_range("correlation", b.correlation, (0.0, 0.999));
        at.check_range("interval_ginstr", b.interval_ginstr, (1e-6, 1e6));
    }
    let message = "is 0; expected at least 1";
    at.require(spec.processes != Some(0), "processes", message);
    if let Some(threads) = &spec.threads {
        check_threads(threads, at.child("threads"));
    }
    if let Some(io) = &spec.io {
        let mut at = at.child("io");
        at.check_range("per_ginstr", io.per_ginstr, (0.0, 1e9));
        at.check_range("blocked_us", io.blocked_us, (0.0, 1e9));
    }
}

fn check_phase(phase: &PhaseSpec, mut at: KeyScope<'_>) {
    at.check_range("length_ginstr", phase.length_ginstr, (1e-6, 1e6));
    check_mix(&phase.mix, at.child("mix"));
    let code = &phase.code;
    at.check_optional("code.operations", code.operations, (1.0, 16.0));
    at.check_optional("code.taken", code.taken, SHARE);
    at.check_points("code.turns", code.turns.iter().flatten(), (0.0, 16.0));
    at.check_optional("code.bytes", code.bytes, (1.0, 16.0));
    at.check_optional("code.direct", code.direct, SHARE);
    at.check_optional("code.sequential", code.sequential, SHARE);
    at.check_optional("code.vector_accesses", code.vector_accesses, SHARE);
    for (_, key, operations) in code.kinds.works() {
        at.check_range(&format!("code.kinds.{key}"), operations, (0.0, 16.0));
    }
    for (_, key, pairs) in code.pairs.pairs() {
        at.check_range(&format!("code.pairs.{key}"), pairs, SHARE);
    }
    if let Some(stretches) = &phase.stretches {
        check_stretches(stretches, &mut at);
    }
    check_ilp(&phase.ilp, at.child("ilp"));
    check_branch(&phase.branch, &phase.mix, at.child("branch"));
    check_curve("data_mpki", &phase.data_mpki, &mut at);
    check_curve("instruction_mpki", &phase.instruction_mpki, &mut at);
    for (key, points) in [
        ("data_mpki_128", &phase.data_mpki_128),
        ("instruction_mpki_128", &phase.instruction_mpki_128),
    ] {
        if let Some(points) = points {
            check_curve(key, points, &mut at);
        }
    }
    let next = phase.next_lines.as_ref();
    for (key, curve) in [
        ("data_conflicts", phase.data_conflicts.as_ref()),
        (
            "instruction_conflicts",
            phase.instruction_conflicts.as_ref(),
        ),
        ("next_lines.missed", next.map(|next| &next.missed)),
        ("next_lines.late", next.map(|next| &next.late)),
    ] {
        if let Some(curve) = curve {
            let mut at = at.child(key);
            at.check_points("four_ways", &curve.four_ways, (0.0, MOST_MPKI));
            at.check_points("eight_ways", &curve.eight_ways, (0.0, MOST_MPKI));
        }
    }
    let mlp = &phase.mlp;
    at.check_range("mlp.value", mlp.value, (1.0, 1000.0));
    at.check_range("mlp.window_exponent", mlp.window_exponent, (0.0, 2.0));
    at.check_points("mlp.measured", mlp.measured.iter().flatten(), (1.0, 1000.0));
    let prefetch = &phase.prefetch;
    at.check_range(
        "prefetch.effectiveness",
        prefetch.effectiveness,
        (-10.0, 1.0),
    );
    at.check_range("prefetch.excess", prefetch.excess, (0.0, 100.0));
    at.check_range("writeback_share", phase.writeback_share, SHARE);
    at.check_range("page_spread", phase.page_spread, SHARE);
    let pages = phase.page_mpki.iter().flatten();
    at.check_points("page_mpki", pages, (0.0, MOST_MPKI));
}

fn check_mix(mix: &MixSpec, mut at: KeyScope<'_>) {
    let shares = [
        ("fp", mix.fp),
        ("vector", mix.vector),
        ("int", mix.int),
        ("load", mix.load),
        ("store", mix.store),
        ("branch", mix.branch),
    ];
    for (class, share) in shares {
        at.check_range(class, share, SHARE);
    }
    let sum: f64 = shares.iter().map(|(_, share)| share).sum();
    let message = format!("sums to {sum}; expected 1");
    at.require((sum - 1.0).abs() <= ROUNDING, "", message);
}

fn check_stretches(stretches: &[StretchSpec], at: &mut KeyScope<'_>) {
    for (i, stretch) in stretches.iter().enumerate() {
        let mut at = at.child(&format!("stretches[{i}]"));
        at.check_range("share", stretch.share, SHARE);
        at.check_range("operations", stretch.operations, (1.0, 16.0));
        at.check_range("taken", stretch.taken, SHARE);
        check_mix(&stretch.mix, at.child("mix"));
        // There are no more of a kind than of its class.
        at.check_range("multiply", stretch.multiply, (0.0, stretch.mix.int));
        at.check_range("moves", stretch.moves, (0.0, stretch.mix.vector));
    }
    let sum: f64 = stretches.iter().map(|stretch| stretch.share).sum();
    let message = format!("have shares that sum to {sum}; expected 1");
    at.require((sum - 1.0).abs() <= ROUNDING, "stretches", message);
}

fn check_ilp(ilp: &IlpSpec, mut at: KeyScope<'_>) {
    at.check_range("a", ilp.a, (0.01, 100.0));
    at.check_range("b", ilp.b, SHARE);
    at.check_range("use_distance", ilp.use_distance, (0.1, 1000.0));
    at.check_optional("waiting", ilp.waiting, SHARE);
    if let Some(scheduler) = ilp.fp_scheduler {
        at.check_range("fp_scheduler.waiting", scheduler.waiting, SHARE);
        at.check_range("fp_scheduler.spread", scheduler.spread, SHARE);
    }
    at.check_points("miss_costs", ilp.miss_costs.iter().flatten(), (0.0, 1000.0));
    check_divisions(ilp.int_divisions, at.child("int_divisions"));
    check_divisions(ilp.fp_divisions, at.child("fp_divisions"));
    for (key, shares) in [("uses", ilp.uses), ("load_uses", ilp.load_uses)] {
        let shares = shares.unwrap_or_default();
        at.check_points(key, &shares, SHARE);
        let sum: f64 = shares.iter().sum();
        let message = format!("sums to {sum}; expected at most 1");
        at.require(sum <= 1.0 + ROUNDING, key, message);
    }
    at.check_optional("unevenness", ilp.unevenness, SHARE);
    at.check_optional("wide_unevenness", ilp.wide_unevenness, SHARE);
    let wide = ilp.wide_miss_costs.iter().flatten();
    at.check_points("wide_miss_costs", wide, (0.0, 1000.0));
    if let Some(measured) = ilp.measured {
        at.check_points("measured", &measured, (0.01, 2000.0));
        let message = "falls; expected parallelism that does not fall as the window grows";
        at.require(measured.is_sorted(), "measured", message);
    }
    if let Some(chain) = &ilp.chain {
        check_chain(chain, at.child("chain"));
    }
    if let Some(chains) = &ilp.chains {
        let count = chains.len();
        let message = format!("has {count} sets; expected 1 to {MOST_CHAIN_SETS}");
        at.require((1..=MOST_CHAIN_SETS).contains(&count), "chains", message);
        for (i, chain) in chains.iter().flatten().enumerate() {
            let (set, window) = (i / ILP_WINDOWS.len(), i % ILP_WINDOWS.len());
            check_chain(chain, at.child(&format!("chains[{set}][{window}]")));
        }
    }
}

fn check_chain(chain: &ChainSpec, mut at: KeyScope<'_>) {
    for (part, count, _) in chain.classes() {
        at.check_range(part, count, (0.0, 100.0));
    }
}

fn check_divisions(divisions: Option<DivisionSpec>, mut at: KeyScope<'_>) {
    let Some(divisions) = divisions else { return };
    at.check_range("operations", divisions.operations, SHARE);
    at.check_range("slow", divisions.slow, SHARE);
    at.check_points("lengthening", &divisions.lengthening, (0.0, 1000.0));
    let message = "falls; expected a chain that gets no shorter where divisions take longer";
    at.require(divisions.lengthening.is_sorted(), "lengthening", message);
}

fn check_branch(branch: &BranchSpec, mix: &MixSpec, mut at: KeyScope<'_>) {
    // No more branches can be mispredicted than there are.
    let mpki = (0.0, (1000.0 * mix.branch).clamp(0.0, MOST_MPKI));
    at.check_range("mpki", branch.mpki, mpki);
    let exponent = branch.capacity_exponent;
    at.check_range("capacity_exponent", exponent, (0.0, 2.0));
    for (key, points) in [
        ("tagged_mpki", &branch.tagged_mpki),
        ("tagged_shared_mpki", &branch.tagged_shared_mpki),
        ("gshare_mpki", &branch.gshare_mpki),
        ("gshare_shared_mpki", &branch.gshare_shared_mpki),
    ] {
        at.check_points(key, points.iter().flatten(), mpki);
    }
    at.check_optional("renewed_pki", branch.renewed_pki, mpki);
    at.check_points("target_mpki", branch.target_mpki.iter().flatten(), mpki);
    check_resolution(branch.resolution, at.child("resolution"));
    check_resolution(branch.gshare_resolution, at.child("gshare_resolution"));
}

fn check_resolution(resolution: Option<ResolutionSpec>, mut at: KeyScope<'_>) {
    let Some(resolution) = resolution else { return };
    at.check_range("cycles", resolution.cycles, (1.0, 1000.0));
    at.check_range("absorbed", resolution.absorbed, SHARE);
    at.check_optional("absorbed_slow", resolution.absorbed_slow, SHARE);
    at.check_optional("misses", resolution.misses, (0.0, 100.0));
}

fn check_curve(key: &str, points: &[f64], at: &mut KeyScope<'_>) {
    let (count, expected) = (points.len(), CURVE_KIB.len());
    let message = format!("has {count} values; expected {expected}: at 8 KiB, 16 KiB, ... 64 MiB");
    at.require(count == expected, key, message);
    at.check_points(key, points, (0.0, MOST_MPKI));
    for (i, pair) in points.windows(2).enumerate() {
        let message = format!(
            "is {}, more than the {} before it; expected a curve that does not rise",
            pair[1], pair[0]
        );
        at.require(pair[1] <= pair[0], &format!("{key}[{}]", i + 1), message);
    }
}

fn check_threads(threads: &ThreadsSpec, mut at: KeyScope<'_>) {
    let (default, max) = (threads.default, threads.max);
    let message = format!("is {default}; expected 1 to {MOST_THREADS}");
    at.require((1..=MOST_THREADS).contains(&default), "default", message);
    let message = format!("is {max}; expected {default} to {MOST_THREADS}");
    at.require((default..=MOST_THREADS).contains(&max), "max", message);
    at.check_range("serial_share", threads.serial_share, SHARE);
    at.check_range("shared_data", threads.shared_data, SHARE);
    at.check_range("shared_code", threads.shared_code, SHARE);
    at.check_range("spin_us", threads.spin_us, (0.0, 1e6));
    if let Some(barrier) = &threads.barrier {
        let mut at = at.child("barrier");
        let message = "is 0; expected at least 1, or no such key";
        at.require(barrier.at_threads != Some(0), "at_threads", message);
        at.check_range("spacing_minstr", barrier.spacing_minstr, (1e-3, 1e9));
        at.check_range("imbalance", barrier.imbalance, (0.0, 2.0));
        at.check_optional("persistence", barrier.persistence, SHARE);
    }
    if let Some(lock) = &threads.lock {
        let mut at = at.child("lock");
        // A thread holds at most one lock at a time.
        let longest = 1e6 / lock.per_minstr.max(1e-9);
        at.check_range("per_minstr", lock.per_minstr, (0.0, 1e6));
        at.check_range("hold_instr", lock.hold_instr, (0.0, longest));
        let message = format!("is {}; expected 1 to {MOST_LOCKS}", lock.count);
        at.require((1..=MOST_LOCKS).contains(&lock.count), "count", message);
    }
    check_stages(&threads.stages, &mut at);
}

fn check_stages(stages: &[StageSpec], at: &mut KeyScope<'_>) {
    for (i, stage) in stages.iter().enumerate() {
        let mut at = at.child(&format!("stage[{i}]"));
        let name = &stage.name;
        let own = !name.is_empty() && stages[..i].iter().all(|other| other.name != *name);
        let message = format!("is '{name}'; expected a name of its own");
        at.require(own, "name", message);
        at.check_range("thread_share", stage.thread_share, (1e-3, 1e3));
        at.check_range("work", stage.work, (1e-3, 1e3));
        if let Some(mix) = &stage.mix {
            check_mix(mix, at.child("mix"));
        }
    }
    let mean = stages.iter().map(|s| s.work).sum::<f64>() / stages.len().max(1) as f64;
    at.require(
        stages.is_empty() || (mean - 1.0).abs() <= ROUNDING,
        "stage",
        format!("works {mean} on average; expected 1, for work is relative to the mean stage"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = r#"
name = "example"
title = "an example"
suite = "test"
sources = {}
[burstiness]
log_sd = 0.1
correlation = 0.5
interval_ginstr = 0.1
[threads]
default = 2
max = 4
barrier = { spacing_minstr = 1.0, imbalance = 0.1 }
lock = { per_minstr = 1000.0, hold_instr = 100.0, count = 1 }
stage = [{ name = "a", thread_share = 1.0, work = 0.5 }, { name = "b", thread_share = 1.0, work = 1.5 }]
[io]
per_ginstr = 1.0
blocked_us = 1.0
[[phase]]
length_ginstr = 1.0
mix = { fp = 0.1, vector = 0.1, int = 0.3, load = 0.3, store = 0.1, branch = 0.1 }
ilp = { a = 1.0, b = 0.5, use_distance = 3.0 }
branch = { mpki = 1.0, capacity_exponent = 0.2 }
data_mpki = [9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0]
instruction_mpki = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
mlp = { value = 2.0, window_exponent = 0.5 }
prefetch = { effectiveness = 0.5, excess = 0.1 }
writeback_share = 0.2
page_spread = 0.1
"#;

    /// Keys found wrong after a replacement in the valid description.
    fn wrong(from: &str, to: &str) -> Vec<String> {
        assert!(VALID.contains(from), "{from}");
        let spec: ProgramSpec = toml::from_str(&VALID.replacen(from, to, 1)).unwrap();
        let mut problems = Problems::default();
        validate(&spec, &mut problems);
        problems.list().iter().map(|p| p.key.clone()).collect()
    }

    #[test]
    fn nothing_is_wrong_with_a_valid_description() {
        assert!(wrong("", "").is_empty());
    }

    #[test]
    fn every_key_has_its_range() {
        let cases = [
            ("name = \"example\"", "name = \"a*b\"", "name"),
            ("suite = \"test\"", "suite = \"\"", "suite"),
            ("log_sd = 0.1", "log_sd = -0.1", "burstiness.log_sd"),
            (
                "correlation = 0.5",
                "correlation = 1.0",
                "burstiness.correlation",
            ),
            (
                "interval_ginstr = 0.1",
                "interval_ginstr = 0.0",
                "burstiness.interval_ginstr",
            ),
            ("default = 2", "default = 0", "threads.default"),
            (
                "a = 1.0",
                "a = 1.0, miss_costs = [1.0, -1.0]",
                "phase[0].ilp.miss_costs[1]",
            ),
            ("max = 4", "max = 1", "threads.max"),
            (
                "max = 4",
                "max = 4\nserial_share = 1.1",
                "threads.serial_share",
            ),
            (
                "max = 4",
                "max = 4\nshared_data = -1.0",
                "threads.shared_data",
            ),
            (
                "max = 4",
                "max = 4\nshared_code = nan",
                "threads.shared_code",
            ),
            ("max = 4", "max = 4\nspin_us = -1.0", "threads.spin_us"),
            (
                "spacing_minstr = 1.0",
                "spacing_minstr = 0.0",
                "threads.barrier.spacing_minstr",
            ),
            (
                "imbalance = 0.1",
                "imbalance = 0.1, persistence = 1.5",
                "threads.barrier.persistence",
            ),
            (
                "imbalance = 0.1",
                "imbalance = 0.1, at_threads = 0",
                "threads.barrier.at_threads",
            ),
            (
                "imbalance = 0.1",
                "imbalance = 3.0",
                "threads.barrier.imbalance",
            ),
            (
                "per_minstr = 1000.0",
                "per_minstr = -1.0",
                "threads.lock.per_minstr",
            ),
            (
                "hold_instr = 100.0",
                "hold_instr = 1001.0",
                "threads.lock.hold_instr",
            ),
            ("count = 1", "count = 0", "threads.lock.count"),
            ("count = 1", "count = 65537", "threads.lock.count"),
            ("name = \"b\"", "name = \"a\"", "threads.stage[1].name"),
            (
                "thread_share = 1.0",
                "thread_share = 0.0",
                "threads.stage[0].thread_share",
            ),
            ("work = 1.5", "work = 1.0", "threads.stage"),
            ("per_ginstr = 1.0", "per_ginstr = -1.0", "io.per_ginstr"),
            ("blocked_us = 1.0", "blocked_us = inf", "io.blocked_us"),
            (
                "length_ginstr = 1.0",
                "length_ginstr = 0.0",
                "phase[0].length_ginstr",
            ),
            ("fp = 0.1", "fp = 0.11", "phase[0].mix"),
            ("a = 1.0", "a = 0.0", "phase[0].ilp.a"),
            ("b = 0.5", "b = 1.5", "phase[0].ilp.b"),
            (
                "use_distance = 3.0",
                "use_distance = 0.0",
                "phase[0].ilp.use_distance",
            ),
            ("mpki = 1.0", "mpki = 101.0", "phase[0].branch.mpki"),
            (
                "capacity_exponent = 0.2",
                "capacity_exponent = -0.2",
                "phase[0].branch.capacity_exponent",
            ),
            ("[9.0, ", "[", "phase[0].data_mpki"),
            ("8.0, ", "9.5, ", "phase[0].data_mpki[1]"),
            ("1.0, 0.0]", "1.0, -1.0]", "phase[0].data_mpki[13]"),
            ("value = 2.0", "value = 0.5", "phase[0].mlp.value"),
            (
                "window_exponent = 0.5",
                "window_exponent = 3.0",
                "phase[0].mlp.window_exponent",
            ),
            (
                "effectiveness = 0.5",
                "effectiveness = 1.5",
                "phase[0].prefetch.effectiveness",
            ),
            ("excess = 0.1", "excess = -0.1", "phase[0].prefetch.excess"),
            (
                "writeback_share = 0.2",
                "writeback_share = 2.0",
                "phase[0].writeback_share",
            ),
            (
                "page_spread = 0.1",
                "page_spread = 2.0",
                "phase[0].page_spread",
            ),
        ];
        for (from, to, key) in cases {
            assert_eq!(wrong(from, to), [key], "{to}");
        }
    }

    #[test]
    fn shares_of_a_mix_are_not_negative() {
        let keys = wrong("fp = 0.1, vector = 0.1", "fp = -0.1, vector = 0.3");
        assert_eq!(keys, ["phase[0].mix.fp"]);
    }

    const ONE: StretchSpec = StretchSpec {
        share: 0.5,
        operations: 1.0,
        taken: 0.1,
        mix: MixSpec {
            int: 0.6,
            load: 0.4,
            ..MixSpec::NONE
        },
        multiply: 0.0,
        moves: 0.0,
    };

    fn wrong_stretches(all: &[StretchSpec]) -> Vec<String> {
        let mut problems = Problems::default();
        check_stretches(all, &mut KeyScope::new(&mut problems, ""));
        problems.list().iter().map(|p| p.key.clone()).collect()
    }

    #[test]
    fn stretches_have_ranges_and_shares_sum_to_one() {
        assert!(wrong_stretches(&[ONE, ONE]).is_empty());
        assert_eq!(wrong_stretches(&[ONE]), ["stretches"]);
        assert_eq!(wrong_stretches(&[]), ["stretches"]);
        let with = |change: fn(&mut StretchSpec)| {
            let mut other = ONE;
            change(&mut other);
            wrong_stretches(&[ONE, other])
        };
        assert_eq!(with(|s| s.operations = 0.5), ["stretches[1].operations"]);
        assert_eq!(with(|s| s.taken = -0.1), ["stretches[1].taken"]);
        assert_eq!(with(|s| s.mix.int = 0.1), ["stretches[1].mix"]);
        // No more of a kind than there is of its class.
        assert_eq!(with(|s| s.multiply = 0.7), ["stretches[1].multiply"]);
        assert_eq!(with(|s| s.moves = 0.1), ["stretches[1].moves"]);
    }
}
