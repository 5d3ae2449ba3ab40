//! One reading process, as Consort sees it.

use super::request::{PACKET_BYTES, Packet, ReplyPart};
use crate::enact::RUN_MARKER;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, recv, sendmsg, socketpair,
};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Words by which `/proc/self/exe` is made to call [`reader_main`](super::reader_main).
static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Has code be read by a helper process from now on: `/proc/self/exe`, started with these words,
/// which must call [`reader_main`](super::reader_main). Without this call the caller's own thread
/// reads, as in tests of this crate.
pub fn use_helper(words: Vec<OsString>) {
    // Set once by `main`; a second call could only repeat the first.
    let _ = WORDS.set(words);
}

/// Returns true if helpers can be started.
pub(super) fn has_helpers() -> bool {
    WORDS.get().is_some()
}

/// CPU time of all helpers so far, ns. One counter for the process: it is a part of Consort's own
/// cost, which is that of the process.
static CPU_NS: AtomicU64 = AtomicU64::new(0);

/// CPU time of all helpers so far, ns.
pub(crate) fn cpu_ns() -> u64 {
    CPU_NS.load(Ordering::Relaxed)
}

/// Progress of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplyProgress {
    Done(Vec<u8>),
    Waiting,
    /// The helper has ended.
    Ended,
}

/// A running helper.
#[derive(Debug)]
pub(super) struct Helper {
    child: Child,
    socket: OwnedFd,
    /// True once it is in its loop: before that it waits for its own program's pages.
    pub(super) is_up: bool,
    /// Parts of the reply so far.
    reply: Vec<u8>,
    cpu_ns: u64,
    packet: Vec<u8>,
}

impl Helper {
    /// Starts a helper; `None` if there are no words to start one with.
    pub(super) fn start() -> Option<io::Result<Self>> {
        WORDS.get().map(|words| {
            let flags = SockFlag::SOCK_CLOEXEC;
            let (socket, theirs) =
                socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
            let child = Command::new("/proc/self/exe")
                .arg0("consort-reader")
                .args(words)
                .env_remove(RUN_MARKER)
                // What a dying helper may print goes to a socket that is not read as text; not
                // every user may open /dev/null.
                .stderr(Stdio::from(theirs.try_clone()?))
                .stdout(Stdio::from(theirs.try_clone()?))
                .stdin(Stdio::from(theirs))
                .spawn()?;
            Ok(Self {
                child,
                socket,
                is_up: false,
                reply: Vec::new(),
                cpu_ns: 0,
                packet: vec![0; PACKET_BYTES],
            })
        })
    }

    /// Sends a request, with a file if it needs one. `EAGAIN` if too many wait, other errors if the
    /// helper has ended.
    pub(super) fn send(&mut self, packet: &Packet, memory: Option<&File>) -> Result<(), Errno> {
        let bytes = serde_json::to_vec(packet).map_err(|_| Errno::EINVAL)?;
        let fds: Vec<i32> = memory.iter().map(|file| file.as_raw_fd()).collect();
        let rights = [ControlMessage::ScmRights(&fds)];
        let rights = &rights[..usize::from(!fds.is_empty())];
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        let parts = [IoSlice::new(&bytes)];
        sendmsg::<()>(self.socket.as_raw_fd(), &parts, rights, flags, None).map(drop)
    }

    /// Waits up to `time` for a packet, and reads the packets that have come, up to the end of a reply.
    pub(super) fn receive_reply(&mut self, time: Duration) -> ReplyProgress {
        let mut may_wait = !time.is_zero();
        loop {
            let len = match recv(
                self.socket.as_raw_fd(),
                &mut self.packet,
                MsgFlags::MSG_DONTWAIT,
            ) {
                Ok(len) if len > 0 => len,
                Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) if may_wait => {
                    may_wait = false;
                    let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
                    let time_ms = u16::try_from(time.as_millis()).unwrap_or(u16::MAX);
                    // Interrupted or not, the socket shows what there is.
                    let _ = poll(&mut fds, time_ms);
                    continue;
                }
                Err(Errno::EAGAIN) => return ReplyProgress::Waiting,
                _ => return ReplyProgress::Ended,
            };
            let Some(part) = ReplyPart::from_packet(&self.packet[..len]) else {
                return ReplyProgress::Ended;
            };
            let spent_ns = part.cpu_ns.saturating_sub(self.cpu_ns);
            CPU_NS.fetch_add(spent_ns, Ordering::Relaxed);
            self.cpu_ns = part.cpu_ns;
            if !self.is_up {
                self.is_up = true;
                continue;
            }
            self.reply.extend(part.bytes);
            if !part.has_next {
                return ReplyProgress::Done(std::mem::take(&mut self.reply));
            }
        }
    }

    /// CPU time of this helper so far, ns.
    pub(super) fn spent_ns(&self) -> u64 {
        self.cpu_ns
    }

    /// Returns true if an answer, or a part of one, waits to be taken.
    pub(super) fn is_answered(&self) -> bool {
        let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    }

    /// Returns true if the process sleeps: it waits for a page or a file, not for a CPU.
    pub(super) fn sleeps(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        let state = stat.ok().and_then(|stat| {
            let (_, fields) = stat.rsplit_once(") ")?;
            fields.chars().next()
        });
        state.is_some_and(|state| matches!(state, 'D' | 'S'))
    }

    /// Kills the process; the child is to be waited for when it has ended. A kernel that waits for a
    /// page may let it live on for any time.
    pub(super) fn abandon(mut self) -> Child {
        // It fails only for one that has ended already.
        let _ = self.child.kill();
        self.child
    }
}
