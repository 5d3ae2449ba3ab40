//! One run of qemu: arguments, the console, the end. A bounded number run at once: each keeps a
//! host thread busy, and in a starved guest a quantum lasts for seconds.

use crate::console::GuestOutput;
use crate::error::VmError;
use crate::guest_tools::GuestTools;
use crate::guest_topology::GuestTopology;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Condvar, LazyLock, Mutex, PoisonError, mpsc};
use std::thread::available_parallelism;
use std::time::Duration;

/// Emulation on several host threads makes some kernels oops while they patch their own code.
pub(crate) const ACCELERATOR: &str = "tcg,thread=single";
/// A model whose L2 is private to the core; `max` would show it shared by the package.
const PROCESSOR: &str = "Skylake-Server-v4";
/// `loglevel=1` keeps kernel messages out of the sections; a panic is still printed.
const KERNEL_COMMAND_LINE: &str = "console=ttyS0 quiet loglevel=1 panic=-1 random.trust_cpu=on";

/// Boots the archive and returns what the guest wrote.
pub(crate) fn run(
    host: &GuestTools,
    topology: GuestTopology,
    initramfs: &Path,
    limit: Duration,
) -> Result<GuestOutput, VmError> {
    let _place = wait_for_place();
    let complaints = initramfs.with_extension("stderr");
    let mut child = spawn(host, topology, initramfs, &complaints)?;
    let consoles = read_in_background(child.stdout.take());
    let in_time = consoles.recv_timeout(limit);
    // Both fail only for a process that is gone already.
    let _ = child.kill();
    let _ = child.wait();
    match in_time {
        Ok(console) => check_complete(&console, &complaints),
        Err(_) => Err(VmError::Timeout {
            limit,
            // The reader ends with qemu, so this does not wait.
            tail: GuestOutput::parse(&consoles.recv().unwrap_or_default()).tail(),
        }),
    }
}

fn spawn(
    host: &GuestTools,
    topology: GuestTopology,
    initramfs: &Path,
    complaints: &Path,
) -> Result<Child, VmError> {
    let stderr = File::create(complaints).map_err(VmError::io("write", complaints))?;
    Command::new(&host.qemu)
        .args(["-accel", ACCELERATOR, "-cpu", PROCESSOR])
        .args(["-nodefaults", "-display", "none", "-no-reboot"])
        .args(["-serial", "stdio"])
        .args(topology.qemu_arguments())
        .arg("-kernel")
        .arg(&host.kernel)
        .arg("-initrd")
        .arg(initramfs)
        .args(["-append", KERNEL_COMMAND_LINE])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .spawn()
        .map_err(VmError::io("run", &host.qemu))
}

/// Sends the whole console once qemu has closed it.
fn read_in_background(stdout: Option<ChildStdout>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stdout) = stdout {
            // What was read before an error is still worth showing.
            let _ = stdout.read_to_end(&mut bytes);
        }
        // Fails if the test has been given up.
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

fn check_complete(console: &str, complaints: &Path) -> Result<GuestOutput, VmError> {
    let outcome = GuestOutput::parse(console);
    if outcome.is_done() {
        return Ok(outcome);
    }
    Err(VmError::Died {
        tail: outcome.tail() + &errors(complaints),
    })
}

/// Messages of qemu itself, without its warnings of processor features that it cannot emulate.
fn errors(complaints: &Path) -> String {
    let text = std::fs::read_to_string(complaints).unwrap_or_default();
    let errors = text.lines().filter(|line| !line.contains("warning: TCG"));
    errors.fold(String::new(), |all, line| all + "\n" + line)
}

/// One for each CPU, and no more than memory bears: each guest has one or two GiB.
static PLACES: LazyLock<usize> =
    LazyLock::new(|| available_parallelism().map_or(1, |cpus| cpus.get().min(6)));

static TAKEN: Mutex<usize> = Mutex::new(0);
static GIVEN_BACK: Condvar = Condvar::new();

/// A place for one guest, given back when dropped.
struct GuestPlace(());

fn wait_for_place() -> GuestPlace {
    let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let full = GIVEN_BACK.wait_while(taken, |taken| *taken >= *PLACES);
    *full.unwrap_or_else(PoisonError::into_inner) += 1;
    GuestPlace(())
}

impl Drop for GuestPlace {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        GIVEN_BACK.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn no_more_guests_than_places() {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let _place = wait_for_place();
                    let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    std::thread::yield_now();
                    running.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert!((1..=*PLACES).contains(&most.load(Ordering::SeqCst)));
    }
}
