//! H4: speedup over the gang. H5: power per thread. H6: reduction of energy and energy-delay.
//!
//! Keys. Rows of tables are schedulers with their options, those of `programs` and `power` are
//! programs, whose columns are schedulers by name in the titles. H4: `coscheduled` is a geometric
//! mean over the programs that share their slot, `suite` over all; table `runs` has whole runs from
//! the first sample on over the gang's; rows of `readings` are `fair-mis/READING` and
//! `fair-com/READING`. H6: a reduction is 1 less the mean over programs of a value over the gang's,
//! per unit of work; below 0 is a loss.

use super::entrants::{BOUND, FAIR, GANG, MAIN, ORACLE, READING_NAMES, READINGS, SOURCES};
use super::grid::{
    CoscheduleGrid, CoschedulingRuns, MeanScope, SCOPES, SlotMeasures, SlotValue, by_scope, energy,
    energy_delay, local_speedup, main_texts, name, power_per_thread, scheduler_rows,
};
use crate::frame::{interval_cell, mean_ratio_cell};
use crate::studies::output::{OutputBuilder, join};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput, TemplateWords};
use consort_core::stats::ConfidenceInterval;
use consort_data::Cell;
use consort_experiment::ExperimentContext;

/// H4.
pub(crate) fn h4(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let grid = CoscheduleGrid::get_or_run(context)?;
    let whole = CoschedulingRuns::make(&grid, context)?;
    let mut output = OutputBuilder::new(file, grid.runs())?;
    let over = |entrant, scope| grid.ratio_over(entrant, scope, local_speedup);
    let speedup = |entrant, id| mean_ratio_cell(&grid.values(entrant, id, local_speedup));

    for (group, _, scope) in SCOPES {
        for entrant in SOURCES.chain([BOUND]) {
            let row = format!("{} over gang, {group}", name(entrant));
            output.headline_gain(&row, over(entrant, scope))?;
        }
    }
    let rows = scheduler_rows(|entrant| {
        vec![
            over(entrant, MeanScope::Sharing),
            over(entrant, MeanScope::All),
            grid.mean_over(entrant, MeanScope::All, local_speedup),
        ]
    });
    output.table("speedup", rows)?;
    let words = TemplateWords::from([("alone_s".to_owned(), whole.alone_s.to_string())]);
    let rows = MAIN.map(|entrant| {
        let cells = vec![
            whole.over_gang(entrant, |run| run.stp),
            whole.over_gang(entrant, |run| run.antt),
            whole.over_gang(entrant, |run| run.makespan_s),
        ];
        (name(entrant), cells)
    });
    output.push_table(file.fill_table_with_words("runs", &words, rows)?);
    output.table("programs", grid.by_program(&MAIN, speedup))?;
    let mut rows = Vec::new();
    for readings in READINGS {
        for (reading, entrant) in READING_NAMES.into_iter().zip(readings) {
            let cells = vec![
                over(entrant, MeanScope::All),
                over(entrant, MeanScope::Sharing),
                grid.outcomes(entrant, |o| o.overall),
                grid.outcomes(entrant, |o| o.quanta as f64),
            ];
            rows.push((format!("{}/{reading}", name(readings[0])), cells));
        }
    }
    output.table("readings", rows)?;
    output.bars("speedup", SCOPES.map(|(_, group, _)| group), by_scope(over))?;
    output.bars(
        "programs",
        grid.programs(),
        grid.by_scheduler(MAIN, speedup),
    )?;

    let speedups = join(MAIN, |entrant| {
        let [all, sharing] = [MeanScope::All, MeanScope::Sharing].map(|s| over(entrant, s).text());
        format!("{} {all} ({sharing})", name(entrant))
    });
    output.note(format!(
        "Speedup of the whole suite over the gang, and of the programs that share: {speedups}. \
         Time that finding a round takes is not in it: H2 says how many quanta that is."
    ));
    let gain = |entrant| Some(over(entrant, MeanScope::All).value()? - 1.0);
    let shares = join(FAIR, |entrant| {
        let gains = gain(entrant).zip(gain(ORACLE));
        let share = gains.map_or_else(
            || "nothing".to_owned(),
            |(own, oracle)| format!("{:.0} percent", 100.0 * own / oracle),
        );
        format!("{} {share}", name(entrant))
    });
    output.note(format!(
        "Of what oracle-coschedule gains for the whole suite the fair schedulers reach: {shares}. \
         It shares no slot with programs that scale nearly linearly and lets nobody be worse off \
         in energy-delay than in the gang, as they do; members=all is the best without either, a \
         bound."
    ));
    output.note(format!(
        "Throughput of whole runs over the gang's ({} runs of {} s of work per program): {}. \
         Samples and trials are in it, in which one program or one slot runs while all others \
         wait, and the policies decide by counters with read noise that take turns.",
        whole.runs,
        whole.alone_s,
        main_texts(|entrant| whole.over_gang(entrant, |run| run.stp)),
    ));
    let readings = READINGS.map(|readings| {
        let texts = join(
            READING_NAMES.into_iter().zip(readings),
            |(reading, entrant)| {
                format!("{reading} {}", grid.outcomes(entrant, |o| o.overall).text())
            },
        );
        format!("{}: {texts}", name(readings[0]))
    });
    output.note(format!(
        "Overall energy-delay over the gang's by reading: {}. As printed the secondary condition \
         refuses a core where the whole chip gains nearly as much as a linear taker alone would, \
         and lets gains near nothing pass, which the overall energy-delay then judges. Reversed it \
         asks that the chip's instructions rise by nearly 1/N, while the giver loses by the same \
         move. Where the first three give the same, the condition decided about no transfer. slot: \
         a newcomer stays where every member is better off than without it, not only than in the \
         gang.",
        readings.join("; "),
    ));
    for entrant in FAIR {
        output.note(grid.slower_programs_note(entrant));
    }
    Ok(output.finish())
}

