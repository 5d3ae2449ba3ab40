//! Threads that want a CPU all the time.
//!
//! They execute `pause`, on which qemu turns to the next CPU when one host thread emulates all of
//! them. The guest's kernel still sees a thread that never gives up its CPU.

use crate::error::VmError;
use crate::spread::snapshot::SpinnerArrival;
use consort_core::PuId;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};
use rand::Rng;
use rand::seq::SliceRandom;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Spinning threads, stopped and waited for when dropped.
#[derive(Default)]
pub(crate) struct Spinners {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    processes: Vec<Pid>,
    /// Killed already, still to be waited for.
    ended: Vec<Pid>,
}

impl Spinners {
    /// Starts `count` spinning threads one after another. The calling process has one thread.
    pub(crate) fn start(arrival: SpinnerArrival, count: usize) -> Result<Self, VmError> {
        let mut spinners = Self::default();
        for _ in 0..count {
            match arrival {
                SpinnerArrival::Threads => spinners.add_thread()?,
                SpinnerArrival::Processes => spinners.add_process()?,
            }
        }
        Ok(spinners)
    }

    /// Each one's folder below `proc`, whether or not it has run yet.
    pub(crate) fn tasks(&self, proc: &Path) -> Result<Vec<PathBuf>, VmError> {
        if self.threads.is_empty() {
            let folder = |pid: &Pid| proc.join(pid.to_string());
            return Ok(self.processes.iter().map(folder).collect());
        }
        other_tasks(&proc.join("self/task"))
    }

    /// Kills a random half of the processes, of an odd number the larger half, and does not wait
    /// until they are gone.
    pub(crate) fn end_half(&mut self, random: &mut impl Rng) -> Result<(), VmError> {
        self.processes.shuffle(random);
        self.ended = self.processes.split_off(self.processes.len() / 2);
        for &process in &self.ended {
            let killed = kill(process, Signal::SIGKILL);
            killed.map_err(|errno| VmError::io("kill", "a process")(errno.into()))?;
        }
        Ok(())
    }

    fn add_thread(&mut self) -> Result<(), VmError> {
        let stop = Arc::clone(&self.stop);
        let spin = move || {
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        let thread = std::thread::Builder::new().spawn(spin);
        self.threads
            .push(thread.map_err(VmError::io("start", "a thread"))?);
        Ok(())
    }

    fn add_process(&mut self) -> Result<(), VmError> {
        // SAFETY: the child spins until it is killed; it takes no lock and allocates nothing.
        match unsafe { fork() } {
            Ok(ForkResult::Parent { child }) => self.processes.push(child),
            Ok(ForkResult::Child) => loop {
                std::hint::spin_loop();
            },
            Err(errno) => return Err(VmError::io("fork", "a process")(errno.into())),
        }
        Ok(())
    }
}

impl Drop for Spinners {
    /// The calls fail only for what is gone already.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        for &process in &self.processes {
            let _ = kill(process, Signal::SIGKILL);
        }
        for &process in self.processes.iter().chain(&self.ended) {
            let _ = waitpid(process, None);
        }
    }
}

/// The tasks of this process other than its first, in the order of their ids.
fn other_tasks(folder: &Path) -> Result<Vec<PathBuf>, VmError> {
    let main = std::process::id().to_string();
    let entries = std::fs::read_dir(folder).map_err(VmError::io("list", folder))?;
    let mut tasks = Vec::new();
    for entry in entries {
        let entry = entry.map_err(VmError::io("list", folder))?;
        if entry.file_name().to_string_lossy() != main {
            tasks.push(entry.path());
        }
    }
    tasks.sort();
    Ok(tasks)
}

/// Field `processor` of `/proc/pid/stat` (39, proc(5)), counted from the field after the name, which
/// is field 3.
const PROCESSOR_AFTER_NAME: usize = 39 - 3;
/// Line of `/proc/pid/sched` (the kernel's `Documentation/scheduler/sched-debug.rst`).
const MIGRATIONS: &str = "se.nr_migrations";

/// The CPU that the thread runs on or last ran on. `task` is `/proc/PID` or `/proc/PID/task/TID`.
pub(super) fn read_pu(task: &Path) -> Result<PuId, VmError> {
    read_value(&task.join("stat"), |text| {
        let (_, after_name) = text.rsplit_once(')')?;
        let field = after_name.split_whitespace().nth(PROCESSOR_AFTER_NAME)?;
        Some(PuId(field.parse().ok()?))
    })
}

/// Number of times that the thread has moved to another CPU since its birth.
pub(super) fn read_migrations(task: &Path) -> Result<u64, VmError> {
    read_value(&task.join("sched"), |text| {
        let line = text.lines().find(|line| line.starts_with(MIGRATIONS))?;
        line.rsplit_once(':')?.1.trim().parse().ok()
    })
}

fn read_value<T>(path: &Path, value: impl FnOnce(&str) -> Option<T>) -> Result<T, VmError> {
    let text = std::fs::read_to_string(path).map_err(VmError::io("read", path))?;
    value(&text).ok_or_else(|| VmError::TaskFile {
        path: path.to_owned(),
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    #[test]
    fn seed_draws_the_half_that_ends() {
        let survivors = |seed| {
            let mut spinners = Spinners::start(SpinnerArrival::Processes, 4).unwrap();
            let all = spinners.processes.clone();
            let mut random = Pcg64Mcg::seed_from_u64(seed);
            spinners.end_half(&mut random).unwrap();
            assert_eq!((spinners.processes.len(), spinners.ended.len()), (2, 2));
            let tasks = spinners.tasks(Path::new("/proc")).unwrap();
            assert!(tasks.iter().all(|task| task.exists()));
            let of = |pid: &Pid| all.iter().position(|other| other == pid).unwrap();
            spinners.processes.iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(survivors(1), survivors(1));
        assert!((2..9).any(|seed| survivors(seed) != survivors(1)));
    }

    #[test]
    fn all_tasks_but_the_first_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let main = std::process::id();
        for id in [main, main + 1, main + 2] {
            std::fs::create_dir(folder.path().join(id.to_string())).unwrap();
        }
        let tasks = other_tasks(folder.path()).unwrap();
        let expected = [main + 1, main + 2].map(|id| folder.path().join(id.to_string()));
        assert_eq!(tasks, expected);
    }

    fn task(stat: &str, sched: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("stat"), stat).unwrap();
        std::fs::write(folder.path().join("sched"), sched).unwrap();
        folder
    }

    #[test]
    fn processor_is_field_39_for_any_name() {
        let fields: Vec<String> = (4..=52).map(|field| field.to_string()).collect();
        let folder = task(&format!("7 (a) b (c) R {}", fields.join(" ")), "");
        assert_eq!(read_pu(folder.path()).unwrap(), PuId(39));
    }

    #[test]
    fn migrations_are_found_by_name() {
        let sched = "x (7, #threads: 3)\n---\nse.exec_start : 1.5\nse.nr_migrations    :    12\n";
        assert_eq!(read_migrations(task("", sched).path()).unwrap(), 12);
    }

    #[test]
    fn file_without_the_value_is_quoted() {
        let folder = task("7 (cut", "nothing");
        let error = read_pu(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains("stat") && error.contains("7 (cut"),
            "{error}"
        );
        assert!(read_migrations(folder.path()).is_err());
    }
}
