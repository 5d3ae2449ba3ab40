//! Limits of what a program file may say.
//!
//! Every number has a range here; the message names it. Ranges are wide: they
//! keep out what cannot be, not what is unusual.

mod branches;
mod stretches;

use super::ilp::{DivisionSpec, ILP_WINDOWS, IlpSpec};
use super::spec::{
    Burstiness, CURVE_KIB, CodeSpec, IoSpec, LockSpec, MixSpec, PhaseSpec, ProgramSpec, StageSpec,
    ThreadsSpec,
};
use crate::describe::Problems;

/// Most that shares may deviate from their sum, for they are written with few decimals.
const ROUNDING: f64 = 0.005;
/// Threads that a program can have.
const MOST_THREADS: u32 = 65_536;
/// Locks that a program can have; each is kept, and with more nobody ever meets anybody.
const MOST_LOCKS: u32 = 65_536;
/// Misses per kilo-instruction: at most one per instruction.
const MOST_MPKI: f64 = 1000.0;

/// Notes everything in a program description that cannot be.
pub fn validate(spec: &ProgramSpec, problems: &mut Problems) {
    check_name(&spec.name, problems);
    problems.require(!spec.suite.is_empty(), "suite", "is empty; expected a name");
    problems.require(
        !spec.phases.is_empty(),
        "phase",
        "is missing; expected at least one [[phase]]",
    );
    for (i, p) in spec.phases.iter().enumerate() {
        check_phase(&format!("phase[{i}]"), p, problems);
    }
    if let Some(b) = &spec.burstiness {
        check_burstiness(b, problems);
    }
    if let Some(t) = &spec.threads {
        check_threads(t, problems);
    }
    if let Some(io) = &spec.io {
        check_io(io, problems);
    }
}

/// Names stand in workload expressions, where `+`, `*`, `@` and the like have a meaning.
fn check_name(name: &str, problems: &mut Problems) {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    problems.require(
        !name.is_empty() && name.chars().all(plain),
        "name",
        format!("is '{name}'; expected letters, digits, '-', '.' and '_'"),
    );
}

fn check_phase(key: &str, p: &PhaseSpec, problems: &mut Problems) {
    let key = |name: &str| format!("{key}.{name}");
    problems.check_range(key("length_ginstr"), p.length_ginstr, 1e-6, 1e6);
    check_mix(&key("mix"), &p.mix, problems);
    check_code(&key("code"), &p.code, problems);
    stretches::check(&key("stretches"), p.stretches.as_deref(), problems);
    check_ilp(&key("ilp"), &p.ilp, problems);
    branches::check(&key("branch"), &p.branch, &p.mix, problems);
    check_curve(&key("data_mpki"), &p.data_mpki, problems);
    check_curve(&key("instruction_mpki"), &p.instruction_mpki, problems);
    for (name, points) in [
        ("data_mpki_128", &p.data_mpki_128),
        ("instruction_mpki_128", &p.instruction_mpki_128),
    ] {
        if let Some(points) = points {
            check_curve(&key(name), points, problems);
        }
    }
    problems.check_range(key("mlp.value"), p.mlp.value, 1.0, 1000.0);
    problems.check_range(key("mlp.window_exponent"), p.mlp.window_exponent, 0.0, 2.0);
    for (at, &misses) in p.mlp.measured.iter().flatten().enumerate() {
        problems.check_range(key(&format!("mlp.measured[{at}]")), misses, 1.0, 1000.0);
    }
    let prefetch = &p.prefetch;
    problems.check_range(
        key("prefetch.effectiveness"),
        prefetch.effectiveness,
        -10.0,
        1.0,
    );
    problems.check_range(key("prefetch.excess"), prefetch.excess, 0.0, 100.0);
    problems.check_range(key("writeback_share"), p.writeback_share, 0.0, 1.0);
    problems.check_range(key("page_spread"), p.page_spread, 0.0, 1.0);
}

fn check_mix(key: &str, m: &MixSpec, problems: &mut Problems) {
    let shares = [
        ("fp", m.fp),
        ("vector", m.vector),
        ("int", m.int),
        ("load", m.load),
        ("store", m.store),
        ("branch", m.branch),
    ];
    for (class, share) in shares {
        problems.check_range(format!("{key}.{class}"), share, 0.0, 1.0);
    }
    let sum: f64 = shares.iter().map(|(_, share)| share).sum();
    problems.require(
        (sum - 1.0).abs() <= ROUNDING,
        key,
        format!("sums to {sum}; expected 1"),
    );
}

