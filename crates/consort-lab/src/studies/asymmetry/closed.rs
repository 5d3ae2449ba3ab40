//! The closed form of round robin over threads that stay where they were dealt.
//!
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015), ideal model for HRRS ([`super::ideal`]).
//!
//! N equal threads with the work W on one large and N - 1 small cores are done after N·W/(L + (N-1)·S)
//! under round robin, and after W/S where each stays on its core: round robin is (r + N - 1)/N
//! times as fast, where r = L/S. k threads on each core take k times as long either way.

use super::case::Value;
use super::chips::{Kind, chip, single};
use super::grid::Grid;
use super::headlines::over;
use super::runs::{self, HRRS, MACHINE};
use super::single::Single;
use super::views::{by_program, label};
use super::{BASE, failed};
use crate::context::Context;
use crate::report::{Cell, Column, Table};
use crate::studies::symbiosis::cells::ratios;
use crate::study::StudyError;
use consort_sim::program::ProgramSpec;
use std::sync::Arc;

/// Work with which speeds are measured at the two scales, instructions.
const SPEED_INSTR: [f64; 2] = [1e8, 2e9];

/// Speed of round robin over the baseline, for large cores so many times as fast as small ones.
pub(in crate::studies) fn speed(ratio: f64, cores: usize) -> f64 {
    let n = cores as f64;
    (ratio + n - 1.0) / n
}

/// What the closed form says of the programs of a suite.
pub(in crate::studies) struct Closed {
    programs: Vec<(String, f64)>,
    cores: usize,
}

impl Closed {
    /// Measures how much faster one thread of each program is on the large core.
    pub fn of(context: &Context<'_>, suite: &str) -> Result<Self, StudyError> {
        let whole = chip(MACHINE)?;
        let cores = [single(&whole, Kind::Large)?, single(&whole, Kind::Small)?];
        let instructions = context.by_scale(SPEED_INSTR[0], SPEED_INSTR[1]);
        let programs = runs::programs(context, suite)?;
        let ratio = |program: &Arc<ProgramSpec>| {
            let time = |core| Single::run(core, program, instructions, context.seed());
            let (large, small) = (time(&cores[0])?, time(&cores[1])?);
            Ok((program.name.clone(), small.time_s / large.time_s))
        };
        let all = context.map(&programs, ratio)?;
        let programs: Result<_, StudyError> = all.into_iter().collect();
        Ok(Self {
            programs: programs.map_err(failed(suite))?,
            cores: whole.places().len(),
        })
    }

    /// Over all programs.
    pub fn speed(&self) -> Cell {
        let each = self.programs.iter().map(|(_, r)| speed(*r, self.cores));
        ratios(&each.collect::<Vec<_>>())
    }

    /// Table `closed-form`: rows `PROGRAM` and `all`; columns `large_over_small`, `closed_form` and
    /// `simulated` (hrrs over the baseline, over numbers of threads).
    pub fn table(&self, grid: &Grid, value: Value) -> Result<Table, StudyError> {
        let columns = vec![
            Column::plain("large_over_small", "Large over small core, r"),
            Column::plain("closed_form", "Closed form, (r + N - 1)/N"),
            Column::plain("simulated", &format!("{} over {BASE}", label(HRRS))),
        ];
        let title = "Round robin over threads that stay on their cores, equal threads";
        let mut table = Table::new("closed-form", title, columns)?;
        let groups = by_program(grid);
        for (name, ratio) in &self.programs {
            let cases = groups.iter().find(|(key, _)| key == name);
            let cases = cases.map_or(&[][..], |(_, cases)| cases);
            let simulated = over(grid, cases, (HRRS, BASE), value);
            let closed = speed(*ratio, self.cores);
            table.push(name, vec![(*ratio).into(), closed.into(), simulated])?;
        }
        let r: Vec<f64> = self.programs.iter().map(|(_, ratio)| *ratio).collect();
        let every: Vec<usize> = (0..grid.keys.len()).collect();
        let simulated = over(grid, &every, (HRRS, BASE), value);
        table.push("all", vec![ratios(&r), self.speed(), simulated])?;
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ideal::IdealRoundRobin;
    use super::*;

    #[test]
    fn the_closed_form_is_the_ideal_model_over_the_slowest_thread_that_stays() {
        // r = 2 on 1+3: (2 + 3)/4.
        assert_eq!(speed(2.0, 4), 1.25);
        let model = IdealRoundRobin {
            large_ips: 3e9,
            small_ips: 1e9,
            cores: 4,
        };
        for threads in [4, 8, 16] {
            let stays_s = f64::from(threads / 4) * 6e9 / 1e9;
            let over = stays_s / model.time_s(6e9, threads);
            assert!((over - speed(3.0, 4)).abs() < 1e-12, "{threads}: {over}");
        }
    }
}
