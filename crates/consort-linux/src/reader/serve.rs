//! The reading itself, and the process that does it.

use super::request::{FileRef, PACKET_BYTES, PART_BYTES, Packet, ReadRequest, ReplyPart};
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::libc;
use nix::libc::{O_CLOEXEC, O_DIRECTORY, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_PATH};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, RecvMsg, SockaddrStorage, recvmsg, send};
use nix::sys::stat::{major, minor};
use nix::time::{ClockId, clock_gettime};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufRead, BufReader, IoSliceMut, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Most bytes that are read of one process's list of mappings. 65,530 mappings, the kernel's default
/// limit (`vm.max_map_count`), take about 7 MB with paths of ordinary length; with paths of 4,096
/// bytes they would take 270.
const MAX_MAPS_BYTES: u64 = 16 << 20;
/// Most bytes of that list that are given.
const MAX_REPLY_BYTES: usize = 4 << 20;
/// Most files that are kept open until the round ends.
const MAX_OPEN: usize = 8;

/// Does what requests ask for, and waits as long as that takes.
#[derive(Debug)]
pub(super) struct ReadServer {
    root: PathBuf,
    round: u64,
    /// Files that were opened in this round: programs that live for milliseconds, such as those of
    /// a build, leave samples that each need another page of the same file.
    open: Vec<(FileRef, File)>,
}

impl ReadServer {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            round: 0,
            open: Vec::new(),
        }
    }

    /// The requested bytes; empty if they cannot be read. `memory` is the file that
    /// came with the request.
    pub(super) fn answer(&mut self, packet: &Packet, memory: Option<&File>) -> Vec<u8> {
        if packet.round != self.round {
            self.round = packet.round;
            self.open.clear();
        }
        let answer = match &packet.request {
            ReadRequest::Maps { pid } => {
                let list = File::open(self.root.join(format!("proc/{pid}/maps"))).ok();
                list.map(|list| lines_of_code(BufReader::new(list.take(MAX_MAPS_BYTES))))
            }
            ReadRequest::Memory { start, len } => memory.and_then(|memory| {
                let mut bytes = vec![0; *len];
                memory.read_exact_at(&mut bytes, *start).ok()?;
                Some(bytes)
            }),
            ReadRequest::Code { file, offset, len } => self.open_cached(file).and_then(|file| {
                let mut bytes = vec![0; *len];
                let read = file.read_at(&mut bytes, *offset).ok()?;
                // The last piece of a file may be short.
                bytes.truncate(read);
                Some(bytes)
            }),
            ReadRequest::Change { file } => {
                changed_ns(&self.root, file).map(|ns| ns.to_ne_bytes().to_vec())
            }
        };
        answer.unwrap_or_default()
    }

    fn open_cached(&mut self, file: &FileRef) -> Option<&File> {
        let known = self.open.iter().position(|(of, _)| of == file);
        let index = match known {
            Some(index) => index,
            None => {
                let opened = open(&self.root, file)?;
                if self.open.len() == MAX_OPEN {
                    self.open.remove(0);
                }
                self.open.push((file.clone(), opened));
                self.open.len() - 1
            }
        };
        Some(&self.open[index].1)
    }
}

/// Lines of executable mappings whose code may outlive the process or is the same everywhere: those
/// with a file, and the vDSO.
fn lines_of_code(list: impl BufRead) -> Vec<u8> {
    let mut kept = Vec::new();
    for line in list.split(b'\n').map_while(Result::ok) {
        let mut fields = line.splitn(6, |&byte| byte == b' ');
        let is_executable = fields.nth(1).is_some_and(|prot| prot.contains(&b'x'));
        let name = fields.nth(3).unwrap_or_default().trim_ascii_start();
        if !is_executable || !(name.starts_with(b"/") || name.starts_with(b"[vdso")) {
            continue;
        }
        if kept.len() + line.len() >= MAX_REPLY_BYTES {
            break;
        }
        kept.extend(line);
        kept.push(b'\n');
    }
    kept
}

