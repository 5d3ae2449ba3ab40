//! Crew of a policy: the threads that take part in grouping.

use crate::policy::View;
use crate::sample::ThreadObservation;
use std::borrow::Cow;

/// Factor by which a thread that is placed already leads one of equal activity that is not, so that
/// equal threads do not take turns where PUs are short.
const INCUMBENT_ACTIVITY: f64 = 1.1;

/// The threads that are to be grouped, and those that are left to the operating system.
pub struct GroupedThreads<'a> {
    /// Threads that are to be grouped, by id.
    pub members: Vec<&'a ThreadObservation>,
    /// Threads that are left to the operating system, each with the reason.
    pub left: Vec<(&'a ThreadObservation, Cow<'static, str>)>,
}

impl<'a> GroupedThreads<'a> {
    /// Takes the most active threads that there is room for. `active` is the share of a PU from
    /// which on a thread takes part; threads for which `placed` is true were placed before.
    pub fn new(
        view: View<'a>,
        active: f64,
        room: usize,
        placed: impl Fn(&ThreadObservation) -> bool,
    ) -> Self {
        let mut crew = Self {
            members: Vec::new(),
            left: Vec::new(),
        };
        for thread in view.observation.managed_threads() {
            match reason_to_leave(view, thread, active) {
                Some(why) => crew.left.push((thread, why)),
                None => crew.members.push(thread),
            }
        }
        crew.keep_the_most_active(room, placed);
        crew
    }

    fn keep_the_most_active(&mut self, room: usize, placed: impl Fn(&ThreadObservation) -> bool) {
        if self.members.len() <= room {
            return;
        }
        let activity = |thread: &ThreadObservation| {
            let lead = if placed(thread) {
                INCUMBENT_ACTIVITY
            } else {
                1.0
            };
            thread.sample.cpu_time_ns() * lead
        };
        self.members
            .sort_by(|a, b| activity(b).total_cmp(&activity(a)).then(a.id.cmp(&b.id)));
        let beyond = self.members.split_off(room);
        let why = "there are more active threads than places";
        self.left
            .extend(beyond.into_iter().map(|thread| (thread, why.into())));
        self.members.sort_by_key(|thread| thread.id);
    }
}

fn reason_to_leave(
    view: View<'_>,
    thread: &ThreadObservation,
    active: f64,
) -> Option<Cow<'static, str>> {
    let why = view.observation.reason_to_leave(thread, active);
    let usable = thread.original.intersection(view.topology.pus());
    let nowhere = usable.is_empty();
    why.or_else(|| nowhere.then_some("it may not run on any PU that is online".into()))
}
