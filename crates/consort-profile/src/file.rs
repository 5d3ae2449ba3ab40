//! A profile as a program file that the simulator takes.

use std::fmt::Write;

use consort_ops::trace::TraceSampling;
use consort_ops::{FusedPair, LatencyClass, OpKind};

use crate::figures::{
    DivisionFigures, ExecutionFigures, InstructionShares, REFERENCE_PREDICTOR, fit_law,
};
use crate::measure::{CAPACITIES, FEW_MPKI, InstructionCounts, PREDICTOR_KIB, Resolution, WINDOWS};
use crate::profile::ProgramProfile;
use crate::threads::ThreadRelations;

/// The window, in instructions, for which a program file gives overlap.
const REFERENCE_WINDOW: f64 = 128.0;
/// The most lines prefetched in vain per line that a program file takes.
const MOST_EXCESS: f64 = 100.0;
/// The most overlapping misses that a program file takes; an instruction that moves a string can have
/// thousands.
const MOST_MLP: f64 = 1000.0;
/// Index of [`CAPACITIES`] at which its miss curves begin.
const CURVE_START: usize = 1;

/// Least parallelism that a program file can have; used if there were too few instructions to
/// measure any.
const LEAST_ILP: f64 = 0.01;

/// Contents of a program file that are not measured.
#[derive(Debug, Clone, Copy)]
pub struct ProgramFileHeader<'a> {
    /// Name of the program; characters that a file name cannot have are replaced.
    pub name: &'a str,
    /// The command, for the title.
    pub command: &'a str,
    /// Instructions that it executed.
    pub executed: u64,
    /// Remark on the end of a program that failed, as a sentence without its full stop.
    pub end: Option<&'a str>,
}

impl ExecutionFigures {
    fn write_phase(&self, out: &mut String, length_instr: f64) -> std::fmt::Result {
        let length = (length_instr / 1e9).clamp(1e-6, 1e6);
        let InstructionShares {
            fp,
            vector,
            int,
            load,
            store,
            branch,
        } = self.shares();
        let ilp = self.ilp_law();
        let overlap = fit_law(
            &WINDOWS.map(|window| window as f64 / REFERENCE_WINDOW),
            &self.mlp,
        );
        let memory = &self.memory;
        writeln!(out, "\n[[phase]]")?;
        writeln!(out, "length_ginstr = {length:.6}")?;
        writeln!(
            out,
            "mix = {{ fp = {fp:.4}, vector = {vector:.4}, int = {int:.4}, load = {load:.4}, store = {store:.4}, branch = {branch:.4} }} # profile"
        )?;
        self.write_code(out)?;
        self.write_stretches(out)?;
        writeln!(
            out,
            "ilp = {{ a = {:.4}, b = {:.4}, use_distance = {:.3}, unevenness = {:.4}, measured = [{}], uses = [{}], load_uses = [{}], waiting = {:.4}{}{}{}, chain = {}, chains = [{}] }} # profile: windows of 16 to 1024, the law within {:.0} percent; longest chain in 128",
            ilp.factor.clamp(LEAST_ILP, 100.0),
            ilp.exponent.clamp(0.0, 1.0),
            self.use_distance.clamp(0.1, 1000.0),
            self.unevenness,
            format_rising(&self.ilp, LEAST_ILP),
            format_shares(&self.near_uses[0]),
            format_shares(&self.near_uses[1]),
            self.waiting.min(1.0),
            self.scheduler_text(),
            self.divisions_text(),
            self.miss_costs_text(),
            chain_text(&self.chain),
            self.chains_text(),
            100.0 * ilp.error
        )?;
        self.write_branches(out, branch)?;
        let curve = |misses: &[u64]| self.curve_text(misses);
        writeln!(
            out,
            "data_mpki = [{}] # profile",
            curve(&memory.data.misses)
        )?;
        writeln!(
            out,
            "data_mpki_128 = [{}] # profile",
            curve(&memory.data_128.misses)
        )?;
        writeln!(
            out,
            "instruction_mpki = [{}] # profile",
            curve(&memory.code.misses)
        )?;
        writeln!(
            out,
            "instruction_mpki_128 = [{}] # profile",
            curve(&memory.code_128.misses)
        )?;
        writeln!(
            out,
            "mlp = {{ value = {:.4}, window_exponent = {:.4}, measured = [{}] }} # profile: independent misses of 1 MiB in windows of 16 to 1024",
            overlap.factor.clamp(1.0, MOST_MLP),
            overlap.exponent.clamp(0.0, 2.0),
            format_rising(&self.mlp.map(|mlp| mlp.min(MOST_MLP)), 1.0)
        )?;
        writeln!(
            out,
            "prefetch = {{ effectiveness = {:.4}, excess = {:.4} }} # profile: 16 streams, 8 lines ahead",
            self.prefetch_effectiveness(),
            self.prefetch_excess()
        )?;
        writeln!(
            out,
            "writeback_share = {:.4} # profile: at 1 MiB",
            memory.writeback_share
        )?;
        writeln!(
            out,
            "page_spread = {:.4} # profile: 64 pages",
            memory.page_spread.min(1.0)
        )
    }

