//! The reader as Consort's loop uses it: it waits little, and it remembers what does not answer.

use super::helper::{Helper, ReplyProgress, has_helpers};
use super::request::{FileRef, Packet, PageAddress, ReadRequest, ReadTarget};
use super::serve::ReadServer;
use nix::errno::Errno;
use nix::unistd::Uid;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest waits for a helper that sleeps, and for one that has work but no CPU.
const MAX_ASLEEP: Duration = Duration::from_millis(20);
const MAX_RUNNABLE: Duration = Duration::from_millis(500);
/// Divisors of the time that has passed which give the waits that are allowed anew: a program whose
/// pages always come late, but not too late, takes a tenth of the loop's time at most.
const ASLEEP_ONE_IN: u32 = 10;
const RUNNABLE_ONE_IN: u32 = 2;
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Most time that one look at a helper that sleeps accounts for; the loop looks every 100 ms.
const MOST_PER_LOOK: Duration = Duration::from_millis(250);
/// Time asleep after which a request is given up.
const GIVE_UP_AFTER: Duration = Duration::from_secs(1);
/// The same for a list, whose making may sleep for a lock.
const GIVE_UP_LIST_AFTER: Duration = Duration::from_secs(5);
/// Age at which a request is given up whose helper has not come up, or makes a list with the CPU
/// time that it gets.
const GIVE_UP_RUNNING_AFTER: Duration = Duration::from_secs(60);
/// Time for which pages, files and programs that did not answer are left alone.
const LEFT_ALONE_FOR: Duration = Duration::from_secs(600);
/// Time for which a program, and all programs of a user, may keep helpers from other work.
const MAX_LOST: Duration = Duration::from_secs(3);
const MAX_LOST_BY_USER: Duration = Duration::from_secs(12);
/// Most starts of helpers in [`STARTS_WITHIN`]: each takes some milliseconds of CPU time.
const MAX_STARTS: usize = 10;
const STARTS_WITHIN: Duration = Duration::from_secs(60);
/// Most helpers that were killed and have not ended.
const MAX_ABANDONED: usize = 8;
/// Most processes whose lists of mappings are waited for.
const MAX_LISTS: usize = 1_024;
/// Least ratio of the time between two lists to the CPU time of the first.
const PAUSE_PER_LIST: u32 = 4;
/// Time after which the helper for lists is ended if there are none to make.
const IDLE_AFTER: Duration = Duration::from_secs(10);
/// Most files of processes' memories that are kept open until the round ends.
const MAX_MEMORIES: usize = 64;
/// Most pages and files that are remembered as unreadable.
const MAX_UNREADABLE: usize = 16_384;
/// Most requests that wait in a helper's socket: the kernel counts more than a kilobyte for each.
const MAX_ASKED: usize = 64;

#[derive(Debug)]
struct HelperRequest {
    pid: u32,
    target: ReadTarget,
    since: Instant,
    /// CPU time that the helper had taken before, ns.
    spent_ns: u64,
    /// Time for which the helper was seen to sleep over it; if it did not, only this host is busy.
    asleep: Duration,
    looked: Instant,
}

impl HelperRequest {
    /// Notes what a look at the helper has shown. Looks may be far apart on a busy host, and the
    /// helper may have run in between.
    fn note_look(&mut self, sleeps: bool, now: Instant) {
        let since = now.saturating_duration_since(std::mem::replace(&mut self.looked, now));
        if sleeps {
            self.asleep += since.min(MOST_PER_LOOK);
        }
    }
}

/// A helper, if one runs, and its requests, which it answers in their order.
#[derive(Debug, Default)]
struct HelperQueue {
    helper: Option<Helper>,
    requested: VecDeque<HelperRequest>,
}

enum SendOutcome {
    /// It was answered at once, by this thread.
    Answered(Vec<u8>),
    Sent,
    Refused,
}

