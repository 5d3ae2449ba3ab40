//! A thread's place and moves, as `/proc` tells them.
//!
//! Fields: proc(5), `/proc/pid/stat` (39, `processor`) and the kernel's
//! `Documentation/scheduler/sched-debug.rst` for `/proc/pid/sched`.

use crate::error::VmError;
use consort_core::PuId;
use std::path::Path;

/// `processor`, counted from the field behind the name, which is field 3.
const PROCESSOR_BEHIND_NAME: usize = 39 - 3;
const MIGRATIONS: &str = "se.nr_migrations";

/// The PU that the thread runs on or last ran on. `task` is `/proc/PID` or `/proc/PID/task/TID`.
pub(crate) fn pu(task: &Path) -> Result<PuId, VmError> {
    read(&task.join("stat"), |text| {
        let (_, behind_name) = text.rsplit_once(')')?;
        let field = behind_name.split_whitespace().nth(PROCESSOR_BEHIND_NAME)?;
        Some(PuId(field.parse().ok()?))
    })
}

/// Number of times that the thread has moved to another PU since its birth.
pub(crate) fn migrations(task: &Path) -> Result<u64, VmError> {
    read(&task.join("sched"), |text| {
        let line = text.lines().find(|line| line.starts_with(MIGRATIONS))?;
        line.rsplit_once(':')?.1.trim().parse().ok()
    })
}

fn read<T>(path: &Path, value: impl FnOnce(&str) -> Option<T>) -> Result<T, VmError> {
    let text = std::fs::read_to_string(path).map_err(VmError::io("read", path))?;
    value(&text).ok_or_else(|| VmError::TaskFile {
        path: path.to_owned(),
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(stat: &str, sched: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("stat"), stat).unwrap();
        std::fs::write(folder.path().join("sched"), sched).unwrap();
        folder
    }

    #[test]
    fn the_processor_is_field_39_whatever_the_name() {
        let fields: Vec<String> = (4..=52).map(|field| field.to_string()).collect();
        let folder = task(&format!("7 (a) b (c) R {}", fields.join(" ")), "");
        assert_eq!(pu(folder.path()).unwrap(), PuId(39));
    }

    #[test]
    fn migrations_are_found_by_name() {
        let sched = "x (7, #threads: 3)\n---\nse.exec_start : 1.5\nse.nr_migrations    :    12\n";
        assert_eq!(migrations(task("", sched).path()).unwrap(), 12);
    }

    #[test]
    fn a_file_without_the_value_is_quoted() {
        let folder = task("7 (cut", "nothing");
        let error = pu(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains("stat") && error.contains("7 (cut"),
            "{error}"
        );
        assert!(migrations(folder.path()).is_err());
    }
}