    fn write_code(&self, out: &mut String) -> std::fmt::Result {
        let instructions = self.mix.instructions.max(1) as f64;
        let per_instruction = |count: u64| count as f64 / instructions;
        writeln!(
            out,
            "code = {{ operations = {:.4}, taken = {:.4}, direct = {:.4}, bytes = {:.3}, sequential = {:.4}, vector_accesses = {:.4}{}{} }} # profile",
            per_instruction(self.mix.operation_count()).clamp(1.0, 16.0),
            per_instruction(self.mix.taken).min(1.0),
            self.mix.direct as f64 / self.mix.taken.max(1) as f64,
            per_instruction(self.mix.code_bytes).clamp(1.0, 16.0),
            self.sequential_code(),
            self.mix.vector_access_share(),
            self.kinds_text(),
            self.pairs_text(),
        )
    }

    /// Pairs of operations that a front end can fuse, if there are any.
    fn pairs_text(&self) -> String {
        let instructions = self.mix.instructions.max(1) as f64;
        let texts: Vec<_> = FusedPair::ALL
            .iter()
            .zip(self.mix.pairs)
            .filter(|&(_, count)| count > 0)
            .map(|(pair, count)| format!("{} = {:.4}", pair.key(), count as f64 / instructions))
            .collect();
        if texts.is_empty() {
            String::new()
        } else {
            format!(", pairs = {{ {} }}", texts.join(", "))
        }
    }

    /// Operations of kinds that only some cores distinguish, if there are any.
    fn kinds_text(&self) -> String {
        let instructions = self.mix.instructions.max(1) as f64;
        let amounts = OpKind::ALL.map(|kind| self.mix.kind_count(kind) as f64 / instructions);
        let is_written = |kind: OpKind| {
            let divides = matches!(kind.usual(), OpKind::Divide | OpKind::FpDivide);
            kind != kind.usual() && !divides && amounts[kind.index()] > 0.0
        };
        let texts: Vec<_> = OpKind::ALL
            .into_iter()
            .filter(|&kind| is_written(kind))
            .map(|kind| {
                let key = LatencyClass::from_kind(kind).key();
                format!("{key} = {:.6}", amounts[kind.index()])
            })
            .collect();
        if texts.is_empty() {
            String::new()
        } else {
            format!(", kinds = {{ {} }}", texts.join(", "))
        }
    }

    fn write_stretches(&self, out: &mut String) -> std::fmt::Result {
        let all: u64 = self.stretches.iter().map(|mix| mix.instructions).sum();
        if all == 0 {
            return Ok(());
        }
        writeln!(out, "stretches = [ # profile: of 64 instructions")?;
        for mix in &self.stretches {
            writeln!(out, "    {},", stretch_text(mix, all))?;
        }
        writeln!(out, "]")
    }