/// Time that a program or a user has kept helpers from other work.
#[derive(Clone, Copy, Debug, Default)]
struct LostTime {
    lost: Duration,
    /// Time from which its code is read again.
    until: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct WaitBudget {
    asleep: Duration,
    runnable: Duration,
    since: Instant,
}

#[derive(Debug)]
pub(crate) struct CodeReader {
    root: PathBuf,
    /// Reads in the caller's thread; `None` if helpers do.
    here: Option<ReadServer>,
    round: u64,
    pages: HelperQueue,
    lists: HelperQueue,
    wanted: VecDeque<u32>,
    next_list: Instant,
    patience: WaitBudget,
    /// Files of the memory of processes and threads; `None` if there is none to be read.
    memories: HashMap<(u32, u32), Option<Arc<File>>>,
    unreadable: HashMap<ReadTarget, Instant>,
    programs: HashMap<u32, LostTime>,
    users: HashMap<u32, LostTime>,
    starts: VecDeque<Instant>,
    abandoned: Vec<Child>,
    warnings: Vec<String>,
    warned: HashSet<String>,
}

impl CodeReader {
    /// A reader that finds processes and files below `root`. The helper for pages is started at once,
    /// so that it is there when it is needed.
    pub(crate) fn new(root: &Path) -> Self {
        let now = Instant::now();
        let mut reader = Self {
            root: root.to_owned(),
            here: (!has_helpers()).then(|| ReadServer::new(root)),
            round: 0,
            pages: HelperQueue::default(),
            lists: HelperQueue::default(),
            wanted: VecDeque::new(),
            next_list: now,
            patience: WaitBudget {
                asleep: MAX_ASLEEP,
                runnable: MAX_RUNNABLE,
                since: now,
            },
            memories: HashMap::new(),
            unreadable: HashMap::new(),
            programs: HashMap::new(),
            users: HashMap::new(),
            starts: VecDeque::new(),
            abandoned: Vec::new(),
            warnings: Vec::new(),
            warned: HashSet::new(),
        };
        if reader.here.is_none() {
            reader.pages.helper = reader.start();
        }
        reader
    }

    /// Begins a round; returns the lists of mappings that have come, with their processes.
    pub(crate) fn next_round(&mut self) -> Vec<(u32, Vec<u8>)> {
        let now = Instant::now();
        self.round += 1;
        self.memories.clear();
        self.patience.refill(now);
        self.abandoned
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        let mut pages = std::mem::take(&mut self.pages);
        self.take_late_answers(&mut pages, GIVE_UP_AFTER, now);
        self.pages = pages;
        let mut lists = std::mem::take(&mut self.lists);
        let list = self.take_late_answers(&mut lists, GIVE_UP_LIST_AFTER, now);
        self.request_lists(&mut lists, now);
        self.lists = lists;
        list.into_iter().collect()
    }

    /// Reads pages of `len` bytes, `None` for each that cannot be read now. All are requested before
    /// the first answer is waited for, because each wait is for two switches of programs.
    pub(crate) fn read_pages(&mut self, pages: &[PageAddress], len: usize) -> Vec<Option<Vec<u8>>> {
        let mut read = vec![None; pages.len()];
        let mut desk = std::mem::take(&mut self.pages);
        let mut next = 0;
        let mut awaited = VecDeque::new();
        // Requests of earlier rounds have not been answered yet.
        let is_stuck = !desk.requested.is_empty();
        while !is_stuck && (next < pages.len() || !awaited.is_empty()) {
            if next < pages.len() && awaited.len() < MAX_ASKED {
                match self.request_page(&mut desk, pages[next], len) {
                    SendOutcome::Answered(bytes) => read[next] = Some(bytes),
                    SendOutcome::Sent => awaited.push_back(next),
                    SendOutcome::Refused => {}
                }
                next += 1;
                continue;
            }
            let Some(bytes) = self.patience.wait(&mut desk) else {
                break;
            };
            if let Some(index) = awaited.pop_front() {
                read[index] = Some(bytes);
            }
        }
        self.pages = desk;
        // A helper gives nothing if it cannot read the whole page.
        let read = read.into_iter();
        read.map(|bytes| bytes.filter(|bytes| bytes.len() == len))
            .collect()
    }

