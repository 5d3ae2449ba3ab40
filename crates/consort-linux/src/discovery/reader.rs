//! Consumption of threads, read from `/proc`: the `proc` tier.
//!
//! Files are kept open between reads, which is three times cheaper than opening them again and
//! binds them to the thread: a later thread with the same tid does not appear in an old descriptor.
//! The number kept open is bounded; threads beyond it are read by opening and closing.

use crate::proc::{ProcError, RunState, STAT_BYTES, Stat, thread_dir, tick_ns};
use consort_core::{PuId, ThreadId};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Consumption of a thread since it started, with its state at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcSample {
    /// Time on a CPU, ns.
    pub cpu_ns: u64,
    /// True if `cpu_ns` is only as fine as clock ticks, because the kernel has no schedstat.
    pub cpu_in_ticks: bool,
    /// Time runnable but not on a CPU, ns; unknown without schedstat.
    pub wait_ns: Option<u64>,
    /// Number of times that the thread was put on a CPU; unknown without schedstat.
    pub runs: Option<u64>,
    /// State of the thread: running, asleep, stopped and so on.
    pub state: RunState,
    /// The CPU that it runs on or ran on last.
    pub last_pu: PuId,
}

/// Reads threads' `stat` and `schedstat`.
#[derive(Debug)]
pub struct ProcReader {
    root: PathBuf,
    open: HashMap<ThreadId, ThreadFiles>,
    /// Most threads whose files may be kept open.
    max_open: usize,
    tick_ns: u64,
}

#[derive(Debug)]
struct ThreadFiles {
    stat: File,
    schedstat: Option<File>,
}

/// Descriptors that a thread takes while its files are kept open.
const FDS_PER_THREAD: usize = 2;

impl ProcReader {
    /// A reader below `root` that keeps at most `fd_budget` descriptors open.
    pub fn new(root: &Path, fd_budget: usize) -> Self {
        Self {
            root: root.to_owned(),
            open: HashMap::new(),
            max_open: fd_budget / FDS_PER_THREAD,
            tick_ns: tick_ns(),
        }
    }

    /// Reads the thread's consumption so far.
    ///
    /// # Errors
    /// [`ProcError::Gone`] when the thread has exited, others when its files cannot be read; the
    /// reader has then closed them.
    pub fn sample(&mut self, id: ThreadId) -> Result<ProcSample, ProcError> {
        self.read_files(id, Self::read)
    }

    /// Reads the thread's times alone, for a third of the cost; the rest is copied from `last`.
    /// `None` if that cannot be read, because the thread has exited or there is no schedstat.
    pub fn times(&mut self, id: ThreadId, last: ProcSample) -> Option<ProcSample> {
        let [run, wait, runs] = schedstat(self.open.get(&id)?)?;
        Some(ProcSample {
            cpu_ns: run,
            wait_ns: Some(wait),
            runs: Some(runs),
            ..last
        })
    }

    /// Returns the state of the thread, and the CPU that it is on, waits for or was on last.
    ///
    /// # Errors
    /// Those of [`ProcReader::sample`].
    pub fn read_state_and_pu(&mut self, id: ThreadId) -> Result<(RunState, PuId), ProcError> {
        let stat = self.read_files(id, Self::stat)?;
        Ok((stat.state, stat.last_pu))
    }

    /// Closes the files of a thread.
    pub fn forget(&mut self, id: ThreadId) {
        self.open.remove(&id);
    }

    /// Number of descriptors kept open.
    pub fn open_fds(&self) -> usize {
        let fds = |f: &ThreadFiles| 1 + usize::from(f.schedstat.is_some());
        self.open.values().map(fds).sum()
    }

    /// Reads something in a thread's files, which are kept open where there is room.
    fn read_files<T>(
        &mut self,
        id: ThreadId,
        read: fn(&Self, ThreadId, &ThreadFiles) -> Result<T, ProcError>,
    ) -> Result<T, ProcError> {
        let reported = match self.open.get(&id) {
            Some(files) => read(self, id, files),
            None => self.read_new_files(id, read),
        };
        if reported.is_err() {
            self.forget(id);
        }
        reported
    }

    fn read_new_files<T>(
        &mut self,
        id: ThreadId,
        read: fn(&Self, ThreadId, &ThreadFiles) -> Result<T, ProcError>,
    ) -> Result<T, ProcError> {
        let files = self.open_files(id)?;
        let reported = read(self, id, &files)?;
        if self.open.len() < self.max_open {
            self.open.insert(id, files);
        }
        Ok(reported)
    }

    /// Opens a thread's files; when descriptors run out, keeps fewer open from now on.
    fn open_files(&mut self, id: ThreadId) -> Result<ThreadFiles, ProcError> {
        match ThreadFiles::open(&thread_dir(&self.root, id.pid, id.tid)) {
            Err(ProcError::NoFds) if !self.open.is_empty() => {
                self.max_open = self.open.len() / 2;
                self.open.clear();
                ThreadFiles::open(&thread_dir(&self.root, id.pid, id.tid))
            }
            opened => opened,
        }
    }

    fn read(&self, id: ThreadId, files: &ThreadFiles) -> Result<ProcSample, ProcError> {
        let stat = self.stat(id, files)?;
        let schedstat = schedstat(files);
        Ok(ProcSample {
            cpu_ns: schedstat.map_or(stat.cpu_ticks * self.tick_ns, |[run, ..]| run),
            cpu_in_ticks: schedstat.is_none(),
            wait_ns: schedstat.map(|[_, wait, _]| wait),
            runs: schedstat.map(|[.., runs]| runs),
            state: stat.state,
            last_pu: stat.last_pu,
        })
    }

