//! Threads as `/proc` shows them.

use crate::GuestResult;
use consort_core::ThreadId;
use std::fs;
use std::path::PathBuf;

/// The threads of a process, once it has `number` of them.
pub(crate) fn wait_for_threads(pid: u32, number: usize) -> GuestResult<Vec<ThreadId>> {
    loop {
        let mut found = Vec::new();
        for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
            let tid: u32 = entry?.file_name().to_string_lossy().parse()?;
            found.push(thread(pid, tid)?);
        }
        if found.len() >= number {
            found.sort_unstable();
            return Ok(found);
        }
        std::thread::yield_now();
    }
}

fn thread(pid: u32, tid: u32) -> GuestResult<ThreadId> {
    let mut thread = ThreadId {
        pid,
        tid,
        start_ticks: 0,
    };
    thread.start_ticks = stat_field(thread, 22)?;
    Ok(thread)
}

/// The CPU on which the thread runs or ran last.
pub(crate) fn processor(thread: ThreadId) -> GuestResult<u32> {
    Ok(u32::try_from(stat_field(thread, 39)?)?)
}

/// Running time of the thread, clock ticks.
pub(crate) fn run_ticks(thread: ThreadId) -> GuestResult<u64> {
    Ok(stat_field(thread, 14)? + stat_field(thread, 15)?)
}

/// The CPUs that the thread may use, in the kernel's notation.
pub(crate) fn mask(thread: ThreadId) -> GuestResult<String> {
    line_value(thread, "status", "Cpus_allowed_list:")
}

pub(crate) fn is_governed(thread: ThreadId) -> GuestResult<bool> {
    let value = line_value(thread, "sched", "ext.enabled")?;
    Ok(value.trim_start_matches([':', ' ']) == "1")
}

/// State of the kernel's sched_ext scheduler, in the kernel's words.
pub(crate) fn kernel_state() -> GuestResult<String> {
    Ok(fs::read_to_string("/sys/kernel/sched_ext/state")?
        .trim()
        .to_owned())
}

fn file(thread: ThreadId, name: &str) -> PathBuf {
    format!("/proc/{}/task/{}/{name}", thread.pid, thread.tid).into()
}

fn stat_field(thread: ThreadId, number: usize) -> GuestResult<u64> {
    let text = fs::read_to_string(file(thread, "stat"))?;
    let behind_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let field = behind_name.split_whitespace().nth(number - 3);
    Ok(field.ok_or("a short stat")?.parse()?)
}

fn line_value(thread: ThreadId, name: &str, key: &str) -> GuestResult<String> {
    let path = file(thread, name);
    let text = fs::read_to_string(&path)?;
    let value = text.lines().find_map(|line| line.strip_prefix(key));
    let value = value.ok_or_else(|| format!("no {key} in {}", path.display()))?;
    Ok(value.trim().to_owned())
}
