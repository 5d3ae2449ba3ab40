//! Processes that a bench starts, and the CPU time and memory that they take.

use consort_experiment::bench::BenchError;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest time that something may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process that is ended when this is dropped.
pub(crate) struct BenchProcess {
    child: Child,
    errors: File,
    /// Its output, if it is read.
    out: Option<BufReader<ChildStdout>>,
}

impl BenchProcess {
    /// Returns this program with other arguments and `folder` as its runtime folder.
    pub(crate) fn own_command<S: AsRef<OsStr>>(
        folder: &Path,
        args: &[S],
    ) -> Result<Command, BenchError> {
        let this = std::env::current_exe().map_err(|error| start_error("consort", &error))?;
        let mut command = Command::new(this);
        command.args(args).env("XDG_RUNTIME_DIR", folder);
        Ok(command)
    }

    /// Starts it; the last line of its stderr explains a failure later.
    pub(crate) fn start(mut command: Command) -> Result<Self, BenchError> {
        let name = command.get_program().to_string_lossy().into_owned();
        let failed = |error| start_error(&name, &error);
        let errors = tempfile::tempfile().map_err(failed)?;
        let shared = errors.try_clone().map_err(failed)?;
        command.stdin(Stdio::piped()).stderr(shared);
        let child = command.spawn().map_err(failed)?;
        Ok(Self {
            child,
            errors,
            out: None,
        })
    }

    /// Starts it and waits for its first line.
    pub(crate) fn start_and_read(mut command: Command) -> Result<Self, BenchError> {
        command.stdout(Stdio::piped());
        let mut process = Self::start(command)?;
        process.out = process.child.stdout.take().map(BufReader::new);
        process.read_line()?;
        Ok(process)
    }

    fn read_line(&mut self) -> Result<String, BenchError> {
        let mut line = String::new();
        match self.out.as_mut().map(|out| out.read_line(&mut line)) {
            Some(Ok(1..)) => Ok(line),
            _ => Err(BenchError::Live("a load ended too early".to_owned())),
        }
    }

    /// Sends an empty line, which a load answers with the steps of work done so far.
    pub(crate) fn query_steps(&mut self) -> Result<f64, BenchError> {
        let sent = self
            .child
            .stdin
            .as_mut()
            .map(|stdin| stdin.write_all(b"\n"));
        if !matches!(sent, Some(Ok(()))) {
            return Err(BenchError::Live("a load ended too early".to_owned()));
        }
        let line = self.read_line()?;
        line.trim().parse().map_err(|_| {
            BenchError::Live(format!("a load answered {:?}, not its steps", line.trim()))
        })
    }

    /// Waits until a command that queries it succeeds.
    pub(crate) fn await_answer(
        &mut self,
        query: impl Fn() -> Result<Command, BenchError>,
    ) -> Result<(), BenchError> {
        let end = Instant::now() + PATIENCE;
        loop {
            let mut query = query()?;
            query.stdin(Stdio::null()).stdout(Stdio::null());
            let status = query.stderr(Stdio::null()).status();
            if status.is_ok_and(|status| status.success()) {
                return Ok(());
            }
            let ended = !matches!(self.child.try_wait(), Ok(None));
            if ended || Instant::now() > end {
                let mut said = String::new();
                let read = self.errors.rewind();
                let read = read.and_then(|()| self.errors.read_to_string(&mut said));
                return Err(BenchError::Live(match (read, said.lines().last()) {
                    (Ok(_), Some(line)) => format!("what was started says: {line}"),
                    _ => "what was started does not answer, and says nothing".to_owned(),
                }));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// CPU time so far with that of the processes that it has started, s.
    pub(crate) fn cpu_s(&self) -> f64 {
        let family = process_tree(self.id());
        family.into_iter().map(cpu_s).sum()
    }

    /// Resident memory of it and of the processes that it has started, MB.
    pub(crate) fn resident_mb(&self) -> f64 {
        let family = process_tree(self.id());
        family.into_iter().map(resident_mb).sum()
    }
}

impl Drop for BenchProcess {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        drop(self.child.stdin.take());
        let end = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start_error(name: &str, error: &std::io::Error) -> BenchError {
    BenchError::Live(format!("cannot start {name}: {error}"))
}

/// A process and all its descendants.
fn process_tree(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut next = 0;
    while let Some(&pid) = all.get(next) {
        for task in tasks(pid) {
            // A thread that has just ended has no children to add.
            let children = std::fs::read_to_string(task.join("children")).unwrap_or_default();
            let pids = children.split_whitespace();
            all.extend(pids.filter_map(|pid| pid.parse::<u32>().ok()));
        }
        next += 1;
    }
    all
}

fn tasks(pid: u32) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task"));
    let entries = entries.into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// CPU time of the threads that a process has now, s.
fn cpu_s(pid: u32) -> f64 {
    let mut ns = 0.0;
    for task in tasks(pid) {
        let text = std::fs::read_to_string(task.join("schedstat")).unwrap_or_default();
        let first = text.split_whitespace().next();
        ns += first.and_then(|text| text.parse().ok()).unwrap_or(0.0);
    }
    ns / 1e9
}

/// Proportional memory, MB: pages that several processes share count in part.
fn resident_mb(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok());
    kib.unwrap_or(0.0) * 1024.0 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_without_an_answer_is_quoted() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no socket >&2"]);
        let mut process = BenchProcess::start(command).unwrap();
        let never = || Ok(Command::new("false"));
        let error = process.await_answer(never).unwrap_err().to_string();
        assert_eq!(error, "what was started says: no socket");
    }

    #[test]
    fn process_is_measured_with_its_children() {
        let mut command = Command::new("sh");
        command.args(["-c", "sh -c 'echo up; while :; do :; done'; true"]);
        let process = BenchProcess::start_and_read(command).unwrap();
        let pid = process.id();
        assert!(process_tree(pid).len() > 1);
        assert!(process.resident_mb() > 0.0);
        let first = process.cpu_s();
        std::thread::sleep(Duration::from_millis(100));
        assert!(process.cpu_s() > first);
        for child in process_tree(pid).into_iter().skip(1) {
            let child = nix::unistd::Pid::from_raw(child.cast_signed());
            nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGKILL).unwrap();
        }
        drop(process);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}