    fn request_page(
        &mut self,
        desk: &mut HelperQueue,
        page: PageAddress,
        len: usize,
    ) -> SendOutcome {
        let PageAddress { pid, tid, start } = page;
        let target = ReadTarget::Page { pid, start };
        if !self.may_read(pid, target) {
            return SendOutcome::Refused;
        }
        if self.memories.len() >= MAX_MEMORIES {
            self.memories.clear();
        }
        let root = &self.root;
        // Opening checks the permission and waits for no page. A leader that has ended has no memory
        // any more though its threads live on, so the thread comes first.
        let memory = self.memories.entry((pid, tid)).or_insert_with(|| {
            let open = |id| File::open(root.join(format!("proc/{id}/mem"))).ok();
            open(tid).or_else(|| open(pid)).map(Arc::new)
        });
        let Some(memory) = memory.clone() else {
            return SendOutcome::Refused;
        };
        let packet = Packet {
            round: self.round,
            request: ReadRequest::Memory { start, len },
        };
        if let Some(here) = &mut self.here {
            return SendOutcome::Answered(here.answer(&packet, Some(&memory)));
        }
        match self.send(desk, pid, target, &packet, Some(&memory)) {
            true => SendOutcome::Sent,
            false => SendOutcome::Refused,
        }
    }

    /// Reads a piece of a file that a process has mapped; `None` if that cannot be done now. The
    /// last piece of a file may be short.
    pub(crate) fn read_code(
        &mut self,
        pid: u32,
        file: FileRef,
        offset: u64,
        len: usize,
    ) -> Option<Vec<u8>> {
        let target = ReadTarget::from_file(&file);
        if !self.may_read(pid, target) {
            return None;
        }
        let bytes = self.request_bytes(pid, target, ReadRequest::Code { file, offset, len })?;
        (!bytes.is_empty()).then_some(bytes)
    }

    /// Time of change of a file that a process has mapped, ns since 1970.
    pub(crate) fn read_change_ns(&mut self, pid: u32, file: FileRef) -> Option<u64> {
        let target = ReadTarget::from_file(&file);
        if !self.may_read(pid, target) {
            return None;
        }
        let bytes = self.request_bytes(pid, target, ReadRequest::Change { file })?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }

    /// The list of a process's executable mappings of files. A helper makes it while the caller goes
    /// on: then this is `None`, and [`Self::next_round`] returns the list when it has come.
    pub(crate) fn request_mappings(&mut self, pid: u32) -> Option<Vec<u8>> {
        let packet = Packet {
            round: self.round,
            request: ReadRequest::Maps { pid },
        };
        if let Some(here) = &mut self.here {
            return Some(here.answer(&packet, None));
        }
        if self.wanted.len() < MAX_LISTS && !self.wanted.contains(&pid) {
            self.wanted.push_back(pid);
        }
        None
    }

    /// A process has been forked: it has its parent's mappings, and its parent's blame.
    pub(crate) fn note_fork(&mut self, parent: u32, pid: u32) {
        self.programs.remove(&pid);
        if let Some(&blame) = self.programs.get(&parent) {
            self.programs.insert(pid, blame);
        }
    }

    pub(crate) fn note_exit(&mut self, pid: u32) {
        self.programs.remove(&pid);
    }

    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    fn may_read(&mut self, pid: u32, target: ReadTarget) -> bool {
        let now = Instant::now();
        let is_over = |until: &Instant| *until <= now;
        if let Some(until) = self.unreadable.get(&target) {
            if !is_over(until) {
                return false;
            }
            self.unreadable.remove(&target);
        }
        if let Some(blame) = self.programs.get(&pid)
            && let Some(until) = &blame.until
        {
            if !is_over(until) {
                return false;
            }
            self.programs.remove(&pid);
        }
        self.users
            .retain(|_, blame| blame.until.is_none_or(|until| !is_over(&until)));
        let is_blamed = |uid| self.users.get(&uid).is_some_and(|b| b.until.is_some());
        self.users.is_empty() || !self.user_of(pid).is_some_and(is_blamed)
    }

    fn user_of(&self, pid: u32) -> Option<u32> {
        let process = std::fs::metadata(self.root.join(format!("proc/{pid}")));
        Some(process.ok()?.uid())
    }