    fn stat(&self, id: ThreadId, files: &ThreadFiles) -> Result<Stat, ProcError> {
        // Errors alone need the path, so it is not made for each reading.
        let path = || thread_dir(&self.root, id.pid, id.tid).join("stat");
        let mut buffer = [0; STAT_BYTES];
        let len = files.stat.read_at(&mut buffer, 0);
        let len = len.map_err(|e| ProcError::io(&path(), &e))?;
        let stat = Stat::parse(&buffer[..len]).map_err(|e| ProcError::malformed(&path(), e))?;
        let is_same = stat.start_ticks == id.start_ticks && stat.is_alive();
        is_same.then_some(stat).ok_or(ProcError::Gone)
    }
}

impl ThreadFiles {
    fn open(dir: &Path) -> Result<Self, ProcError> {
        let open = |name| {
            let path = dir.join(name);
            File::open(&path).map_err(|e| ProcError::io(&path, &e))
        };
        let stat = open("stat")?;
        match open("schedstat") {
            // Ticks would be compared with nanoseconds at the next reading.
            Err(error) if error.is_transient() => Err(error),
            schedstat => Ok(Self {
                stat,
                schedstat: schedstat.ok(),
            }),
        }
    }
}

/// The numbers of a thread's open `schedstat`.
fn schedstat(files: &ThreadFiles) -> Option<[u64; 3]> {
    let mut buffer = [0; STAT_BYTES];
    let len = files.schedstat.as_ref()?.read_at(&mut buffer, 0).ok()?;
    // Run time ns, wait time ns, and number of runs (kernel `Documentation/scheduler/sched-stats.rst`).
    let text = std::str::from_utf8(&buffer[..len]).ok()?;
    let mut numbers = text.split_ascii_whitespace().map(|n| n.parse().ok());
    let mut next = || numbers.next().flatten();
    let fields = [next()?, next()?, next()?];
    // A kernel that does not keep the numbers prints zeros.
    (fields != [0; 3]).then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::process;

    const ID: ThreadId = ThreadId {
        pid: 10,
        tid: 11,
        start_ticks: 5,
    };

    #[test]
    fn schedstat_gives_nanoseconds() {
        let dir = tempfile::tempdir().unwrap();
        process(dir.path(), 10, 1, &[(11, "x", 5)]);
        let sample = ProcReader::new(dir.path(), 8).sample(ID).unwrap();
        assert_eq!((sample.cpu_ns, sample.wait_ns), (1000, Some(200)));
        assert_eq!((sample.runs, sample.last_pu), (Some(3), PuId(3)));
    }

    #[test]
    fn times_are_read_without_the_state() {
        let dir = tempfile::tempdir().unwrap();
        process(dir.path(), 10, 1, &[(11, "x", 5)]);
        let mut reader = ProcReader::new(dir.path(), 8);
        let last = ProcSample {
            state: RunState::Stopped,
            ..reader.sample(ID).unwrap()
        };
        std::fs::write(dir.path().join("proc/10/task/11/schedstat"), "1700 500 4\n").unwrap();
        let times = reader.times(ID, last).unwrap();
        assert_eq!((times.cpu_ns, times.wait_ns), (1700, Some(500)));
        assert_eq!((times.runs, times.state), (Some(4), RunState::Stopped));
        reader.forget(ID);
        assert_eq!(reader.times(ID, last), None);
    }

    #[test]
    fn without_schedstat_ticks_must_do() {
        let dir = tempfile::tempdir().unwrap();
        process(dir.path(), 10, 1, &[(11, "x", 5)]);
        std::fs::remove_file(dir.path().join("proc/10/task/11/schedstat")).unwrap();
        let sample = ProcReader::new(dir.path(), 8).sample(ID).unwrap();
        assert!(sample.cpu_in_ticks && sample.wait_ns.is_none());
        assert_eq!(sample.cpu_ns, 12 * 10_000_000);
    }

    #[test]
    fn later_thread_with_same_tid_is_distinguished() {
        let dir = tempfile::tempdir().unwrap();
        process(dir.path(), 10, 1, &[(11, "x", 6)]);
        assert_eq!(
            ProcReader::new(dir.path(), 8).sample(ID),
            Err(ProcError::Gone)
        );
    }

    #[test]
    fn open_files_stay_within_the_budget() {
        let dir = tempfile::tempdir().unwrap();
        process(
            dir.path(),
            10,
            1,
            &[(11, "a", 5), (12, "b", 5), (13, "c", 5)],
        );
        let mut reader = ProcReader::new(dir.path(), 4);
        for tid in [11, 12, 13, 11] {
            assert!(reader.sample(ThreadId { tid, ..ID }).is_ok());
        }
        assert_eq!(reader.open_fds(), 4);
    }

    #[test]
    fn this_thread_has_consumed_something() {
        let tid = nix::unistd::gettid().as_raw() as u32;
        let pid = std::process::id();
        let stat = crate::proc::read_stat(Path::new("/"), pid, tid).unwrap();
        let id = ThreadId {
            pid,
            tid,
            start_ticks: stat.start_ticks,
        };
        let sample = ProcReader::new(Path::new("/"), 8).sample(id).unwrap();
        assert_eq!(sample.state, RunState::Runnable);
    }
}