fn check_ilp(key: &str, ilp: &IlpSpec, problems: &mut Problems) {
    problems.check_range(format!("{key}.a"), ilp.a, 0.01, 100.0);
    problems.check_range(format!("{key}.b"), ilp.b, 0.0, 1.0);
    problems.check_range(format!("{key}.use_distance"), ilp.use_distance, 0.1, 1000.0);
    check_optional(format!("{key}.waiting"), ilp.waiting, (0.0, 1.0), problems);
    if let Some(scheduler) = ilp.fp_scheduler {
        let key = format!("{key}.fp_scheduler");
        problems.check_range(format!("{key}.waiting"), scheduler.waiting, 0.0, 1.0);
        problems.check_range(format!("{key}.spread"), scheduler.spread, 0.0, 1.0);
    }
    for (at, &cost) in ilp.miss_costs.iter().flatten().enumerate() {
        problems.check_range(format!("{key}.miss_costs[{at}]"), cost, 0.0, 1000.0);
    }
    check_divisions(&format!("{key}.int_divisions"), ilp.int_divisions, problems);
    check_divisions(&format!("{key}.fp_divisions"), ilp.fp_divisions, problems);
    for (name, shares) in [("uses", ilp.uses), ("load_uses", ilp.load_uses)] {
        let shares = shares.unwrap_or_default();
        for (i, share) in shares.iter().enumerate() {
            problems.check_range(format!("{key}.{name}[{i}]"), *share, 0.0, 1.0);
        }
        let sum: f64 = shares.iter().sum();
        problems.require(
            sum <= 1.0 + ROUNDING,
            format!("{key}.{name}"),
            format!("sums to {sum}; expected at most 1"),
        );
    }
    check_optional(
        format!("{key}.unevenness"),
        ilp.unevenness,
        (0.0, 1.0),
        problems,
    );
    let measured = ilp.measured.unwrap_or([1.0; ILP_WINDOWS.len()]);
    for (i, point) in measured.iter().enumerate() {
        problems.check_range(format!("{key}.measured[{i}]"), *point, 0.01, 2000.0);
    }
    problems.require(
        measured.is_sorted(),
        format!("{key}.measured"),
        "falls; expected parallelism that does not fall as the window grows",
    );
    if let Some(chain) = &ilp.chain {
        let parts = [
            ("plain", chain.plain),
            ("load", chain.load),
            ("fp", chain.fp),
            ("multiply", chain.multiply),
            ("divide", chain.divide),
            ("fp_divide", chain.fp_divide),
            ("vector", chain.vector),
        ];
        for (part, count) in parts {
            problems.check_range(format!("{key}.chain.{part}"), count, 0.0, 100.0);
        }
    }
}

fn check_divisions(key: &str, divisions: Option<DivisionSpec>, problems: &mut Problems) {
    let Some(divisions) = divisions else {
        return;
    };
    problems.check_range(format!("{key}.operations"), divisions.operations, 0.0, 1.0);
    let lengthening = divisions.lengthening;
    for (i, share) in lengthening.iter().enumerate() {
        problems.check_range(format!("{key}.lengthening[{i}]"), *share, 0.0, 1000.0);
    }
    problems.require(
        lengthening.is_sorted(),
        format!("{key}.lengthening"),
        "falls; expected a chain that gets no shorter where divisions take longer",
    );
}

fn check_optional(
    key: String,
    value: Option<f64>,
    (low, high): (f64, f64),
    problems: &mut Problems,
) {
    if let Some(value) = value {
        problems.check_range(key, value, low, high);
    }
}

fn check_code(key: &str, code: &CodeSpec, problems: &mut Problems) {
    check_optional(
        format!("{key}.operations"),
        code.operations,
        (1.0, 16.0),
        problems,
    );
    check_optional(format!("{key}.taken"), code.taken, (0.0, 1.0), problems);
    check_optional(format!("{key}.bytes"), code.bytes, (1.0, 16.0), problems);
    let shares = [
        ("direct", code.direct),
        ("sequential", code.sequential),
        ("vector_accesses", code.vector_accesses),
    ];
    for (name, share) in shares {
        check_optional(format!("{key}.{name}"), share, (0.0, 1.0), problems);
    }
}

