//! Limits of CPU time by which control groups hold managed threads.
//!
//! A thread that its group's limit holds looks as if it waited for a CPU. Only the group's counts
//! show the difference.

use crate::cgroup::{CpuLimit, CpuLimits, read_limit};
use crate::proc::thread_dir;
use crate::read;
use consort_core::{ThreadId, Throttle};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two looks at groups and threads.
const LOOK_EVERY: Duration = Duration::from_millis(900);
/// New threads whose group is read at a time: a reading takes about 10 us. Until its turn comes a
/// thread counts as in the group of its process, which single threads can leave.
const NEW_AT_A_TIME: usize = 32;
/// Known threads whose group is read again at a time: threads seldom change it.
const KNOWN_AT_A_TIME: usize = 16;
/// Groups whose limit is read at a time.
const GROUPS_AT_A_TIME: usize = 128;

/// Groups of managed threads, with the limits of the groups that have one.
#[derive(Debug)]
pub(in crate::live) struct GroupLimits {
    root: PathBuf,
    hierarchies: CpuLimits,
    /// Directories of the groups that each thread is in, ancestors too.
    groups_of: BTreeMap<ThreadId, Arc<[PathBuf]>>,
    groups: BTreeMap<PathBuf, LimitedGroup>,
    /// Thread and group after which the readings continue.
    last: (Option<ThreadId>, Option<PathBuf>),
    next_look: Option<Instant>,
}

#[derive(Debug)]
struct LimitedGroup {
    path: String,
    limit: Option<CpuLimit>,
    /// Effect of the limit between the last two readings; `None` if it held nothing.
    throttle: Option<Throttle>,
}

impl GroupLimits {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            hierarchies: CpuLimits::find(root),
            groups_of: BTreeMap::new(),
            groups: BTreeMap::new(),
            last: (None, None),
            next_look: None,
        }
    }

    /// The threads among these that a limit held lately, each with the limit that held it most.
    pub(in crate::live) fn throttled_threads(
        &mut self,
        threads: &[ThreadId],
        now: Instant,
    ) -> BTreeMap<ThreadId, Throttle> {
        if self.next_look.is_none_or(|next| now >= next) {
            self.next_look = Some(now + LOOK_EVERY);
            self.look_at_threads(threads);
            self.look_at_groups();
        }
        // Usual, so the threads are not visited.
        if self.groups.values().all(|group| group.throttle.is_none()) {
            return BTreeMap::new();
        }
        let held = threads.iter().filter_map(|&id| {
            let groups = self.groups_of(id)?.iter();
            let throttles = groups.filter_map(|dir| self.groups.get(dir)?.throttle.as_ref());
            let most = throttles.max_by(|a, b| a.share.total_cmp(&b.share))?;
            Some((id, most.clone()))
        });
        held.collect()
    }

    /// Groups of a thread; those of its process if its own were not read yet.
    fn groups_of(&self, id: ThreadId) -> Option<&Arc<[PathBuf]>> {
        let of_process = || {
            let first = ThreadId {
                tid: 0,
                start_ticks: 0,
                ..id
            };
            let (other, groups) = self.groups_of.range(first..).next()?;
            (other.pid == id.pid).then_some(groups)
        };
        self.groups_of.get(&id).or_else(of_process)
    }

    fn look_at_threads(&mut self, threads: &[ThreadId]) {
        let there: BTreeSet<ThreadId> = threads.iter().copied().collect();
        self.groups_of.retain(|id, _| there.contains(id));
        let (new, known): (Vec<_>, Vec<_>) = threads
            .iter()
            .copied()
            .partition(|&id| self.groups_of(id).is_none());
        let (before, after): (Vec<_>, Vec<_>) =
            known.into_iter().partition(|&id| Some(id) <= self.last.0);
        let next: Vec<_> = { after.into_iter().chain(before) }
            .take(KNOWN_AT_A_TIME)
            .collect();
        self.last.0 = next.last().copied();
        // In parts, because each reading takes about 10 us.
        let due = new.into_iter().take(NEW_AT_A_TIME).chain(next);
        for id in due {
            let file = thread_dir(&self.root, id.pid, id.tid).join("cgroup");
            let text = read::text(&file);
            if text.is_none() && self.groups_of.contains_key(&id) {
                // A failed reading does not mean that the thread has moved: it counts as where it was
                // until it can be read again.
                continue;
            }
            let groups = self.hierarchies.groups_of(&text.unwrap_or_default());
            for (dir, path) in &groups {
                let group = || LimitedGroup {
                    path: path.clone(),
                    limit: None,
                    throttle: None,
                };
                self.groups.entry(dir.clone()).or_insert_with(group);
            }
            let dirs = groups.into_iter().map(|(dir, _)| dir).collect();
            self.groups_of.insert(id, dirs);
        }
        let used: BTreeSet<&PathBuf> = self.groups_of.values().flat_map(|g| g.iter()).collect();
        self.groups.retain(|dir, _| used.contains(dir));
    }

    fn look_at_groups(&mut self) {
        let dirs = self.groups.keys().cloned();
        let (before, mut due): (Vec<_>, Vec<_>) =
            dirs.partition(|dir| Some(dir) <= self.last.1.as_ref());
        due.extend(before);
        due.truncate(GROUPS_AT_A_TIME);
        self.last.1 = due.last().cloned();
        for dir in due {
            if let Some(group) = self.groups.get_mut(&dir) {
                group.update_limit(read_limit(&dir, group.path.clone()));
            }
        }
    }
}