/// Signals that a terminal, a session or a service manager may send to all processes around Consort;
/// the end of the socket ends this process in any case.
const BLOCKED: [Signal; 9] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGPIPE,
    Signal::SIGTSTP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
];

/// Answers requests from standard input, a socket, until its other end is closed. To be called first
/// thing by a program that is started with the words of [`use_helper`](super::use_helper).
pub fn reader_main() -> ExitCode {
    let socket = io::stdin();
    match isolate_process().and_then(|()| serve(&socket)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn isolate_process() -> nix::Result<()> {
    // So that `ps` shows it apart from its owner; without the name it works as well.
    let _ = nix::sys::prctl::set_name(c"consort-read");
    // A process that waits in the kernel cannot see that the socket is closed.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    BLOCKED.into_iter().collect::<SigSet>().thread_block()?;
    // Out of the terminal's process group. It fails for a group leader, which this is not.
    nix::unistd::setsid()?;
    let _ = nix::unistd::chdir("/");
    // Replies are few and short, and Consort waits for them. Most users may not do this; the
    // budget for waiting is then used up earlier on a crowded host.
    // SAFETY: the call takes numbers only; 0 is the calling process.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -10) };
    Ok(())
}

fn serve(socket: &impl AsRawFd) -> nix::Result<()> {
    let mut server = ReadServer::new(Path::new("/"));
    // The first packet has no request: from now on silence is not that of the start.
    reply(socket, &[])?;
    let mut bytes = vec![0; PACKET_BYTES];
    while let Some((len, memory)) = receive(socket, &mut bytes)? {
        let answer = match serde_json::from_slice(&bytes[..len]) {
            Ok(packet) => server.answer(&packet, memory.as_ref()),
            Err(_) => Vec::new(),
        };
        reply(socket, &answer)?;
    }
    Ok(())
}

/// The next request's length and the file with it; `None` at the end.
fn receive(socket: &impl AsRawFd, bytes: &mut [u8]) -> nix::Result<Option<(usize, Option<File>)>> {
    let mut parts = [IoSliceMut::new(bytes)];
    let mut space = nix::cmsg_space!(libc::c_int);
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let got: RecvMsg<'_, '_, SockaddrStorage> = loop {
        match recvmsg(socket.as_raw_fd(), &mut parts, Some(&mut space), flags) {
            Err(Errno::EINTR) => {}
            got => break got?,
        }
    };
    let mut file = None;
    for message in got.cmsgs()? {
        if let ControlMessageOwned::ScmRights(fds) = message {
            for fd in fds {
                // SAFETY: the kernel has just opened this descriptor for this process alone.
                file = Some(File::from(unsafe { OwnedFd::from_raw_fd(fd) }));
            }
        }
    }
    Ok((got.bytes > 0).then_some((got.bytes, file)))
}

fn reply(socket: &impl AsRawFd, mut answer: &[u8]) -> nix::Result<()> {
    loop {
        let (bytes, rest) = answer.split_at(answer.len().min(PART_BYTES));
        let cpu = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?;
        let part = ReplyPart {
            has_next: !rest.is_empty(),
            cpu_ns: u64::try_from(Duration::from(cpu).as_nanos()).unwrap_or(u64::MAX),
            bytes,
        };
        send(
            socket.as_raw_fd(),
            &part.to_packet(),
            MsgFlags::MSG_NOSIGNAL,
        )?;
        if rest.is_empty() {
            return Ok(());
        }
        answer = rest;
    }
}

// A managed program has given the path of the file behind a mapping, and may have put anything there
// since. Opening a FIFO waits for its other end, opening a device may do anything, and a link leads
// wherever its owner likes. So the path is resolved without opening the file that it names
// (`O_PATH`, `open(2)`), and only a file that is proven to be the regular one that was mapped is
// opened, through the descriptor that the proof is about. Directories on the way may be links:
// only the file counts.
//
// The path is that of the mapping program, in its root and mount namespace (`chroot(2)`,
// containers). So it is tried below the caller's root and below `/proc/PID/root` of the process and
// of its ancestors, which mostly have the same root: a process of a build has ended by the time its
// records are read, and the shell that started it has not.

/// Opens a mapped file for reading; `None` if there is none, or something else in its place.
pub(super) fn open(root: &Path, file: &FileRef) -> Option<File> {
    let found = roots(root, file).find_map(|below| {
        let path = below.join(file.path.trim_start_matches('/'));
        let found = open_with_flags(&path, O_PATH | O_NOFOLLOW | O_CLOEXEC)?;
        is_mapped_file(&found.metadata().ok()?, file).then_some(found)
    })?;
    let found = format!("/proc/self/fd/{}", found.as_raw_fd());
    // Non-blocking, so as not to wait for a process that holds a lease on the file.
    open_with_flags(Path::new(&found), O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
}

/// Time of change of a mapped file, ns since 1970. No mount is entered on the way: the look-up is
/// for file systems of the host, and a program may have mounted one of its own there.
pub(super) fn changed_ns(root: &Path, file: &FileRef) -> Option<u64> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_XDEV);
    let path = file.path.trim_start_matches('/');
    roots(root, file).find_map(|below| {
        let below = open_with_flags(&below, O_PATH | O_DIRECTORY | O_CLOEXEC)?;
        let found = File::from(openat2(&below, path, how).ok()?);
        let found = found.metadata().ok()?;
        let at_ns = i128::from(found.ctime()) * 1_000_000_000 + i128::from(found.ctime_nsec());
        is_mapped_file(&found, file).then(|| u64::try_from(at_ns).ok())?
    })
}

/// Folders that the path may be meant below.
fn roots(root: &Path, file: &FileRef) -> impl Iterator<Item = PathBuf> {
    let of_processes = file.seen_by.iter();
    let of_processes = of_processes.map(|pid| root.join(format!("proc/{pid}/root")));
    std::iter::once(root.to_owned()).chain(of_processes)
}

fn open_with_flags(path: &Path, flags: i32) -> Option<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags).open(path).ok()
}