/// H5.
pub(crate) fn h5(grid: &CoscheduleGrid, output: &mut OutputBuilder<'_>) -> Result<(), StudyError> {
    let power = |entrant, id| interval_cell(&grid.values(entrant, id, power_per_thread));
    // Over that in the gang, in which the program has every core.
    let relative = |place: &SlotMeasures<'_>| {
        let gang = place.gang.power_w() / f64::from(place.gang.cores);
        power_per_thread(place) / gang
    };
    let over = |entrant, scope| grid.ratio_over(entrant, scope, relative);
    let with_gang = std::iter::once(GANG).chain(MAIN);

    for entrant in std::iter::once(GANG).chain(SOURCES) {
        let mean = grid.mean_over(entrant, MeanScope::All, power_per_thread);
        output.headline(format!("{}, mean", name(entrant)), "W per thread", mean)?;
    }
    for (group, _, scope) in SCOPES {
        for entrant in SOURCES {
            let row = format!("{} over gang, {group}", name(entrant));
            output.headline_gain(&row, over(entrant, scope))?;
        }
    }
    output.table("power", grid.by_program(&with_gang, power))?;
    let scopes = [MeanScope::Sharing, MeanScope::All];
    let rows = scheduler_rows(|entrant| scopes.map(|scope| over(entrant, scope)).into());
    output.table("means", rows)?;
    output.bars(
        "power",
        grid.programs(),
        grid.by_scheduler(with_gang, power),
    )?;
    output.note(format!(
        "Power per thread of programs that share, over that in the gang: {}.",
        main_texts(|entrant| over(entrant, MeanScope::Sharing)),
    ));
    output.note(
        "In the gang a program pays for the whole uncore, 164 W over eight threads, whatever its \
         threads do. In a slot it pays by the time of its threads on cores. So the power per \
         thread falls where threads often wait (serial sections, pipelines), beside others that \
         keep their cores busy; it rises for these, who carry more of the uncore. On average it \
         rises, since fewer threads wait less: they do more, and what falls is energy per work \
         (H6).",
    );
    Ok(())
}

/// H6.
pub(crate) fn h6(grid: &CoscheduleGrid, output: &mut OutputBuilder<'_>) -> Result<(), StudyError> {
    // In the source's words, which are also the keys of figures.
    let reduced: [(&str, SlotValue); 2] = [("energy", energy), ("energy-delay", energy_delay)];

    for (what, value) in reduced {
        for (group, _, scope) in SCOPES {
            for entrant in SOURCES.chain([BOUND]) {
                let row = format!("{} over gang, reduction of {what}, {group}", name(entrant));
                let cell = match grid.reduction(entrant, scope, value) {
                    Cell::Interval(share) => Cell::Interval(ConfidenceInterval {
                        mean: 100.0 * share.mean,
                        ci95: share.ci95.map(|half| 100.0 * half),
                        ..share
                    }),
                    other => other,
                };
                output.headline(row, "percent", cell)?;
            }
        }
    }
    // The abstract's two figures, which stand for the fair scheduler that it recommends.
    let [energy_over, delay_over] = [energy as SlotValue, energy_delay].map(|value| {
        let reduction = grid.reduction(FAIR[1], MeanScope::Sharing, value).value();
        reduction.map(|share| 1.0 - share)
    });
    let absent = || Cell::missing("no program shares its slot");
    let percent = energy_over.map_or_else(absent, |over| (100.0 * (over - 1.0)).into());
    output.headline("energy, co-scheduling over gang", "percent", percent)?;
    let factor = delay_over.map_or_else(absent, |over| over.recip().into());
    output.headline("energy-delay, gang over co-scheduling", "ratio", factor)?;
    let rows = scheduler_rows(|entrant| {
        let mut cells = Vec::new();
        for (_, value) in reduced {
            for scope in [MeanScope::Sharing, MeanScope::All] {
                cells.push(grid.reduction(entrant, scope, value));
            }
        }
        cells
    });
    output.table("reduction", rows)?;
    let ratio = |entrant, id| mean_ratio_cell(&grid.values(entrant, id, energy_delay));
    output.table("programs", grid.by_program(&MAIN, ratio))?;
    for (key, value) in reduced {
        let series = by_scope(|entrant, scope| grid.reduction(entrant, scope, value));
        output.bars(key, SCOPES.map(|(_, group, _)| group), series)?;
    }
    let all = |value| main_texts(|entrant| grid.reduction(entrant, MeanScope::All, value));
    output.note(format!(
        "Reduction of energy for the whole suite: {}.",
        all(energy as SlotValue)
    ));
    output.note(format!("Reduction of energy-delay: {}.", all(energy_delay)));
    output.note(
        "164 W of the machine's are drawn whoever runs, and a slot of several shares them: that is \
         where the energy is saved. Delay falls where programs use fewer cores better than more.",
    );
    Ok(())
}
