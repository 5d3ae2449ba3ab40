//! `prctl(PR_SCHED_CORE)`, and the threads of Consort that keep cookies in existence.

use nix::errno::Errno;
use nix::libc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Stack of a keeper, bytes, which does nothing but this system call.
const STACK_BYTES: usize = 1 << 16;

/// The kernel's core scheduling. Cookie 0 means that a thread has none.
pub(crate) trait CoreScheduling {
    /// A value that keeps a cookie in existence.
    type Keeper: CookieKeeper;

    /// Reads a thread's cookie.
    fn cookie(&self, tid: u32) -> Result<u64, Errno>;

    /// Takes a thread's cookie away.
    fn clear(&self, tid: u32) -> Result<(), Errno>;

    /// Makes a new cookie that no thread has but its keeper.
    fn create(&self) -> Result<Self::Keeper, Errno>;
}

/// A cookie that exists as long as this value does.
pub(crate) trait CookieKeeper {
    /// Number of the cookie.
    fn id(&self) -> u64;

    /// Gives the cookie to a thread.
    fn share(&self, tid: u32) -> Result<(), Errno>;
}

/// The host's kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostCoreScheduling;

impl HostCoreScheduling {
    /// Reads the calling thread's cookie.
    pub(crate) fn own_cookie(self) -> Result<u64, Errno> {
        get(0)
    }
}

impl CoreScheduling for HostCoreScheduling {
    type Keeper = KeeperThread;

    fn cookie(&self, tid: u32) -> Result<u64, Errno> {
        get(kernel_tid(tid)?)
    }

    fn clear(&self, tid: u32) -> Result<(), Errno> {
        // The calling thread gives away its own cookie, so it must have none.
        match self.own_cookie()? {
            0 => share_own_cookie(kernel_tid(tid)?),
            _ => Err(Errno::EBUSY),
        }
    }

    fn create(&self) -> Result<KeeperThread, Errno> {
        KeeperThread::start()
    }
}

/// A thread of this process that has a cookie, and gives it to other threads on request.
#[derive(Debug)]
pub(crate) struct KeeperThread {
    id: u64,
    orders: Sender<libc::pid_t>,
    answers: Receiver<Result<u64, Errno>>,
}

impl KeeperThread {
    fn start() -> Result<Self, Errno> {
        let (orders, to_do) = channel();
        let (answer, answers) = channel();
        let builder = thread::Builder::new().name("consort-cookie".to_owned());
        let spawned = builder.stack_size(STACK_BYTES).spawn(move || {
            serve_orders(&to_do, &answer);
        });
        spawned.map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(libc::EAGAIN)))?;
        let id = receive_answer(&answers)?;
        Ok(Self {
            id,
            orders,
            answers,
        })
    }
}

impl CookieKeeper for KeeperThread {
    fn id(&self) -> u64 {
        self.id
    }

    fn share(&self, tid: u32) -> Result<(), Errno> {
        let tid = kernel_tid(tid)?;
        self.orders.send(tid).map_err(|_| Errno::ECHILD)?;
        receive_answer(&self.answers).map(drop)
    }
}

/// Waits for a keeper's answer; a keeper lives until it is dropped.
fn receive_answer(answers: &Receiver<Result<u64, Errno>>) -> Result<u64, Errno> {
    answers.recv().unwrap_or(Err(Errno::ECHILD))
}

/// Creates a cookie, sends its number, and gives it to threads until the orders end.
fn serve_orders(orders: &Receiver<libc::pid_t>, answer: &Sender<Result<u64, Errno>>) {
    let made = create_own_cookie();
    let is_made = made.is_ok();
    if answer.send(made).is_err() || !is_made {
        return;
    }
    for tid in orders {
        if answer.send(share_own_cookie(tid).map(|()| 0)).is_err() {
            return;
        }
    }
}

/// Gives the calling thread a new cookie; returns its number.
fn create_own_cookie() -> Result<u64, Errno> {
    call(libc::PR_SCHED_CORE_CREATE, 0, std::ptr::null_mut())?;
    match get(0)? {
        // The kernel hides numbers until it has random ones; then no cookie could be recognised later.
        0 => Err(Errno::EAGAIN),
        id => Ok(id),
    }
}

fn get(tid: libc::pid_t) -> Result<u64, Errno> {
    let mut cookie = 0;
    call(libc::PR_SCHED_CORE_GET, tid, &raw mut cookie)?;
    Ok(cookie)
}

/// Gives a thread the calling thread's cookie.
fn share_own_cookie(tid: libc::pid_t) -> Result<(), Errno> {
    call(libc::PR_SCHED_CORE_SHARE_TO, tid, std::ptr::null_mut())
}

/// Makes the system call. `tid` 0 is the calling thread; `cookie` is null, or points to a number
/// that the kernel may write.
fn call(command: libc::c_int, tid: libc::pid_t, cookie: *mut u64) -> Result<(), Errno> {
    let scope_thread: libc::c_ulong = 0;
    let [command, tid] = [command, tid].map(|word| libc::c_long::from(word).cast_unsigned());
    // SAFETY: the kernel writes eight bytes to `cookie` for the command that reads one, for which
    // it points to a number that lives until the call returns, and nothing for others.
    let answer = unsafe { libc::prctl(libc::PR_SCHED_CORE, command, tid, scope_thread, cookie) };
    Errno::result(answer).map(drop)
}

/// Returns a tid as the kernel takes it; refuses 0, which is no thread's tid and would mean the
/// caller.
fn kernel_tid(tid: u32) -> Result<libc::pid_t, Errno> {
    match libc::pid_t::try_from(tid) {
        Ok(tid) if tid > 0 => Ok(tid),
        _ => Err(Errno::ESRCH),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip::skipped;
    use std::process::Command;

    #[test]
    fn cookie_is_shared_and_taken_away() {
        if let Err(errno) = HostCoreScheduling.own_cookie() {
            return skipped(format!("no core scheduling here: {errno}"));
        }
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let keeper = HostCoreScheduling.create().unwrap();
        assert_eq!(HostCoreScheduling.cookie(child.id()), Ok(0));
        keeper.share(child.id()).unwrap();
        assert_eq!(HostCoreScheduling.cookie(child.id()), Ok(keeper.id()));
        assert_eq!(HostCoreScheduling.own_cookie(), Ok(0));
        HostCoreScheduling.clear(child.id()).unwrap();
        assert_eq!(HostCoreScheduling.cookie(child.id()), Ok(0));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn tid_0_is_refused() {
        assert_eq!(HostCoreScheduling.cookie(0), Err(Errno::ESRCH));
    }
}