fn check_curve(key: &str, points: &[f64], problems: &mut Problems) {
    problems.require(
        points.len() == CURVE_KIB.len(),
        key,
        format!(
            "has {} values; expected {}: at 8 KiB, 16 KiB, ... 64 MiB",
            points.len(),
            CURVE_KIB.len()
        ),
    );
    for (i, &mpki) in points.iter().enumerate() {
        problems.check_range(format!("{key}[{i}]"), mpki, 0.0, MOST_MPKI);
    }
    for (i, pair) in points.windows(2).enumerate() {
        problems.require(
            pair[1] <= pair[0],
            format!("{key}[{}]", i + 1),
            format!(
                "is {}, more than the {} before it; expected a curve that does not rise",
                pair[1], pair[0]
            ),
        );
    }
}

fn check_burstiness(b: &Burstiness, problems: &mut Problems) {
    problems.check_range("burstiness.log_sd", b.log_sd, 0.0, 3.0);
    problems.check_range("burstiness.correlation", b.correlation, 0.0, 0.999);
    problems.check_range("burstiness.interval_ginstr", b.interval_ginstr, 1e-6, 1e6);
}

fn check_threads(t: &ThreadsSpec, problems: &mut Problems) {
    problems.require(
        (1..=MOST_THREADS).contains(&t.default),
        "threads.default",
        format!("is {}; expected 1 to {MOST_THREADS}", t.default),
    );
    problems.require(
        (t.default..=MOST_THREADS).contains(&t.max),
        "threads.max",
        format!("is {}; expected {} to {MOST_THREADS}", t.max, t.default),
    );
    problems.check_range("threads.serial_share", t.serial_share, 0.0, 1.0);
    problems.check_range("threads.shared_data", t.shared_data, 0.0, 1.0);
    problems.check_range("threads.shared_code", t.shared_code, 0.0, 1.0);
    problems.check_range("threads.spin_us", t.spin_us, 0.0, 1e6);
    if let Some(at) = t.barrier.and_then(|b| b.at_threads) {
        let message = "is 0; expected at least 1, or no such key";
        problems.require(at > 0, "threads.barrier.at_threads", message);
    }
    if let Some(b) = &t.barrier {
        let spacing = "threads.barrier.spacing_minstr";
        problems.check_range(spacing, b.spacing_minstr, 1e-3, 1e9);
        problems.check_range("threads.barrier.imbalance", b.imbalance, 0.0, 2.0);
    }
    if let Some(l) = &t.lock {
        check_lock(l, problems);
    }
    check_stages(&t.stages, problems);
}

/// A thread holds at most one lock at a time.
fn check_lock(l: &LockSpec, problems: &mut Problems) {
    let longest = 1e6 / l.per_minstr.max(1e-9);
    problems.check_range("threads.lock.per_minstr", l.per_minstr, 0.0, 1e6);
    problems.check_range("threads.lock.hold_instr", l.hold_instr, 0.0, longest);
    problems.require(
        (1..=MOST_LOCKS).contains(&l.count),
        "threads.lock.count",
        format!("is {}; expected 1 to {MOST_LOCKS}", l.count),
    );
}

fn check_stages(stages: &[StageSpec], problems: &mut Problems) {
    for (i, s) in stages.iter().enumerate() {
        let key = |name: &str| format!("threads.stage[{i}].{name}");
        problems.require(
            !s.name.is_empty() && stages[..i].iter().all(|other| other.name != s.name),
            key("name"),
            format!("is '{}'; expected a name of its own", s.name),
        );
        problems.check_range(key("thread_share"), s.thread_share, 1e-3, 1e3);
        problems.check_range(key("work"), s.work, 1e-3, 1e3);
        if let Some(m) = &s.mix {
            check_mix(&key("mix"), m, problems);
        }
    }
    let mean = stages.iter().map(|s| s.work).sum::<f64>() / stages.len().max(1) as f64;
    problems.require(
        stages.is_empty() || (mean - 1.0).abs() <= ROUNDING,
        "threads.stage",
        format!("works {mean} on average; expected 1, for work is relative to the mean stage"),
    );
}

fn check_io(io: &IoSpec, problems: &mut Problems) {
    problems.check_range("io.per_ginstr", io.per_ginstr, 0.0, 1e9);
    problems.check_range("io.blocked_us", io.blocked_us, 0.0, 1e9);
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
}