/// Returns true if this is the regular file that was mapped.
fn is_mapped_file(found: &Metadata, file: &FileRef) -> bool {
    found.is_file() && found.ino() == file.inode && is_same_device(found.dev(), file.device)
}

/// Returns true if a file of device `found` may be one of `mapped`. Major number 0 is for file
/// systems without a device; some of them (btrfs, overlayfs) give a file another number than its
/// mapping, so there only the inode is compared.
fn is_same_device(found: u64, mapped: (u32, u32)) -> bool {
    let found = (major(found), minor(found));
    found.0 == 0 || mapped.0 == 0 || found == (u64::from(mapped.0), u64::from(mapped.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    fn code(root: &Path, path: &str, round: u64) -> Packet {
        let inode = fs::metadata(root.join(path)).map_or(0, |file| file.ino());
        let file = FileRef {
            path: format!("/{path}"),
            device: (0, 0),
            inode,
            seen_by: Vec::new(),
        };
        let request = ReadRequest::Code {
            file,
            offset: 0,
            len: 8,
        };
        Packet { round, request }
    }

    #[test]
    fn file_is_kept_open_until_the_round_ends() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("code"), "code").unwrap();
        let mut server = ReadServer::new(root.path());
        let mut packet = code(root.path(), "code", 1);
        assert_eq!(server.answer(&packet, None), b"code");
        fs::rename(root.path().join("code"), root.path().join("old")).unwrap();
        fs::write(root.path().join("code"), "evil").unwrap();
        assert_eq!(server.answer(&packet, None), b"code");
        packet.round = 2;
        assert_eq!(server.answer(&packet, None), b"");
    }

    #[test]
    fn few_files_are_open_at_a_time() {
        let root = tempfile::tempdir().unwrap();
        let mut server = ReadServer::new(root.path());
        for file in (0..2 * MAX_OPEN).chain(0..2 * MAX_OPEN) {
            let name = format!("code{file:04}");
            fs::write(root.path().join(&name), &name).unwrap();
            let bytes = server.answer(&code(root.path(), &name, 1), None);
            assert_eq!(bytes, name.as_bytes());
            assert!(server.open.len() <= MAX_OPEN);
        }
    }

    #[test]
    fn only_file_code_and_vdso_are_listed() {
        let list = "\
55d0-55e0 r--p 00000000 fe:00 12                         /bin/a b
55e0-55f0 r-xp 00001000 fe:00 12                         /bin/a b
6000-7000 rwxp 00000000 00:00 0 
6000-7000 rwxp 00000000 00:00 0                          [anon:jit]
7fff-8fff r-xp 00000000 00:00 0                          [vdso]
";
        let kept = String::from_utf8(lines_of_code(list.as_bytes())).unwrap();
        let names: Vec<&str> = kept.lines().map(|line| &line[57..]).collect();
        assert_eq!(names, ["/bin/a b", "[vdso]"]);
    }

    #[test]
    fn own_memory_is_read() {
        let word = *b"instructions";
        let memory = File::open("/proc/self/mem").unwrap();
        let mut packet = Packet {
            round: 0,
            request: ReadRequest::Memory {
                start: word.as_ptr().addr() as u64,
                len: word.len(),
            },
        };
        let mut server = ReadServer::new(Path::new("/"));
        assert_eq!(server.answer(&packet, Some(&memory)), word);
        packet.request = ReadRequest::Memory { start: 8, len: 4 };
        assert!(server.answer(&packet, Some(&memory)).is_empty());
    }
}

