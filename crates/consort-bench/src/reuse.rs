//! Share of solutions that come from memory instead of the solver, in the runs whose speed is
//! measured.

use super::Bench;
use super::case::{Case, Effort};
use super::error::BenchError;
use super::setting::pass;
use super::simulate::{ACMP, POWER8, Simulate};

/// Solutions from memory.
pub(super) struct Reuse;

impl Bench for Reuse {
    fn name(&self) -> String {
        "reuse".to_owned()
    }

    fn summary(&self) -> String {
        "share of solutions that come from memory in the runs of simulate-*".to_owned()
    }

    fn cases(&self, effort: Effort) -> Result<Vec<Case>, BenchError> {
        [POWER8, ACMP].iter().map(|run| case(run, effort)).collect()
    }
}

fn case(run: &Simulate, effort: Effort) -> Result<Case, BenchError> {
    let setting = run.setting()?;
    let quanta = effort.part(run.quanta());
    let share = move || {
        let mut wheel = setting.begin()?;
        pass(&mut wheel, quanta)?;
        let usage = wheel.machine().oracle().memo_use();
        Ok(usage.hits as f64 / (usage.hits + usage.misses) as f64)
    };
    let name = format!("reuse-{}", run.name().trim_start_matches("simulate-"));
    Ok(Case::measured(name, "share", Box::new(share)))
}
