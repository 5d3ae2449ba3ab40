//! Pairs of programs: M2, M3, M5, M8, M9, M10 and M12.
//!
//! Keys. Table `headline`: rows `PROGRAM, MAPPING over os` and `PROGRAM, MAPPING, MEASURE`; M9 puts
//! `A+B, ` before them. Tables `pair` and `transactions`: rows `PROGRAM/MAPPING` and, in M8,
//! `PROGRAM/alone`. Table `attribution`: rows programs; all columns are summands of the natural
//! logarithm of the ratio of times, in percent: `time` is `cycles` and `utilisation` together,
//! `cycles` are the resources and `other`. M9: table `times`, rows `A+B/PROGRAM/MAPPING`, and a
//! figure for each pair, `A-B`.

use super::measures::{
    BRANCH_CYCLES, BRANCHES, CYCLES, KINDS, L1D, L2, LATENCY, MappingMeasure, PREFETCHED, TIMES,
    TRANSACTIONS, UTILISATION,
};
use super::{MAPPINGS, PairRuns, ProgramNamePair, not_modelled};
use crate::frame::interval_cell;
use crate::studies::output::OutputBuilder;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::mapping::analysis::{Attribution, SharedResource, attribute};
use consort_core::stats::RatioInterval;
use consort_data::Cell;
use consort_experiment::ExperimentContext;
use consort_experiment::mapping::OS;

/// A study of one pair, in which a table shows all measures.
pub(in crate::studies) struct PairStudy {
    pair: ProgramNamePair,
    mappings: &'static [&'static str],
    measures: &'static [MappingMeasure],
    /// Measures that the source's chart shows in addition to times.
    headline: &'static [MappingMeasure],
    /// The change of mapping, from one to the other, whose parts are shown.
    change: Option<[&'static str; 2]>,
    /// Measures that have a figure.
    figures: &'static [MappingMeasure],
}

/// M2: x264 with streamcluster, programs interleaved or spread.
pub(in crate::studies) const M2: PairStudy = PairStudy {
    pair: ["streamcluster", "x264"],
    mappings: &["os", "int", "spr"],
    measures: &[
        CYCLES,
        L1D,
        L2,
        LATENCY,
        PREFETCHED,
        TRANSACTIONS,
        UTILISATION,
    ],
    headline: &[L2, PREFETCHED, TRANSACTIONS],
    change: Some(["int", "spr"]),
    figures: &[L2, PREFETCHED],
};

/// M3: branch misses of streamcluster with swaptions.
pub(in crate::studies) const M3: PairStudy = PairStudy {
    pair: ["streamcluster", "swaptions"],
    mappings: &MAPPINGS,
    measures: &[BRANCHES, BRANCH_CYCLES, CYCLES, UTILISATION],
    headline: &[BRANCHES, BRANCH_CYCLES],
    change: None,
    figures: &[BRANCHES, BRANCH_CYCLES],
};

/// M5: streamcluster with facesim: two programs that both need much bandwidth.
pub(in crate::studies) const M5: PairStudy = PairStudy {
    pair: ["facesim", "streamcluster"],
    mappings: &MAPPINGS,
    measures: &[CYCLES, L2, LATENCY, TRANSACTIONS, UTILISATION],
    headline: &[LATENCY, UTILISATION],
    change: Some(["iso", "spr"]),
    figures: &[LATENCY, UTILISATION],
};

/// M10: streamcluster with blackscholes, isolated or interleaved.
pub(in crate::studies) const M10: PairStudy = PairStudy {
    pair: ["streamcluster", "blackscholes"],
    mappings: &["os", "iso", "int"],
    measures: &[
        CYCLES,
        L1D,
        L2,
        LATENCY,
        PREFETCHED,
        TRANSACTIONS,
        UTILISATION,
    ],
    headline: &[CYCLES, L2, LATENCY, UTILISATION],
    change: Some(["iso", "int"]),
    figures: &[],
};

/// M12: bodytrack with streamcluster: much input and output with much bandwidth.
pub(in crate::studies) const M12: PairStudy = PairStudy {
    pair: ["streamcluster", "bodytrack"],
    mappings: &MAPPINGS,
    measures: &[CYCLES, L1D, L2, LATENCY, TRANSACTIONS, UTILISATION],
    headline: &[CYCLES, UTILISATION],
    change: Some(["iso", "int"]),
    figures: &[UTILISATION, LATENCY],
};

/// A program of a pair under a mapping, or alone if there is none.
#[derive(Clone, Copy)]
struct PairRow {
    pair: ProgramNamePair,
    place: usize,
    mapping: Option<&'static str>,
}