    /// Requests bytes for a process, and waits a little; `None` if they do not come.
    fn request_bytes(
        &mut self,
        pid: u32,
        target: ReadTarget,
        request: ReadRequest,
    ) -> Option<Vec<u8>> {
        let round = self.round;
        let packet = Packet { round, request };
        if let Some(here) = &mut self.here {
            return Some(here.answer(&packet, None));
        }
        if !self.pages.requested.is_empty() {
            return None;
        }
        let mut pages = std::mem::take(&mut self.pages);
        let is_sent = self.send(&mut pages, pid, target, &packet, None);
        let bytes = is_sent.then(|| self.patience.wait(&mut pages)).flatten();
        self.pages = pages;
        bytes
    }

    fn send(
        &mut self,
        desk: &mut HelperQueue,
        pid: u32,
        target: ReadTarget,
        packet: &Packet,
        memory: Option<&File>,
    ) -> bool {
        if desk.helper.is_none() {
            desk.helper = self.start();
        }
        let Some(helper) = &mut desk.helper else {
            return false;
        };
        if let Err(errno) = helper.send(packet, memory) {
            if errno != Errno::EAGAIN {
                self.abandon_helper(desk);
            }
            return false;
        }
        desk.requested.push_back(HelperRequest {
            pid,
            target,
            since: Instant::now(),
            spent_ns: helper.spent_ns(),
            asleep: Duration::ZERO,
            looked: Instant::now(),
        });
        true
    }

    /// Starts a helper, unless too many were started or have not ended.
    fn start(&mut self) -> Option<Helper> {
        let now = Instant::now();
        self.starts
            .retain(|start| now.saturating_duration_since(*start) < STARTS_WITHIN);
        if self.starts.len() >= MAX_STARTS || self.abandoned.len() >= MAX_ABANDONED {
            return None;
        }
        self.starts.push_back(now);
        match Helper::start()? {
            Ok(helper) => Some(helper),
            Err(error) => {
                self.warn(format!(
                    "code of programs cannot be read: the reading process cannot be started: {error}; \
                     raise the limit of processes or of memory"
                ));
                None
            }
        }
    }

    /// Takes the answers to requests of earlier rounds, and gives the first one up once it is too old.
    /// Returns the last answer with its process.
    fn take_late_answers(
        &mut self,
        desk: &mut HelperQueue,
        give_up_after: Duration,
        now: Instant,
    ) -> Option<(u32, Vec<u8>)> {
        let mut answer = None;
        while let (Some(helper), Some(requested)) = (&mut desk.helper, desk.requested.front_mut()) {
            let age = now.saturating_duration_since(requested.since);
            match helper.receive_reply(Duration::ZERO) {
                ReplyProgress::Done(bytes) => {
                    let Some(requested) = desk.requested.pop_front() else {
                        break;
                    };
                    let spent_ns = helper.spent_ns().saturating_sub(requested.spent_ns);
                    if let ReadTarget::Maps { .. } = requested.target {
                        self.next_list = now + Duration::from_nanos(spent_ns) * PAUSE_PER_LIST;
                    } else if !requested.asleep.is_zero() {
                        // It was not there in time, so others had to wait for it.
                        self.blame(&requested, now);
                    }
                    answer = Some((requested.pid, bytes));
                }
                ReplyProgress::Ended => self.abandon_helper(desk),
                ReplyProgress::Waiting => {
                    let is_up = helper.is_up;
                    let sleeps = is_up && helper.sleeps();
                    if sleeps && helper.is_answered() {
                        // It sleeps because it is done.
                        continue;
                    }
                    requested.note_look(sleeps, now);
                    if requested.asleep < give_up_after && age < GIVE_UP_RUNNING_AFTER {
                        break;
                    }
                    let requested = desk.requested.pop_front();
                    self.abandon_helper(desk);
                    if let Some(requested) = requested.filter(|_| is_up) {
                        if self.unreadable.len() >= MAX_UNREADABLE {
                            self.unreadable.clear();
                        }
                        self.unreadable
                            .insert(requested.target, now + LEFT_ALONE_FOR);
                        self.blame(&requested, now);
                    }
                }
            }
        }
        answer
    }

    /// Kills the helper of a desk; it ends when it can.
    fn abandon_helper(&mut self, desk: &mut HelperQueue) {
        desk.requested.clear();
        if let Some(helper) = desk.helper.take() {
            self.abandoned.push(helper.abandon());
        }
    }

