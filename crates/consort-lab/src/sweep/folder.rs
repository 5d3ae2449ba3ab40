//! The folder of a sweep: its plan, and a file for each shard that has been run.

use super::SweepError;
use super::plan::SweepPlan;
use super::units::run_units;
use consort_data::long::read_long_table;
use consort_data::{Table, TableSink, Values};
use consort_experiment::StageProgress;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// The plan's file.
const PLAN: &str = "plan.json";
/// Name of the file of cases to which the long table refers.
const CASES: &str = "cases.csv";
/// Results, below the folder.
const SHARDS: &str = "shards";

/// A planned sweep.
#[derive(Debug)]
pub struct ShardFolder {
    path: PathBuf,
    plan: SweepPlan,
}

/// Outcome of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardOutcome {
    /// It was run now; the path of its result.
    Now(PathBuf),
    /// Its result existed already.
    Before(PathBuf),
}

/// Progress of a sweep: its shards and which of them are done.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepStatus {
    /// Shards of the plan.
    pub shards: usize,
    /// Numbers of shards without a result, ascending.
    pub missing: Vec<usize>,
    /// Estimated host time of the missing shards on one worker, s.
    pub missing_s: f64,
    /// Results that do not belong to this plan, but to an earlier one or another version.
    pub foreign: usize,
}

impl ShardFolder {
    /// Plans a sweep and writes the plan to a folder, which is created if needed. An existing plan
    /// is replaced; results whose content is the same stay valid.
    ///
    /// # Errors
    /// An error in the description, or of the file system.
    pub fn plan(path: &Path, file: &str, description: &str) -> Result<Self, SweepError> {
        let plan = SweepPlan::new(file, description)?;
        let shards = path.join(SHARDS);
        std::fs::create_dir_all(&shards).map_err(|cause| SweepError::io(&shards, cause))?;
        let cases = cases(&plan)?;
        consort_data::write_table(&path.join(CASES), &cases)?;
        let text = serde_json::to_vec_pretty(&plan).map_err(std::io::Error::from);
        let kept = text.and_then(|text| consort_data::write_atomically(path, PLAN, &text));
        kept.map_err(|cause| SweepError::io(&path.join(PLAN), cause))?;
        let path = path.to_owned();
        Ok(Self { path, plan })
    }

    /// Opens the folder of a sweep that was planned.
    ///
    /// # Errors
    /// There is no plan, or the file is not one.
    pub fn open(path: &Path) -> Result<Self, SweepError> {
        let file = path.join(PLAN);
        let text = std::fs::read_to_string(&file).map_err(|cause| match cause.kind() {
            std::io::ErrorKind::NotFound => SweepError::NoPlan(path.to_owned()),
            _ => SweepError::io(&file, cause),
        })?;
        let plan = serde_json::from_str(&text).map_err(|error| SweepError::Plan {
            path: file,
            cause: error.to_string(),
        })?;
        let path = path.to_owned();
        Ok(Self { path, plan })
    }