    /// Share of the missing lines of code that fetching the next line brings along: for a cache of
    /// 32 KiB, or the largest smaller one that misses often enough.
    fn sequential_code(&self) -> f64 {
        const SIZE: usize = 3;
        let (missed, ahead) = (&self.memory.code.misses, &self.memory.code_ahead.0);
        let often = |&size: &usize| self.per_kilo(missed[size]) >= FEW_MPKI;
        let size = (0..=SIZE).rev().find(often);
        size.map_or(0.0, |size| ahead[size] as f64 / missed[size] as f64)
    }

    /// Text of the occupancy of a floating-point scheduler, if any operation passes it.
    fn scheduler_text(&self) -> String {
        let Some(waiting) = self.waiting_fp else {
            return String::new();
        };
        let spread = self
            .fp_spread
            .map_or(String::new(), |spread| format!(", spread = {spread:.4}"));
        format!(
            ", fp_scheduler = {{ waiting = {:.4}{spread} }}",
            waiting.min(1.0)
        )
    }

    /// Divisions of integers and of floating point, if there are any.
    fn divisions_text(&self) -> String {
        let named = ["int_divisions", "fp_divisions"].iter();
        let text = |(name, divisions): (&&str, &DivisionFigures)| {
            let DivisionFigures {
                operations,
                slow,
                lengthening,
            } = divisions;
            let lengthening = format_shares(lengthening);
            let divides = *operations > 0.0;
            let text = format!(
                ", {name} = {{ operations = {operations:.6}, slow = {slow:.4}, lengthening = [{lengthening}] }}"
            );
            divides.then_some(text)
        };
        named.zip(&self.divisions).filter_map(text).collect()
    }

    /// Cycles that loads cost that miss a small cache, if any do.
    fn miss_costs_text(&self) -> String {
        let text = |costs: [f64; 2]| format!(", miss_costs = [{:.3}, {:.3}]", costs[0], costs[1]);
        self.miss_costs.map_or(String::new(), text)
    }

    /// The longest chains by set of latencies and by window, a set per line.
    fn chains_text(&self) -> String {
        let set = |chains: &[[f64; LatencyClass::COUNT]; WINDOWS.len()]| {
            let texts = chains.each_ref().map(chain_text);
            format!("\n    [{}],", texts.join(", "))
        };
        let sets = self.chains.iter().map(set);
        sets.collect::<String>() + "\n"
    }

    /// Cycles until mispredicted branches are resolved, and what changes them.
    fn resolution_text(&self) -> String {
        let names = ["resolution", "gshare_resolution"];
        let each = names.iter().zip(self.resolution);
        let each = each.filter_map(|(name, resolution)| {
            let Resolution {
                cycles,
                absorbed,
                misses,
            } = resolution?;
            let cycles = cycles.clamp(1.0, 1000.0);
            let misses = misses.min(100.0);
            let [half, quarter] = absorbed;
            Some(format!(
                ", {name} = {{ cycles = {cycles:.2}, absorbed = {half:.4}, absorbed_slow = {quarter:.4}, misses = {misses:.4} }}"
            ))
        });
        each.collect()
    }