#[cfg(test)]
mod opening_tests {
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    /// The file `path` below `root`, as if it were mapped.
    fn mapped(root: &Path, path: &str) -> FileRef {
        let file = fs::metadata(root.join(path)).unwrap();
        FileRef {
            path: format!("/{path}"),
            device: (major(file.dev()) as u32, minor(file.dev()) as u32),
            inode: file.ino(),
            seen_by: vec![7, 8],
        }
    }

    #[test]
    fn file_behind_linked_directories_is_opened() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("usr")).unwrap();
        symlink("usr", root.path().join("lib")).unwrap();
        fs::write(root.path().join("usr/code"), "code").unwrap();
        for path in ["usr/code", "lib/code"] {
            let mut text = String::new();
            let mut file = open(root.path(), &mapped(root.path(), path)).unwrap();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "code");
        }
    }

    #[test]
    fn another_inode_is_another_file() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("code"), "code").unwrap();
        let mut file = mapped(root.path(), "code");
        file.inode += 1;
        assert!(open(root.path(), &file).is_none());
        assert!(changed_ns(root.path(), &file).is_none());
    }

    #[test]
    fn path_below_root_of_ancestor_is_found() {
        let root = tempfile::tempdir().unwrap();
        let other = root.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("code"), "code").unwrap();
        fs::write(root.path().join("code"), "elsewhere").unwrap();
        fs::create_dir_all(root.path().join("proc/8")).unwrap();
        symlink("/gone", root.path().join("proc/7")).unwrap();
        symlink(&other, root.path().join("proc/8/root")).unwrap();
        let file = mapped(&other, "code");
        assert!(changed_ns(root.path(), &file).is_some());
        let mut text = String::new();
        let mut found = open(root.path(), &file).unwrap();
        found.read_to_string(&mut text).unwrap();
        assert_eq!(text, "code");
    }

    #[test]
    fn change_time_is_read_without_entering_mounts() {
        let elsewhere = mapped(Path::new("/"), "proc/version");
        assert_eq!(changed_ns(Path::new("/"), &elsewhere), None);
        let there = mapped(Path::new("/proc"), "version");
        assert!(changed_ns(Path::new("/proc"), &there).is_some());
    }

    #[test]
    fn devices_are_compared_where_both_are_given() {
        let on_disk = nix::sys::stat::makedev(8, 1);
        assert!(is_same_device(on_disk, (8, 1)) && is_same_device(on_disk, (0, 37)));
        assert!(!is_same_device(on_disk, (8, 2)) && !is_same_device(on_disk, (9, 1)));
        assert!(is_same_device(nix::sys::stat::makedev(0, 40), (0, 41)));
    }
}