    /// The plan.
    pub fn as_plan(&self) -> &SweepPlan {
        &self.plan
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of a shard's result, whether it exists or not.
    fn result_path(&self, number: usize) -> PathBuf {
        let content = &self.plan.shards[number].content;
        self.path
            .join(SHARDS)
            .join(format!("{number:06}-{content}.csv"))
    }

    /// Runs a shard and writes its result, whole or not at all. Does nothing if the result exists.
    ///
    /// # Errors
    /// A number that the plan does not have, files that have changed since, or a run that fails.
    pub fn run(
        &self,
        number: usize,
        workers: NonZeroUsize,
        progress: &(dyn Fn(StageProgress) + Sync),
    ) -> Result<ShardOutcome, SweepError> {
        let last = self.plan.shards.len().saturating_sub(1);
        let no_shard = SweepError::NoShard {
            requested: number,
            last,
        };
        let shard = self.plan.shards.get(number).ok_or(no_shard)?;
        let path = self.result_path(number);
        if path.is_file() {
            return Ok(ShardOutcome::Before(path));
        }
        // Hosts of a cluster may see other contents of the files that the description names.
        let sweep = self.plan.sweep()?;
        if shard.range().end > sweep.len() || sweep.fingerprint(shard.range())? != shard.content {
            return Err(SweepError::Changed { number });
        }
        let tables = run_units(&sweep, shard.range(), workers, progress)?;
        let mut sink = TableSink::create(&path)?;
        for table in &tables {
            sink.write(table)?;
        }
        sink.finish()?;
        Ok(ShardOutcome::Now(path))
    }

    /// Counts finished and missing shards.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn status(&self) -> Result<SweepStatus, SweepError> {
        let folder = self.path.join(SHARDS);
        let failed = |cause| SweepError::io(&folder, cause);
        let entries = std::fs::read_dir(&folder).map_err(failed)?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        let there: BTreeSet<PathBuf> = paths.collect::<Result<_, _>>().map_err(failed)?;
        let all = 0..self.plan.shards.len();
        let missing: Vec<usize> = all
            .filter(|&n| !there.contains(&self.result_path(n)))
            .collect();
        let of_sweep = self.plan.shards.len() - missing.len();
        let is_result = |path: &&PathBuf| path.extension().is_some_and(|end| end == "csv");
        Ok(SweepStatus {
            shards: self.plan.shards.len(),
            missing_s: missing.iter().map(|&n| self.plan.shards[n].seconds).sum(),
            foreign: there.iter().filter(is_result).count() - of_sweep,
            missing,
        })
    }

    /// Joins all results, in the order of the plan, into one file of the long format.
    ///
    /// # Errors
    /// Gaps, which are named; a result that cannot be read; an error of the file system.
    pub fn merge(&self, out: &Path) -> Result<(), SweepError> {
        let status = self.status()?;
        if !status.missing.is_empty() {
            return Err(SweepError::Gaps {
                count: status.missing.len(),
                all: status.shards,
                missing: status.missing,
            });
        }
        let mut sink = TableSink::create(out)?;
        for number in 0..self.plan.shards.len() {
            sink.write(&read_long_table(&self.result_path(number))?)?;
        }
        Ok(sink.finish()?)
    }
}