    /// Writes the mispredictions of each scheme; at most one per branch.
    fn write_branches(&self, out: &mut String, branches: f64) -> std::fmt::Result {
        let sizes = PREDICTOR_KIB.map(|kib| kib as f64);
        let most = 1000.0 * branches;
        let [tagged, gshare] = self.branch_mpki();
        let [tagged_shared, gshare_shared] = self.shared_mpki();
        let renewed = self.mispredictions[1].renewed;
        let growth = -fit_law(&sizes, &tagged).exponent;
        let resolution = self.resolution_text();
        let list = |points: &[f64]| {
            let texts: Vec<_> = { points.iter() }
                .map(|mpki| format!("{:.4}", mpki.min(most)))
                .collect();
            texts.join(", ")
        };
        writeln!(
            out,
            "branch = {{ mpki = {:.4}, capacity_exponent = {:.4}{resolution}, tagged_mpki = [{}], tagged_shared_mpki = [{}], gshare_mpki = [{}], gshare_shared_mpki = [{}], renewed_pki = {:.4}, target_mpki = [{}] }} # profile: predictors of 4 to 64 KiB, tables of 64 to 4096 targets",
            tagged[REFERENCE_PREDICTOR].min(most),
            growth.clamp(0.0, 2.0),
            list(&tagged),
            list(&tagged_shared),
            list(&gshare),
            list(&gshare_shared),
            self.per_kilo(renewed).min(most),
            list(&self.lost_targets.map(|lost| self.per_kilo(lost)))
        )
    }

    /// Share of the long misses that prefetching removes; of the misses of 256 KiB if there are too
    /// few long ones.
    fn prefetch_effectiveness(&self) -> f64 {
        if self.per_kilo(self.memory.long_misses) < FEW_MPKI {
            return self.memory.near_effectiveness;
        }
        self.memory.prefetch_effectiveness
    }

    /// Lines prefetched in vain per long miss; 0 if there are too few long misses.
    fn prefetch_excess(&self) -> f64 {
        if self.per_kilo(self.memory.long_misses) < FEW_MPKI {
            return 0.0;
        }
        self.memory.prefetch_excess.min(MOST_EXCESS)
    }

    /// Misses per kilo-instruction from 8 KiB on.
    fn curve_text(&self, misses: &[u64]) -> String {
        let points = misses[CURVE_START..CAPACITIES.len()].iter();
        let texts: Vec<_> = points
            .map(|&count| format!("{:.4}", self.per_kilo(count).min(1000.0)))
            .collect();
        texts.join(", ")
    }
}

/// Text of the operations on a chain by class.
fn chain_text(chain: &[f64; LatencyClass::COUNT]) -> String {
    // Classes that are on few chains appear if they are on this one.
    let always = LatencyClass::Fp.index();
    let each = LatencyClass::ALL.iter().zip(chain);
    let shown = each.filter(|&(class, &amount)| amount > 0.00005 || class.index() <= always);
    let texts: Vec<_> = shown
        .map(|(class, amount)| format!("{} = {amount:.4}", class.key()))
        .collect();
    format!("{{ {} }}", texts.join(", "))
}

/// Text of the mix of some stretches among `all` instructions of stretches.
fn stretch_text(mix: &InstructionCounts, all: u64) -> String {
    let instructions = mix.instructions.max(1) as f64;
    let of = |kind: OpKind| mix.share(|it| it.usual() == kind);
    let (multiply, moves) = (of(OpKind::Multiply), of(OpKind::VectorMove));
    let fp = mix.share(OpKind::is_floating);
    let vector = of(OpKind::Vector) + moves;
    let (load, store, branch) = (of(OpKind::Load), of(OpKind::Store), of(OpKind::Branch));
    let int = (1.0 - fp - vector - load - store - branch).max(0.0);
    format!(
        "{{ share = {:.6}, operations = {:.4}, taken = {:.4}, mix = {{ fp = {fp:.6}, vector = {vector:.6}, int = {int:.6}, load = {load:.6}, store = {store:.6}, branch = {branch:.6} }}, multiply = {:.6}, moves = {:.6} }}",
        mix.instructions as f64 / all as f64,
        (mix.operation_count() as f64 / instructions).clamp(1.0, 16.0),
        (mix.taken as f64 / instructions).min(1.0),
        multiply.min(int),
        moves.min(vector),
    )
}

