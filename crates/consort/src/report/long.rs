//! A report's numbers, one per row.

use super::{ProgramRow, RunReport, ThreadRow};
use consort_core::visible;
use consort_experiment::long::{Rows, Whose};
use consort_table::Table;

/// The case of what ran on this machine.
const LIVE: &str = "live";

impl RunReport {
    /// Every number of the run, its programs (`NAME:PID`) and its threads (`NAME:TID`).
    pub(crate) fn table(&self, seed: Option<u64>) -> Table {
        let mut rows = Rows::default();
        let whole = Whose {
            case: LIVE,
            policy: Some(&self.policy),
            seed,
            program: None,
        };
        self.add_whole(&mut rows, whole);
        for program in &self.programs {
            let name = format!("{}:{}", visible(&program.name), program.pid);
            program.add(&mut rows, of(whole, &name));
        }
        for thread in &self.threads {
            let name = format!("{}:{}", visible(&thread.name), thread.tid);
            thread.add(&mut rows, of(whole, &name));
        }
        rows.table()
    }

    fn add_whole(&self, rows: &mut Rows, whole: Whose<'_>) {
        rows.push(whole, "duration_s", self.duration_s, Some("s"));
        rows.push(whole, "cpu_s", self.cpu_s, Some("s"));
        rows.maybe(whole, "quantum_ms", self.quantum.mean_ms, Some("ms"));
        rows.push(whole, "plans", self.plans as f64, None);
        rows.push(whole, "moves", self.moves as f64, None);
        rows.push(whole, "nudges", self.nudges as f64, None);
        rows.maybe(whole, "adherence", self.adherence, None);
        rows.push(whole, "own_cpu_s", self.overhead.cpu_s, Some("s"));
    }
}

/// A program or thread of a run.
fn of<'a>(whole: Whose<'a>, name: &'a str) -> Whose<'a> {
    Whose {
        program: Some(name),
        ..whole
    }
}

impl ProgramRow {
    fn add(&self, rows: &mut Rows, of: Whose<'_>) {
        rows.push(of, "program_cpu_s", self.cpu_s, Some("s"));
        rows.maybe(of, "energy_j", self.energy_j, Some("J"));
        let rate = self.instructions_per_cpu_s;
        rows.maybe(of, "instructions_per_cpu_s", rate, Some("1/s"));
        rows.maybe(of, "llc_miss_rate", self.llc_miss_rate, None);
        rows.maybe(of, "bus_occupancy", self.bus_occupancy, None);
        rows.maybe(of, "bus_queue_time", self.bus_queue_time, None);
    }
}

impl ThreadRow {
    fn add(&self, rows: &mut Rows, of: Whose<'_>) {
        rows.push(of, "cpu_s", self.cpu_s, Some("s"));
        rows.maybe(of, "wait_s", self.wait_s, Some("s"));
        rows.maybe(of, "fp_usage", self.fp_usage, None);
        if let Some(mix) = self.mix {
            let parts = [
                ("mix_fp", mix.fp),
                ("mix_vector", mix.vector),
                ("mix_int", mix.int),
                ("mix_load", mix.load),
                ("mix_store", mix.store),
                ("mix_branch", mix.branch),
            ];
            for (key, share) in parts {
                rows.push(of, key, share, None);
            }
        }
        rows.maybe(of, "memory_stall", self.memory_stall, None);
        for (cause, share) in &self.stack {
            rows.push(of, &format!("stack_{cause}"), *share, None);
        }
        rows.push(of, "moves", self.moves as f64, None);
        rows.maybe(of, "adherence", self.adherence, None);
        rows.push(of, "nudges", self.nudges as f64, None);
    }
}
