//! A report's numbers, one per row.

use super::{ProgramRow, RunReport, ThreadRow};
use consort_core::escape_invisible;
use consort_data::Table;
use consort_data::long::{LongRows, RowOwner};

/// The case of what ran on this machine.
const LIVE: &str = "live";

impl RunReport {
    /// Every number of the run, its programs (`NAME:PID`) and its threads (`NAME:TID`).
    pub(crate) fn table(&self, seed: Option<u64>) -> Table {
        let mut rows = LongRows::default();
        let whole = RowOwner {
            case: LIVE,
            policy: Some(&self.policy),
            seed,
            program: None,
        };
        self.add_run_numbers(&mut rows, whole);
        for program in &self.programs {
            let name = format!("{}:{}", escape_invisible(&program.name), program.pid);
            program.add(&mut rows, row_subject(whole, &name));
        }
        for thread in &self.threads {
            let name = format!("{}:{}", escape_invisible(&thread.name), thread.tid);
            thread.add(&mut rows, row_subject(whole, &name));
        }
        rows.table()
    }

    fn add_run_numbers(&self, rows: &mut LongRows, whole: RowOwner<'_>) {
        rows.push(whole, "duration_s", self.duration_s, Some("s"));
        rows.push(whole, "cpu_s", self.cpu_s, Some("s"));
        rows.push_if_some(whole, "quantum_ms", self.quantum.mean_ms, Some("ms"));
        rows.push(whole, "plans", self.plans as f64, None);
        rows.push(whole, "moves", self.moves as f64, None);
        rows.push(whole, "nudges", self.nudges as f64, None);
        rows.push_if_some(whole, "adherence", self.adherence, None);
        rows.push(whole, "own_cpu_s", self.overhead.cpu_s, Some("s"));
    }
}

/// A program or thread of a run.
fn row_subject<'a>(whole: RowOwner<'a>, name: &'a str) -> RowOwner<'a> {
    RowOwner {
        program: Some(name),
        ..whole
    }
}

impl ProgramRow {
    fn add(&self, rows: &mut LongRows, of: RowOwner<'_>) {
        rows.push(of, "program_cpu_s", self.cpu_s, Some("s"));
        rows.push_if_some(of, "energy_j", self.energy_j, Some("J"));
        let rate = self.instructions_per_cpu_s;
        rows.push_if_some(of, "instructions_per_cpu_s", rate, Some("1/s"));
        rows.push_if_some(of, "llc_miss_rate", self.llc_miss_rate, None);
        rows.push_if_some(of, "bus_occupancy", self.bus_occupancy, None);
        rows.push_if_some(of, "bus_queue_time", self.bus_queue_time, None);
    }
}

impl ThreadRow {
    fn add(&self, rows: &mut LongRows, of: RowOwner<'_>) {
        rows.push(of, "cpu_s", self.cpu_s, Some("s"));
        rows.push_if_some(of, "wait_s", self.wait_s, Some("s"));
        rows.push_if_some(of, "fp_usage", self.fp_usage, None);
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
        rows.push_if_some(of, "memory_stall", self.memory_stall, None);
        for (cause, share) in &self.stack {
            rows.push(of, &format!("stack_{cause}"), *share, None);
        }
        rows.push(of, "moves", self.moves as f64, None);
        rows.push_if_some(of, "adherence", self.adherence, None);
        rows.push(of, "nudges", self.nudges as f64, None);
    }
}