/// Parallelism in windows of growing size: at least `least`, and no less than in a smaller window.
fn format_rising(found: &[f64], least: f64) -> String {
    let each = found.iter().scan(least, |most, &found| {
        *most = most.max(found);
        Some(format!("{most:.4}"))
    });
    each.collect::<Vec<_>>().join(", ")
}

fn format_shares(shares: &[f64]) -> String {
    let texts: Vec<_> = shares.iter().map(|share| format!("{share:.4}")).collect();
    texts.join(", ")
}

impl ProgramProfile {
    /// The program file.
    #[must_use]
    pub fn to_program_file(&self, reported: &ProgramFileHeader) -> String {
        let mut out = header_text(reported, self.sampling, &self.error_text());
        let whole = std::slice::from_ref(&self.figures);
        let phases = if self.phases.is_empty() {
            whole
        } else {
            &self.phases
        };
        let length = self.length(reported.executed);
        for (number, phase) in phases.iter().enumerate() {
            let share = self.phase_shares.get(number).unwrap_or(&1.0);
            // Writing to a string does not fail.
            let _ = phase.write_phase(&mut out, length * share);
        }
        out += &format!(
            "\n# System calls: {}, {:.3} per 10^6 instructions; what the kernel does in them is not seen.\n",
            self.system_calls,
            self.system_calls_per_million(reported.executed)
        );
        if let Some(end) = reported.end {
            out += &format!("# Note: {end}.\n");
        }
        out += &self
            .threads
            .as_ref()
            .map_or_else(String::new, ThreadRelations::to_text);
        out
    }

    /// System calls per million of `executed` instructions.
    #[must_use]
    pub fn system_calls_per_million(&self, executed: u64) -> f64 {
        1e6 * self.system_calls as f64 / executed.max(1) as f64
    }

    /// Instructions of one thread in a run in which all threads execute `executed`.
    fn length(&self, executed: u64) -> f64 {
        let several = self.threads.as_ref().filter(|t| t.at_once >= 2);
        several.map_or(executed as f64, ThreadRelations::length)
    }

    /// Text of the uncertainty that sampling leaves, as part of a sentence.
    fn error_text(&self) -> String {
        let main = |figures: &ExecutionFigures| {
            let (shares, data) = (figures.shares(), &figures.memory.data.misses);
            let misses = |size: usize| figures.per_kilo(data[size]);
            let branch = figures.misprediction_mpki();
            vec![
                shares.load,
                shares.branch,
                figures.ilp[3],
                branch,
                misses(3),
                misses(8),
            ]
        };
        let Some(errors) = self.errors(main) else {
            return String::new();
        };
        format!(
            "; 95 percent intervals over {} windows: loads ±{:.4}, branches ±{:.4}, ILP in 128 ±{:.3}, mispredictions ±{:.3}, data misses at 32 KiB ±{:.3} and at 1 MiB ±{:.3} per 1000",
            self.intervals.len(),
            errors[0],
            errors[1],
            errors[2],
            errors[3],
            errors[4],
            errors[5]
        )
    }
}

fn header_text(
    reported: &ProgramFileHeader,
    sampling: Option<TraceSampling>,
    errors: &str,
) -> String {
    let how = match sampling {
        None => "every instruction; data flow and use distances in one stretch of 65,536 of 16"
            .to_owned(),
        Some(s) => format!(
            "windows of {} instructions every {}, each behind {} that warm caches; figures beyond what these fill are low",
            s.window, s.every, s.warm
        ),
    };
    format!(
        "name = {}\ntitle = {}\nsuite = \"profiled\"\n\n[sources]\nprofile = {}\n",
        quote_toml(&sanitize_name(reported.name)),
        quote_toml(reported.command),
        quote_toml(&format!(
            "consort profile, user mode, all threads: {how}{errors}"
        )),
    )
}