impl LimitedGroup {
    fn update_limit(&mut self, limit: Option<CpuLimit>) {
        let before = std::mem::replace(&mut self.limit, limit);
        self.throttle = self.limit.as_ref().zip(before).and_then(|(now, before)| {
            // A group that was made anew under the same name counts from 0 again.
            let periods = now.periods.saturating_sub(before.periods);
            let throttled = now.throttled.saturating_sub(before.throttled);
            (periods > 0 && throttled > 0).then(|| Throttle {
                group: now.group.as_str().into(),
                cpus: now.cpus,
                share: (throttled as f64 / periods as f64).min(1.0),
            })
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn put(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn stat(&self, periods: u64, throttled: u64) {
            let text = format!("nr_periods {periods}\nnr_throttled {throttled}\n");
            self.put("cg/box/cpu.stat", &text);
        }
    }

    fn id(tid: u32) -> ThreadId {
        ThreadId {
            pid: 7,
            tid,
            start_ticks: 1,
        }
    }

    #[test]
    fn threads_below_limited_group_are_throttled() {
        let tree = Tree(tempfile::tempdir().unwrap());
        tree.put(
            "proc/self/mountinfo",
            "2 1 0:2 / /cg rw - cgroup2 cgroup2 rw\n",
        );
        tree.put("cg/box/cpu.max", "10000 100000\n");
        tree.stat(100, 90);
        tree.put("proc/7/task/7/cgroup", "0::/box/a\n");
        tree.put("proc/7/task/8/cgroup", "0::/\n");
        let mut limits = GroupLimits::new(tree.0.path());
        let (begin, threads) = (Instant::now(), [id(7), id(8), id(9)]);
        let mut after = |s| limits.throttled_threads(&threads, begin + Duration::from_secs(s));
        assert!(after(0).is_empty(), "what was before is not counted");
        tree.stat(110, 98);
        let throttled = after(1);
        let expected = Throttle {
            group: "/box".into(),
            cpus: 0.1,
            share: 0.8,
        };
        assert_eq!(throttled.get(&id(7)), Some(&expected));
        assert_eq!(throttled.get(&id(8)), None, "its own group has no limit");
        tree.stat(120, 98);
        assert!(after(2).is_empty());
    }
}
