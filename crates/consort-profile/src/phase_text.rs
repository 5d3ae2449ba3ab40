//! A phase of a program file, from figures.

use std::fmt::Write;

use consort_ops::{FusedPair, LatencyClass, OpKind};

use crate::figures::{
    DivisionFigures, ExecutionFigures, InstructionShares, REFERENCE_PREDICTOR, fit_law,
};
use crate::measure::{
    CAPACITIES, FEW_MPKI, InstructionCounts, PREDICTOR_KIB, Resolution, SetMisses, WINDOWS,
};

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

impl ExecutionFigures {
    /// Writes a phase of so many instructions.
    pub(crate) fn write_phase(&self, out: &mut String, length_instr: f64) -> std::fmt::Result {
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
            "ilp = {{ a = {:.4}, b = {:.4}, use_distance = {:.3}, unevenness = {:.4}, wide_unevenness = {:.4}, measured = [{}], uses = [{}], load_uses = [{}], waiting = {:.4}{}{}{}, chain = {}, chains = [{}] }} # profile: windows of 16 to 1024, the law within {:.0} percent; longest chain in 128",
            ilp.factor.clamp(LEAST_ILP, 100.0),
            ilp.exponent.clamp(0.0, 1.0),
            self.use_distance.clamp(0.1, 1000.0),
            self.unevenness[0],
            self.unevenness[1],
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
        let curve = |all: &[u64], sets: &[SetMisses; 2]| {
            let [four, eight] = sets.each_ref().map(|sets| self.sets_text(all, sets));
            format!("{{ four_ways = [{four}], eight_ways = [{eight}] }}")
        };
        let none = [0; CAPACITIES.len()];
        writeln!(
            out,
            "data_conflicts = {} # profile: 8 KiB to 2 MiB\ninstruction_conflicts = {} # profile\nnext_lines = {{ missed = {}, late = {} }} # profile",
            curve(&memory.data.misses, &memory.data_sets),
            curve(&memory.code.misses, &memory.code_sets),
            curve(&none, &memory.code_sets_ahead),
            curve(&none, &memory.late_code_sets),
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
        )?;
        let pages = memory.page_misses.map(|misses| self.per_kilo(misses));
        writeln!(
            out,
            "page_mpki = [{}] # profile: loads, 16 to 2048 pages",
            format_shares(&pages.map(|mpki| mpki.min(1000.0)))
        )
    }

    fn write_code(&self, out: &mut String) -> std::fmt::Result {
        let instructions = self.mix.instructions.max(1) as f64;
        let per_instruction = |count: u64| count as f64 / instructions;
        writeln!(
            out,
            "code = {{ operations = {:.4}, taken = {:.4}, direct = {:.4}, bytes = {:.3}, sequential = {:.4}, vector_accesses = {:.4}{}{}{} }} # profile",
            per_instruction(self.mix.operation_count()).clamp(1.0, 16.0),
            per_instruction(self.mix.taken).min(1.0),
            self.mix.direct as f64 / self.mix.taken.max(1) as f64,
            per_instruction(self.mix.code_bytes).clamp(1.0, 16.0),
            self.sequential_code(),
            self.mix.vector_access_share(),
            self.turns_text(),
            self.kinds_text(),
            self.pairs_text(),
        )
    }

    /// Turns of fetch, if there are any.
    fn turns_text(&self) -> String {
        let text = |turns: [f64; 4]| format!(", turns = [{}]", format_shares(&turns));
        self.fetch_turns.map_or(String::new(), text)
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
        let text = |[[near, far], [wide_near, wide_far]]: [[f64; 2]; 2]| {
            format!(
                ", miss_costs = [{near:.3}, {far:.3}], wide_miss_costs = [{wide_near:.3}, {wide_far:.3}]"
            )
        };
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

    /// Lines per kilo-instruction in caches of sets beyond `all`, from 8 KiB on.
    fn sets_text(&self, all: &[u64], sets: &SetMisses) -> String {
        let pairs = all[CURVE_START..].iter().zip(sets);
        let more = pairs.map(|(all, sets)| self.per_kilo(sets.saturating_sub(*all)).min(1000.0));
        format_shares(&more.collect::<Vec<_>>())
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