    /// Notes that a request kept a helper from other work, and leaves program and user alone when
    /// that was often so.
    fn blame(&mut self, requested: &HelperRequest, now: Instant) {
        let blame = self.programs.entry(requested.pid).or_default();
        blame.lost += requested.asleep;
        if blame.until.is_none() && blame.lost >= MAX_LOST {
            blame.until = Some(now + LEFT_ALONE_FOR);
            let name =
                std::fs::read_to_string(self.root.join(format!("proc/{}/comm", requested.pid)));
            let name = name.as_deref().map_or("a program", str::trim_end);
            self.warn(format!(
                "code of {name} ({}) cannot be read: its pages or files do not arrive; its threads \
                 have no class from samples for {} minutes",
                requested.pid,
                LEFT_ALONE_FOR.as_secs() / 60
            ));
        }
        let user = self.user_of(requested.pid);
        if let Some(user) = user.filter(|&user| user != Uid::effective().as_raw()) {
            let blame = self.users.entry(user).or_default();
            blame.lost += requested.asleep;
            if blame.until.is_none() && blame.lost >= MAX_LOST_BY_USER {
                blame.until = Some(now + LEFT_ALONE_FOR);
                self.warn(format!(
                    "code of programs of user {user} cannot be read: their pages or files do not \
                     arrive; look for a file system whose server does not answer"
                ));
            }
        }
    }

    fn warn(&mut self, text: String) {
        if self.warned.len() < MAX_LISTS && self.warned.insert(text.clone()) {
            self.warnings.push(text);
        }
    }

    /// Has the next list be made if it is time to, and ends a helper that has nothing to do.
    fn request_lists(&mut self, lists: &mut HelperQueue, now: Instant) {
        if !lists.requested.is_empty() || now < self.next_list {
            return;
        }
        while let Some(pid) = self.wanted.pop_front() {
            let target = ReadTarget::Maps { pid };
            if !self.may_read(pid, target) {
                continue;
            }
            let packet = Packet {
                round: self.round,
                request: ReadRequest::Maps { pid },
            };
            self.send(lists, pid, target, &packet, None);
            return;
        }
        if now.saturating_duration_since(self.next_list) > IDLE_AFTER {
            self.abandon_helper(lists);
        }
    }
}

impl Drop for CodeReader {
    fn drop(&mut self) {
        for desk in [&mut self.pages, &mut self.lists] {
            let Some(helper) = desk.helper.take() else {
                continue;
            };
            self.abandoned.push(helper.abandon());
            // One without a request waits for nothing else, so that it ends at once.
            if desk.requested.is_empty()
                && let Some(child) = self.abandoned.last_mut()
            {
                let _ = child.wait();
            }
        }
    }
}

impl WaitBudget {
    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.since);
        self.since = now;
        self.asleep = MAX_ASLEEP.min(self.asleep + passed / ASLEEP_ONE_IN);
        self.runnable = MAX_RUNNABLE.min(self.runnable + passed / RUNNABLE_ONE_IN);
    }

    /// Waits for the answer to a desk's request; `None` if patience ends before it has come, and
    /// then it is waited for no more in this round.
    fn wait(&mut self, desk: &mut HelperQueue) -> Option<Vec<u8>> {
        let helper = desk.helper.as_mut()?;
        loop {
            let begun = Instant::now();
            match helper.receive_reply(LOOK_EVERY) {
                ReplyProgress::Done(bytes) => {
                    desk.requested.pop_front();
                    return Some(bytes);
                }
                // The next round lets go of one that has ended.
                ReplyProgress::Ended => return None,
                ReplyProgress::Waiting => {}
            }
            // A helper that has not come up waits for pages of its own program.
            let sleeps = helper.is_up && helper.sleeps();
            if sleeps && helper.is_answered() {
                continue;
            }
            desk.requested
                .front_mut()?
                .note_look(sleeps, Instant::now());
            let left = if sleeps {
                &mut self.asleep
            } else {
                &mut self.runnable
            };
            *left = left.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return None;
            }
        }
    }
}
