//! Share of solutions that come from memory instead of the solver, in the runs whose speed is
//! measured.

use super::Bench;
use super::case::{BenchCase, Effort};
use super::error::BenchError;
use super::simulate::{ACMP, POWER8, SimulationBench};
use super::simulation_setup::run_quanta;

/// Solutions from memory.
pub(super) struct ReuseBench;

impl Bench for ReuseBench {
    fn name(&self) -> String {
        "reuse".to_owned()
    }

    fn summary(&self) -> String {
        "share of solutions that come from memory in the runs of simulate-*".to_owned()
    }

    fn cases(&self, effort: Effort) -> Result<Vec<BenchCase>, BenchError> {
        [POWER8, ACMP].iter().map(|run| case(run, effort)).collect()
    }
}

fn case(run: &SimulationBench, effort: Effort) -> Result<BenchCase, BenchError> {
    let setting = run.new_setup()?;
    let quanta = effort.scale_quanta(run.quanta());
    let share = move || {
        let mut wheel = setting.new_loop()?;
        run_quanta(&mut wheel, quanta)?;
        let usage = wheel.machine().oracle().memo_use();
        Ok(usage.hits as f64 / (usage.hits + usage.misses) as f64)
    };
    let name = format!("reuse-{}", run.name().trim_start_matches("simulate-"));
    Ok(BenchCase::from_measure(name, "share", Box::new(share)))
}
