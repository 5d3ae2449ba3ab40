//! Programs to be managed.

use super::super::support::{descriptors_that, ever, only, set_mask};
use nix::unistd::{ForkResult, fork};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread::sleep;
use std::time::Duration;

const BEAT: Duration = Duration::from_millis(3);
/// Lifetime of a grandchild whose parent is dead.
const ORPHAN_LIFE: Duration = Duration::from_millis(1500);

/// Creates threads and processes without end; every process leaves an orphan. The threads count
/// their work in files of a folder, if one is given; one of them then never rests.
pub fn busy(args: &[OsString]) -> ExitCode {
    if let Some(dir) = args.first() {
        let count = counter(dir, "spin");
        std::thread::spawn(move || (0..u64::MAX).for_each(count));
    }
    for at in 0..3 {
        let count = args.first().map(|dir| counter(dir, &at.to_string()));
        std::thread::spawn(move || {
            for beat in 0u64.. {
                count.iter().for_each(|count| count(beat));
                std::thread::spawn(|| sleep(7 * BEAT));
                if beat % 8 == 0 {
                    leave_orphan();
                }
                sleep(BEAT);
            }
        });
    }
    ever()
}

/// Writes a number to a file of its own.
fn counter(dir: &OsString, name: &str) -> impl Fn(u64) + Send + use<> {
    let file = File::create(Path::new(dir).join(name)).unwrap();
    move |number| file.write_all_at(&number.to_ne_bytes(), 0).unwrap()
}

fn leave_orphan() {
    // SAFETY: the child only sleeps, forks, waits for no lock and exits.
    if let Ok(ForkResult::Parent { child }) = unsafe { fork() } {
        // The child lives a few beats; collecting it later is another thread's affair.
        std::thread::spawn(move || nix::sys::wait::waitpid(child, None));
        return;
    }
    sleep(2 * BEAT);
    // SAFETY: as above; this process has a single thread.
    if let Ok(ForkResult::Child) = unsafe { fork() } {
        sleep(ORPHAN_LIFE);
    }
    // SAFETY: ends the process without running anybody's exit handlers.
    unsafe { nix::libc::_exit(0) }
}

/// Keeps one thread busy for ever.
pub fn spin() -> ExitCode {
    loop {
        std::hint::spin_loop();
    }
}

/// Has a thread that pins itself to the given CPU, and sleeps.
pub fn pin_and_sleep(args: &[OsString]) -> ExitCode {
    let pu: u32 = args[0].to_str().unwrap().parse().unwrap();
    std::thread::spawn(move || {
        set_mask(nix::unistd::gettid().as_raw().cast_unsigned(), &only(pu));
        ever::<()>();
    });
    ever()
}

/// Executes `sleep` from a thread that is not the leader, on a line of input.
pub fn exec_from_thread() -> ExitCode {
    std::thread::spawn(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
        let error = Command::new("sleep").arg("60").exec();
        panic!("{error}");
    });
    ever()
}

/// Writes the numbers of its open descriptors to a file.
pub fn list_descriptors(args: &[OsString]) -> ExitCode {
    std::fs::write(&args[0], descriptors_that(|_| true)).unwrap();
    ExitCode::SUCCESS
}
