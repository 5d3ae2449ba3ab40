//! Programs that put something else where their code was: nothing of that is waited for, and only
//! the file that was mapped is read.

use super::elf::{Elf, FP_64};
use super::harness::{Held, all_pus, can_sample};
use crate::skip::skipped;
use consort_linux::perf::record::PerfRecord;
use consort_linux::sampling::{CodeCounts, SampleProfiler, Sampler, SamplerConfig};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;
use std::sync::mpsc;
use std::thread::{sleep, spawn};
use std::time::Duration;

/// Time after which a test that hangs fails.
const HANGS_AFTER: Duration = Duration::from_secs(60);

/// Returns true if this host lets programs written as bytes be sampled; reports a skip if not.
fn can_try() -> bool {
    if cfg!(target_arch = "x86_64") {
        return can_sample();
    }
    skipped("the program is written in x86 machine code");
    false
}

/// Waits until the process executes `program` and has run for some clock ticks.
fn wait_until_busy(pid: u32, program: &Path) {
    let runs = || fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program);
    let ticks = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("alive");
        let behind_name = stat.rsplit_once(')').expect("a name").1.to_owned();
        let field = behind_name
            .split_whitespace()
            .nth(11)
            .map(str::parse::<u64>);
        field.expect("fields").expect("a number")
    };
    while !runs() || ticks() < 5 {
        sleep(Duration::from_millis(1));
    }
}

/// Samples a program whose file is moved away before it ends and before its code was read;
/// `replace` is given the old and the new path.
fn code_after(replace: impl FnOnce(&Path, &Path)) -> CodeCounts {
    // It runs for seconds unless it is killed.
    let elf = Elf::class_64(FP_64);
    let mut child = Held::new(&elf.path, &[]);
    let sampler = Sampler::attach_launch(child.pid(), &all_pus(), SamplerConfig::default());
    let mut sampler = sampler.expect("this host can sample");
    child.let_go();
    wait_until_busy(child.pid(), &elf.path);
    let moved = elf.path.with_extension("moved");
    fs::rename(&elf.path, &moved).expect("moved");
    replace(&elf.path, &moved);
    child.0.kill().expect("our child");
    child.0.wait().expect("our child");
    let mut batch = sampler.drain_all();
    // A busy host gives the shell a sample too before it executes the program: its files are there.
    batch.records.retain(|record| match record {
        PerfRecord::Sample { ip, .. } => Elf::PAGE.contains(ip),
        _ => true,
    });
    profile(batch, &elf.path)
}

/// Profiles a batch in another thread, which is freed should it be stuck in a FIFO.
fn profile(batch: consort_linux::sampling::RecordBatch, fifo: &Path) -> CodeCounts {
    let (sender, done) = mpsc::channel();
    let profiling = spawn(move || {
        let mut profiler = SampleProfiler::new(Path::new("/"));
        profiler.apply(&batch);
        // Nobody waits any more if this took too long.
        let _ = sender.send(profiler.code_counts());
    });
    let counts = done.recv_timeout(HANGS_AFTER);
    if counts.is_err() {
        let mut write = OpenOptions::new();
        write.write(true).custom_flags(nix::libc::O_NONBLOCK);
        // Both ends of a FIFO must be opened for either to go on.
        drop(write.open(fifo));
    }
    let counts = counts.expect("reading code hangs");
    profiling.join().expect("no panic");
    counts
}

fn make_fifo(path: &Path) {
    nix::unistd::mkfifo(path, Mode::S_IRWXU).expect("a FIFO");
}

/// Checks that no code was read of a program that is gone, from a file that is not the one that was
/// mapped; code of another instruction set would be counted differently.
fn assert_unread(counts: CodeCounts) {
    assert!(counts.unreadable > 0, "{counts:?}");
    assert_eq!(
        (counts.from_file, counts.foreign_arch),
        (0, 0),
        "{counts:?}"
    );
}

#[test]
fn a_fifo_in_place_of_a_program_does_not_hang() {
    if can_try() {
        assert_unread(code_after(|path, _| make_fifo(path)));
    }
}

#[test]
fn a_link_to_a_fifo_in_place_of_a_program_does_not_hang() {
    if can_try() {
        let folder = tempfile::tempdir().expect("a directory");
        let fifo = folder.path().join("fifo");
        make_fifo(&fifo);
        assert_unread(code_after(|path, _| symlink(&fifo, path).expect("a link")));
    }
}

#[test]
fn a_device_in_place_of_a_program_is_not_read() {
    if can_try() {
        let zero = |path: &Path, _: &Path| {
            let device = makedev(1, 5);
            let made = mknod(path, SFlag::S_IFCHR, Mode::S_IRWXU, device);
            if made.is_err() {
                // Devices are root's to make.
                symlink("/dev/zero", path).expect("a link");
            }
        };
        assert_unread(code_after(zero));
    }
}

#[test]
fn another_program_in_place_of_the_first_is_not_read() {
    if can_try() {
        let folder = tempfile::tempdir().expect("a directory");
        let other = folder.path().join("other");
        fs::write(&other, [0x90; 4096]).expect("written");
        assert_unread(code_after(|path, _| {
            fs::rename(&other, path).expect("moved");
        }));
    }
}

#[test]
fn a_link_to_the_very_file_is_not_followed() {
    if can_try() {
        assert_unread(code_after(|path, moved| {
            symlink(moved, path).expect("a link");
        }));
    }
}
