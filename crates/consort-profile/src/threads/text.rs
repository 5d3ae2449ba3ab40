//! The part of a program file on threads.

use std::fmt::Write;

use super::{SharedLines, ThreadRelations, ThreadRole};
use crate::figures::InstructionShares;

/// Least shares and lengths that a program file takes.
const LEAST: f64 = 1e-3;

impl ThreadRelations {
    /// The part of a program file that begins with `[threads]`; only comments if fewer than two
    /// threads share the work.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = self.write_comments(&mut out);
        if self.at_once >= 2 {
            let _ = self.write_keys(&mut out);
        }
        out
    }

    fn write_comments(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "\n# Threads: {} in all, at most {} at a time share the work.",
            self.count, self.at_once
        )?;
        for role in &self.roles {
            writeln!(out, "# {}", role.summary_line())?;
        }
        writeln!(out, "# Data: {}", shared_lines_text(&self.data))?;
        writeln!(out, "# Code: {}", shared_lines_text(&self.code))?;
        if let Some(locks) = &self.locks {
            writeln!(
                out,
                "# Locks: {} taken of {} words that several threads took, {} waits in the whole run; {} taken of words that one thread took. A lower bound: locks without compare-and-exchange are not seen.",
                locks.taken, locks.words, locks.waits, locks.taken_by_one
            )?;
        }
        Ok(())
    }

    fn write_keys(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "[threads]")?;
        writeln!(out, "default = {}", self.at_once)?;
        writeln!(
            out,
            "max = {} # how it would run with another number is not known",
            self.at_once
        )?;
        writeln!(out, "divide_work = false # lengths above are of one thread")?;
        writeln!(
            out,
            "serial_share = {:.4} # profile: the first thread while no other one could run",
            self.serial_share()
        )?;
        writeln!(out, "shared_data = {:.4} # profile", self.data.by_all)?;
        writeln!(out, "shared_code = {:.4} # profile", self.code.by_all)?;
        self.write_barriers(out)?;
        self.write_locks(out)?;
        self.write_stages(out)
    }

    fn write_barriers(&self, out: &mut String) -> std::fmt::Result {
        let (Some(barriers), Some(spacing)) = (self.barriers, self.barrier_spacing()) else {
            return Ok(());
        };
        writeln!(
            out,
            "barrier = {{ spacing_minstr = {:.6}, imbalance = {:.4} }} # profile: {} opened",
            (spacing / 1e6).max(LEAST),
            barriers.imbalance.min(2.0),
            barriers.opened
        )
    }

    fn write_locks(&self, out: &mut String) -> std::fmt::Result {
        let rate = self.locks_per_million();
        let Some(locks) = self.locks.filter(|locks| locks.taken > 0) else {
            return Ok(());
        };
        writeln!(
            out,
            "lock = {{ per_minstr = {:.4}, hold_instr = {:.1}, count = {} }} # profile: a lower bound",
            rate,
            locks.hold_instr.min(0.999e6 / rate),
            locks.effective.round().clamp(1.0, 65_536.0)
        )
    }

    /// Writes the stages; there are none if all threads do the same.
    fn write_stages(&self, out: &mut String) -> std::fmt::Result {
        let roles: Vec<&ThreadRole> = self.working_roles().collect();
        if roles.len() < 2 {
            return Ok(());
        }
        let works = relative_work(&roles);
        for (role, work) in roles.iter().zip(works) {
            let InstructionShares {
                fp,
                vector,
                int,
                load,
                store,
                branch,
            } = role.figures.shares();
            writeln!(
                out,
                "\n[[threads.stage]]\nname = \"{}\"\nthread_share = {}\nwork = {work:.6}\nmix = {{ fp = {fp:.4}, vector = {vector:.4}, int = {int:.4}, load = {load:.4}, store = {store:.4}, branch = {branch:.4} }} # profile",
                role.name,
                role.at_once.clamp(1, 1000)
            )?;
        }
        Ok(())
    }
}

/// Work relative to the mean role's; the mean is 1.
fn relative_work(roles: &[&ThreadRole]) -> Vec<f64> {
    let all: u64 = roles.iter().map(|role| role.executed).sum();
    let mean = all.max(1) as f64 / roles.len() as f64;
    let raw = roles.iter().map(|role| role.executed as f64 / mean);
    let kept: Vec<f64> = raw.map(|work| work.max(LEAST)).collect();
    let scale = roles.len() as f64 / kept.iter().sum::<f64>();
    kept.iter().map(|work| (work * scale).max(LEAST)).collect()
}

impl ThreadRole {
    /// The role in one line, for people.
    #[must_use]
    pub fn summary_line(&self) -> String {
        let figures = &self.figures;
        let data = |at: usize| figures.per_kilo(figures.memory.data.misses[at]);
        let idle = if self.is_idle {
            ", looks after the others"
        } else {
            ""
        };
        format!(
            "{}: {} thread(s), {} at a time, {} instructions{idle}; fp {:.3}, loads {:.3}, ILP in 128 {:.2}, per 1000: data misses {:.2} at 32 KiB and {:.2} at 1 MiB, mispredictions {:.2}",
            self.name,
            self.threads.len(),
            self.at_once,
            self.executed,
            figures.shares().fp,
            figures.shares().load,
            figures.ilp[3],
            data(3),
            data(8),
            figures.misprediction_mpki()
        )
    }
}

fn shared_lines_text(shared: &SharedLines) -> String {
    format!(
        "{} of {} lines of 64 bytes used by several threads, {} of them written to; as if all shared {:.4} of what one uses",
        shared.by_several, shared.lines, shared.written, shared.by_all
    )
}