/// Rows of a pair: both programs under each of these mappings.
fn pair_rows(
    pair: ProgramNamePair,
    mappings: impl IntoIterator<Item = Option<&'static str>> + Clone,
) -> Vec<PairRow> {
    let mut rows = Vec::new();
    for place in 0..pair.len() {
        rows.extend({ mappings.clone().into_iter() }.map(|mapping| PairRow {
            pair,
            place,
            mapping,
        }));
    }
    rows
}

impl PairRow {
    fn program(&self) -> &'static str {
        self.pair[self.place]
    }

    fn mapping(&self) -> &'static str {
        self.mapping.unwrap_or("alone")
    }

    fn key(&self) -> String {
        format!("{}/{}", self.program(), self.mapping())
    }

    fn cell(&self, runs: &PairRuns, measure: MappingMeasure) -> Cell {
        match self.mapping {
            Some(mapping) => runs.cell(self.pair, self.place, mapping, measure.value),
            None => runs.value_alone(self.program(), measure.value),
        }
    }

    /// Speed over `os`.
    fn speed(&self, runs: &PairRuns) -> Cell {
        match self.mapping {
            Some(mapping) => runs.speed(self.pair, self.place, mapping),
            None => Cell::missing("the program is alone"),
        }
    }
}

/// Bars of several measures of one unit: a group for each row, a series for each measure.
fn stack_measures(
    output: &mut OutputBuilder<'_>,
    key: &str,
    runs: &PairRuns,
    rows: &[PairRow],
    measures: &[MappingMeasure],
) -> Result<(), StudyError> {
    let series = measures.iter().map(|measure| {
        let cells = rows.iter().map(|row| row.cell(runs, *measure));
        (measure.title, cells.collect())
    });
    output.bars(key, rows.iter().map(PairRow::key), series)
}

/// Speeds of both programs of a pair over `os`, in words, and the two taken together.
fn speeds_note(runs: &PairRuns, pair: ProgramNamePair, mappings: &[&str]) -> String {
    let others = mappings.iter().filter(|mapping| **mapping != OS);
    let texts = others.map(|mapping| {
        let [a, b] = [0, 1].map(|place| runs.speed(pair, place, mapping).text());
        let both = RatioInterval::from_ratios(&runs.gains(pair, mapping));
        let both = both.map_or_else(String::new, |both| Cell::from(both).text());
        let [first, second] = pair;
        format!("{mapping} {first} {a}, {second} {b}, both {both}")
    });
    let texts: Vec<String> = texts.collect();
    format!("Speed over os: {}.", texts.join("; "))
}

impl PairStudy {
    /// Runs the study.
    pub(in crate::studies) fn run(
        &self,
        context: &ExperimentContext<'_>,
        file: &StudyFile,
    ) -> Result<StudyOutput, StudyError> {
        let runs = PairRuns::get_or_run(context)?;
        let mut output = OutputBuilder::new(file, runs.seeds)?;
        let rows = pair_rows(
            self.pair,
            self.mappings.iter().map(|mapping| Some(*mapping)),
        );
        for row in rows.iter().filter(|row| row.mapping() != OS) {
            let key = format!("{}, {} over os", row.program(), row.mapping());
            output.headline_gain(&key, row.speed(&runs))?;
        }
        for measure in self.headline {
            for row in &rows {
                let (program, mapping, title) = (row.program(), row.mapping(), measure.title);
                let cell = row.cell(&runs, *measure);
                output.headline(format!("{program}, {mapping}, {title}"), measure.unit, cell)?;
            }
        }
        let cells = rows.iter().map(|row| {
            let measures = self
                .measures
                .iter()
                .map(|measure| row.cell(&runs, *measure));
            (
                row.key(),
                std::iter::once(row.speed(&runs)).chain(measures).collect(),
            )
        });
        output.table("pair", cells)?;

        let others = MAPPINGS.into_iter().filter(|mapping| *mapping != OS);
        let speeds = others.map(|mapping| {
            let cells = [0, 1].map(|place| runs.speed(self.pair, place, mapping));
            (mapping, cells.to_vec())
        });
        output.bars("speed", self.pair, speeds)?;
        for measure in self.figures {
            let series = self.mappings.iter().map(|mapping| {
                let cell = |place| runs.cell(self.pair, place, mapping, measure.value);
                (*mapping, [0, 1].map(cell).to_vec())
            });
            output.bars(measure.key, self.pair, series)?;
        }
        if let Some([from, to]) = self.change {
            self.attribute_change(&mut output, &runs, from, to)?;
        }
        output.note(speeds_note(&runs, self.pair, self.mappings));
        let mut output = runs.finish(output);
        output.notes.extend(file.mechanism.clone());
        Ok(output)
    }