/// A row for each case: its name in the long table, machine, workload, and the value of each
/// parameter.
fn cases(plan: &SweepPlan) -> Result<Table, SweepError> {
    let sweep = plan.sweep()?;
    let all = (0..sweep.cases.len()).map(|n| sweep.cases.get(n));
    let all = all.collect::<Result<Vec<_>, _>>()?;
    let mut table = Table::default()
        .with_text("case", all.iter().map(|case| Some(case.key.clone())))
        .with_text("machine", all.iter().map(|case| Some(case.machine.clone())))
        .with_text(
            "workload",
            all.iter()
                .map(|case| Some(case.experiment.workload.text.clone())),
        );
    let point = all.first().map(|case| case.point.as_slice());
    let keys = point.unwrap_or_default().iter().map(|(key, _)| key);
    for (n, key) in keys.enumerate() {
        // Texts as in CSV, without quotes.
        let values = all.iter().map(|case| match &case.point[n].1 {
            toml::Value::String(text) => Some(text.clone()),
            value => Some(value.to_string()),
        });
        table = table.with_column(key, None, Values::Text(values.collect()));
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::workers;

    const DESCRIPTION: &str = "machines = [\"bulldozer-6282se\"]\n\
        workloads = [\"hmmer+povray\", \"mcf+sphinx3\"]\npolicies = [\"linux\", \"workover\"]\n\
        runs = 2\nseed = 3\nalone_s = 0.2\nshard_s = 0.001\nhost_s_per_thread_s = 0.0012\n\
        [[parameters]]\nkey = \"memory.latency_ns\"\nvalues = [80, 120]\n";

    fn planned() -> (tempfile::TempDir, ShardFolder) {
        let place = tempfile::tempdir().unwrap();
        let folder = ShardFolder::plan(&place.path().join("s"), "s.toml", DESCRIPTION).unwrap();
        (place, folder)
    }

    fn run(folder: &ShardFolder, number: usize) -> ShardOutcome {
        folder.run(number, workers(1), &|_| ()).unwrap()
    }

    fn merged(folder: &ShardFolder) -> String {
        let out = folder.path().join("all.csv");
        folder.merge(&out).unwrap();
        std::fs::read_to_string(out).unwrap()
    }

    #[test]
    fn any_order_of_shards_gives_the_same_table() {
        let (_one, forwards) = planned();
        let (_two, backwards) = planned();
        let shards = forwards.as_plan().shards.len();
        assert!(shards > 4, "{shards}");
        (0..shards).for_each(|n| drop(run(&forwards, n)));
        (0..shards).rev().for_each(|n| drop(run(&backwards, n)));
        let text = merged(&forwards);
        assert_eq!(text, merged(&backwards));
        // 2 points, 2 workloads, 2 policies, 2 seeds; 8 measures of a run, 6 of each program.
        assert_eq!(text.lines().count(), 1 + 16 * (8 + 2 * 6));
        let cases = std::fs::read_to_string(forwards.path().join(CASES)).unwrap();
        assert_eq!(
            cases.lines().next(),
            Some("case,machine,workload,memory.latency_ns")
        );
        let second =
            "mcf+sphinx3 on bulldozer-6282se memory.latency_ns=80,bulldozer-6282se,mcf+sphinx3,80";
        assert_eq!(cases.lines().nth(2), Some(second));
    }

    #[test]
    fn shard_runs_once_and_gaps_are_named() {
        let (_place, folder) = planned();
        let shards = folder.as_plan().shards.len();
        let ShardOutcome::Now(path) = run(&folder, 1) else {
            panic!("nothing was there")
        };
        assert_eq!(run(&folder, 1), ShardOutcome::Before(path));
        let status = folder.status().unwrap();
        assert_eq!((status.missing.len(), status.foreign), (shards - 1, 0));
        let out = folder.path().join("all.csv");
        let error = folder.merge(&out).unwrap_err().to_string();
        assert!(
            error.contains(&format!("have no result: 0,2-{};", shards - 1)),
            "{error}"
        );
        assert!(!out.exists());
        let error = folder.run(99, workers(1), &|_| ()).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("there is no shard 99; the plan has 0 to {}", shards - 1)
        );
    }

    #[test]
    fn results_of_another_plan_do_not_count() {
        let (_place, folder) = planned();
        run(&folder, 0);
        let other = DESCRIPTION.replace("seed = 3", "seed = 4");
        let folder = ShardFolder::plan(folder.path(), "s.toml", &other).unwrap();
        let status = folder.status().unwrap();
        assert_eq!((status.missing.len(), status.foreign), (status.shards, 1));
        let again = ShardFolder::plan(folder.path(), "s.toml", DESCRIPTION).unwrap();
        assert_eq!(again.status().unwrap().missing.len(), status.shards - 1);
        let opened = ShardFolder::open(folder.path()).unwrap();
        assert_eq!(opened.as_plan(), again.as_plan());
    }

    #[test]
    fn studies_are_shards_too() {
        let place = tempfile::tempdir().unwrap();
        let text = "studies = [\"S4\", \"M1\"]\nquick = true\nshard_s = 1\n";
        let folder = ShardFolder::plan(place.path(), "s.toml", text).unwrap();
        assert_eq!(folder.as_plan().shards.len(), 2);
        (0..2).for_each(|n| drop(run(&folder, n)));
        let text = merged(&folder);
        assert!(text.contains("S4:headline:") && text.contains("M1:headline:"));
    }
}