/// The name with all characters replaced that workloads cannot have.
#[must_use]
pub fn sanitize_name(name: &str) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let plain: String = name
        .chars()
        .map(|c| if kept(c) { c } else { '_' })
        .collect();
    if plain.is_empty() {
        "program".to_owned()
    } else {
        plain
    }
}

/// A TOML basic string.
fn quote_toml(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => " ".to_owned(),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ProgramProfiler;
    use crate::recorder::{ExecutionSink, RecordedPart};
    use consort_ops::{Access, Op, OpKind, Register};

    /// A loop that adds up an array of `bytes` bytes again and again.
    fn sums(bytes: u64) -> ProgramProfile {
        let mut profiler = ProgramProfiler::new(RecordedPart::default(), false);
        for i in 0..200_000 {
            let mut load = Op::new(OpKind::Load, 0x1000);
            load.targets[0] = Some(Register::general(1));
            load.data = Some(Access {
                address: 0x10_0000 + i * 64 % bytes,
                bytes: 8,
                is_vector: false,
            });
            let mut add = Op::new(OpKind::Integer, 0x1004);
            add.sources = [
                Some(Register::general(1)),
                Some(Register::general(2)),
                None,
                None,
            ];
            add.targets[0] = Some(Register::general(2));
            profiler.record_op(0, &load);
            profiler.record_op(0, &add);
        }
        profiler.finish_profile()
    }

    #[test]
    fn figures_of_a_known_program_are_right() {
        let profile = sums(1 << 18).figures;
        let shares = profile.shares();
        assert_eq!((shares.load, shares.int), (0.5, 0.5));
        // One line per two instructions, again after 256 KiB.
        assert!((profile.per_kilo(profile.memory.data.misses[5]) - 500.0).abs() < 1.0);
        assert!(profile.per_kilo(profile.memory.data.misses[6]) < 11.0);
        // The sum is a chain; each step adds two instructions.
        assert!(
            profile.ilp.iter().all(|ilp| (ilp - 2.0).abs() < 0.01),
            "{:?}",
            profile.ilp
        );
        assert!((profile.use_distance - 1.5).abs() < 1e-3);
    }

    #[test]
    fn chains_have_the_classes_of_program_files() {
        let known = consort_sim::program::ChainSpec::default().classes();
        let known = known.map(|(key, _, cycles)| (key, cycles as u64));
        let here = LatencyClass::ALL.map(|class| (class.key(), class.reference_cycles()));
        assert_eq!(here, known);
    }

    #[test]
    fn pairs_have_the_keys_of_program_files() {
        let known = consort_sim::program::PairsSpec::default().pairs();
        let keys = FusedPair::ALL.map(FusedPair::key);
        assert_eq!(keys, known.map(|(_, key, _)| key));
    }

    /// Instructions that each load four lines of new memory.
    fn string_moves() -> ProgramProfile {
        let mut profiler = ProgramProfiler::new(RecordedPart::default(), false);
        for i in 0..200_000 {
            let mut load = Op::new(OpKind::Load, 0x1000);
            load.first = i % 4 == 0;
            load.data = Some(Access {
                address: i * 64,
                bytes: 8,
                is_vector: false,
            });
            profiler.record_op(0, &load);
        }
        profiler.finish_profile()
    }

    #[test]
    fn simulator_accepts_the_file() {
        let reported = ProgramFileHeader {
            name: "a program*",
            command: "a \"b\" \\c\n",
            executed: 400_000,
            end: Some("the program ended with status 3"),
        };
        for profile in [
            sums(1 << 18),
            string_moves(),
            ProgramProfiler::new(RecordedPart::default(), false).finish_profile(),
        ] {
            let text = profile.to_program_file(&reported);
            let spec = consort_sim::program::parse("x.toml", &text);
            assert!(spec.is_ok(), "{spec:?}\n{text}");
            assert!(text.contains("# Note: the program ended with status 3.\n"));
            assert_eq!(spec.unwrap().name, "a_program_");
        }
    }
}