    /// Adds table and figure of the change of time from one mapping to another, by resource.
    fn attribute_change(
        &self,
        output: &mut OutputBuilder<'_>,
        runs: &PairRuns,
        from: &str,
        to: &str,
    ) -> Result<(), StudyError> {
        // Resources whose stall cycles the simulation counts.
        const RESOURCES: [SharedResource; 6] = [
            SharedResource::L1d,
            SharedResource::L1i,
            SharedResource::L2,
            SharedResource::MemoryPath,
            SharedResource::BranchPredictor,
            SharedResource::Tlb,
        ];
        let mut names = vec!["utilisation"];
        names.extend(RESOURCES.map(SharedResource::name));
        names.push("other cycles");
        let (mut rows, mut parts_of) = (Vec::new(), Vec::new());
        for (place, program) in self.pair.into_iter().enumerate() {
            let both = runs
                .both(self.pair, from)
                .iter()
                .zip(runs.both(self.pair, to));
            let found = both.filter_map(|(from, to)| {
                attribute(&runs.usage(&from[place]), &runs.usage(&to[place]))
            });
            let found: Vec<Attribution> = found.collect();
            let over_seeds = |value: &dyn Fn(&Attribution) -> f64| {
                interval_cell(&found.iter().map(|a| 100.0 * value(a)).collect::<Vec<_>>())
            };
            let mut parts = vec![over_seeds(&|a| a.utilisation)];
            for resource in RESOURCES {
                let part = |a: &Attribution| a.resources.get(&resource).copied().unwrap_or(0.0);
                parts.push(over_seeds(&part));
            }
            parts.push(over_seeds(&|a| a.other_cycles));
            let mut cells = vec![over_seeds(&|a| a.time), over_seeds(&|a| a.cycles)];
            cells.extend(parts.clone());
            rows.push((program, cells));
            parts_of.push(parts);
        }
        output.table("attribution", rows)?;
        let series = names.into_iter().enumerate().map(|(n, name)| {
            let cells = parts_of.iter().map(|parts: &Vec<Cell>| parts[n].clone());
            (name, cells.collect())
        });
        output.bars("attribution", self.pair, series)
    }
}

/// M8: canneal with fluidanimate, memory transactions by kind, together and alone.
pub(crate) fn m8(runs: &PairRuns, output: &mut OutputBuilder<'_>) -> Result<(), StudyError> {
    let pair = ["canneal", "fluidanimate"];
    let rows = pair_rows(pair, std::iter::once(None).chain(MAPPINGS.map(Some)));
    for row in &rows {
        for kind in KINDS.into_iter().chain([TRANSACTIONS]) {
            let key = format!("{}, {}, {}", row.program(), row.mapping(), kind.title);
            output.headline(key, kind.unit, row.cell(runs, kind))?;
        }
    }
    let cells = rows.iter().map(|row| {
        let shown = KINDS.into_iter().chain([TRANSACTIONS, LATENCY]);
        let cells = shown.map(|measure| row.cell(runs, measure));
        (row.key(), cells.chain([row.speed(runs)]).collect())
    });
    output.table("transactions", cells)?;
    stack_measures(output, "transactions", runs, &rows, &KINDS)?;
    output.note(speeds_note(runs, pair, &MAPPINGS));
    output.note(not_modelled());
    Ok(())
}

/// M9: where the time of threads goes, for four pairs of programs.
pub(crate) fn m9(runs: &PairRuns, output: &mut OutputBuilder<'_>) -> Result<(), StudyError> {
    const PAIRS: [ProgramNamePair; 4] = [
        ["facesim", "streamcluster"],
        ["canneal", "fluidanimate"],
        ["streamcluster", "bodytrack"],
        ["bodytrack", "vips"],
    ];
    let rows = PAIRS.map(|pair| pair_rows(pair, MAPPINGS.map(Some)));
    for measure in std::iter::once(UTILISATION).chain(TIMES) {
        for row in rows.iter().flatten() {
            let (both, title) = (row.pair.join("+"), measure.title);
            let key = format!("{both}, {}, {}, {title}", row.program(), row.mapping());
            output.headline(key, measure.unit, row.cell(runs, measure))?;
        }
    }
    let cells = rows.iter().flatten().map(|row| {
        let shown = TIMES.into_iter().chain([UTILISATION]);
        let cells = shown.map(|measure| row.cell(runs, measure)).collect();
        (format!("{}/{}", row.pair.join("+"), row.key()), cells)
    });
    output.table("times", cells)?;
    for (pair, rows) in PAIRS.into_iter().zip(&rows) {
        stack_measures(output, &pair.join("-"), runs, rows, &TIMES)?;
        let speeds = speeds_note(runs, pair, &MAPPINGS);
        output.note(format!("{}. {speeds}", pair.join(" with ")));
    }
    Ok(())
}
