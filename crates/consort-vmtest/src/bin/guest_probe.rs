//! Checks, inside a guest, what the kernel under test offers to Consort.
//!
//! `guest-probe perf` takes software-clock samples of its own thread and prints what came.
//! `guest-probe threads N` starts N named threads and prints each one's mask.
//! `guest-probe masks FIRST` prints the mask of each thread of the workload, whose programs have
//! higher process ids than `FIRST`. `guest-probe cookies NAME...` prints the core-scheduling cookie
//! of each thread whose name begins so, and of each that has one.
//!
//! Pitfall: emulated time means nothing, so both work until something has happened, with a bound
//! in iterations.

use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use perf_event_open_sys as sys;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

const PAGE_BYTES: usize = 4096;
const DATA_PAGES: usize = 8;
const PERIOD_NS: u64 = 1_000_000;
/// Bytes of ring buffer that mean "sampling works": ten records of header and one address.
const ENOUGH_BYTES: u64 = 160;
const WORK_LIMIT: u64 = 20_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["perf"] => check_sampling(),
        ["threads", count] => print_threads(count),
        ["masks", first] => print_masks(first),
        ["cookies", ref names @ ..] => print_cookies(names),
        _ => Err("usage: guest-probe perf | threads N | masks FIRST | cookies NAME...".into()),
    };
    result.map_or_else(
        |error| {
            eprintln!("guest-probe: {error}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

/// Works until samples have come, and prints their size, bytes.
fn check_sampling() -> Result<(), Box<dyn std::error::Error>> {
    let event = open_clock()?;
    let head = map_head(event.as_fd())?;
    for _ in 0..WORK_LIMIT {
        black_box((0..100_000u64).fold(0, |sum, i| black_box(sum ^ i)));
        if head.load(Ordering::Acquire) >= ENOUGH_BYTES {
            println!("sampling works");
            return Ok(());
        }
    }
    Err(format!("only {} bytes of samples", head.load(Ordering::Acquire)).into())
}

fn open_clock() -> Result<OwnedFd, std::io::Error> {
    let mut attr = sys::bindings::perf_event_attr {
        type_: sys::bindings::PERF_TYPE_SOFTWARE,
        size: size_of::<sys::bindings::perf_event_attr>() as u32,
        config: u64::from(sys::bindings::PERF_COUNT_SW_CPU_CLOCK),
        sample_type: u64::from(sys::bindings::PERF_SAMPLE_IP),
        ..Default::default()
    };
    attr.__bindgen_anon_1.sample_period = PERIOD_NS;
    attr.set_exclude_kernel(1);
    let flags = u64::from(sys::bindings::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: `attr` is a valid attribute block with its size set, exclusively borrowed.
    let fd = unsafe { sys::perf_event_open(&mut attr, 0, -1, -1, flags) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor; it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Maps the ring buffer; returns the kernel's count of the bytes that it has written to it.
fn map_head(event: BorrowedFd<'_>) -> Result<&'static AtomicU64, Box<dyn std::error::Error>> {
    let length = NonZeroUsize::new((1 + DATA_PAGES) * PAGE_BYTES).ok_or("empty mapping")?;
    let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
    let page = unsafe { mmap(None, length, access, MapFlags::MAP_SHARED, event, 0) }?;
    let page = page.as_ptr().cast::<sys::bindings::perf_event_mmap_page>();
    // SAFETY: the first page of the mapping is this structure (perf_event_open(2)), it is aligned
    // to a page, is never unmapped, and only the kernel writes the field.
    Ok(unsafe { AtomicU64::from_ptr(&raw mut (*page).data_head) })
}

/// Prints `thread COMM MASK` for each of some named threads, read through `/proc/<pid>/task`.
fn print_threads(count: &str) -> Result<(), Box<dyn std::error::Error>> {
    let count: usize = count.parse()?;
    let all_seen = Arc::new(Barrier::new(count + 1));
    for index in 0..count {
        let all_seen = Arc::clone(&all_seen);
        std::thread::Builder::new()
            .name(format!("probe-{index}"))
            .spawn(move || all_seen.wait())?;
    }
    print_tasks()?;
    all_seen.wait();
    Ok(())
}

/// Prints `thread PID TID MASK COMM` for each thread of the workload.
fn print_masks(first: &str) -> Result<(), Box<dyn std::error::Error>> {
    let first: u64 = first.parse()?;
    for task in tasks()?.iter().filter(|task| task.pid > first) {
        // One that has ended meanwhile has neither a name nor a mask.
        let (Ok(comm), Ok(mask)) = (task.comm(), task.mask()) else {
            continue;
        };
        if ["fp-", "int-"].iter().any(|kind| comm.starts_with(kind)) {
            println!("thread {} {} {mask} {comm}", task.pid, task.tid);
        }
    }
    Ok(())
}

/// Prints `cookie PID TID ID COMM` for each thread that is named or has a cookie.
fn print_cookies(names: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    for task in tasks()? {
        let Ok(comm) = task.comm() else {
            continue;
        };
        let cookie = cookie(task.tid).unwrap_or(0);
        if cookie != 0 || names.iter().any(|name| comm.starts_with(name)) {
            println!("cookie {} {} {cookie} {comm}", task.pid, task.tid);
        }
    }
    Ok(())
}

/// A thread in `/proc`.
struct ProcTask {
    pid: u64,
    tid: u64,
}

impl ProcTask {
    fn read(&self, file: &str) -> Result<String, std::io::Error> {
        std::fs::read_to_string(format!("/proc/{}/task/{}/{file}", self.pid, self.tid))
    }

    fn comm(&self) -> Result<String, std::io::Error> {
        Ok(self.read("comm")?.trim().to_owned())
    }

    /// The CPUs that it may use, as Linux writes them.
    fn mask(&self) -> Result<String, std::io::Error> {
        let status = self.read("status")?;
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        Ok(mask.unwrap_or("none").trim().to_owned())
    }
}

/// Every thread.
fn tasks() -> Result<Vec<ProcTask>, std::io::Error> {
    let of = |pid: u64| {
        let tids = numbers(&format!("/proc/{pid}/task")).unwrap_or_default();
        tids.into_iter().map(move |tid| ProcTask { pid, tid })
    };
    Ok(numbers("/proc")?.into_iter().flat_map(of).collect())
}

/// Entries of a folder that are numbers.
fn numbers(folder: &str) -> Result<Vec<u64>, std::io::Error> {
    let names = std::fs::read_dir(folder)?.filter_map(Result::ok);
    let numbers = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(numbers.collect())
}

fn cookie(tid: libc::c_ulong) -> Result<u64, std::io::Error> {
    let (get, one_thread): (libc::c_ulong, libc::c_ulong) = (0, 0);
    let mut cookie = 0u64;
    // SAFETY: the kernel writes eight bytes to `cookie`, which lives until the call returns.
    let answer = unsafe { libc::prctl(libc::PR_SCHED_CORE, get, tid, one_thread, &raw mut cookie) };
    match answer {
        0 => Ok(cookie),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn print_tasks() -> Result<(), std::io::Error> {
    let pid = u64::from(std::process::id());
    for tid in numbers("/proc/self/task")? {
        let task = ProcTask { pid, tid };
        println!("thread {} {}", task.comm()?, task.mask()?);
    }
    Ok(())
}
