//! Names of other users' programs, which must not appear in answers to a user.
//!
//! Policies explain a thread's place by its neighbours, and notes of a plan list all programs, whichever users these belong to. On a host that hides processes of other users (`hidepid`, `proc(5)`), a user would learn their names from the daemon.

use consort_core::{Observation, ThreadId, escape_invisible};
use std::collections::BTreeSet;

/// Text in place of one that names programs of others.
const WITHHELD: &str = "it concerns programs of other users as well";

/// Names and numbers of threads and programs that a user may not see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HiddenNames {
    /// Numbers, and names of letters and digits: each is one word of a text.
    words: BTreeSet<String>,
    /// All other names.
    phrases: BTreeSet<String>,
}

impl HiddenNames {
    /// Collects what a user may not see in the threads of a quantum and in programs, each with the
    /// pid at its root.
    pub(super) fn collect(
        seen: &Observation,
        programs: &[(u32, String)],
        mut sees: impl FnMut(ThreadId) -> bool,
        sees_process: impl Fn(u32) -> bool,
    ) -> Self {
        let (mut strangers, mut own) = (Self::default(), BTreeSet::new());
        for thread in seen.threads.iter().chain(&seen.exited) {
            if sees(thread.id) {
                own.insert(thread.name.to_string());
            } else {
                strangers.add_number(thread.id.tid);
                strangers.add_number(thread.id.pid);
                strangers.add_name(&thread.name);
            }
        }
        for (pid, name) in programs.iter().filter(|(pid, _)| !sees_process(*pid)) {
            strangers.add_number(*pid);
            strangers.add_name(name);
        }
        // A name that the user's own threads have as well gives nothing away.
        strangers.words.retain(|word| !own.contains(word));
        strangers.phrases.retain(|phrase| !own.contains(phrase));
        strangers
    }

    /// A text without what the user may not see.
    pub(super) fn conceal(&self, text: String) -> String {
        match self.are_named_in(&text) {
            true => WITHHELD.to_owned(),
            false => text,
        }
    }

    /// Returns true if a text names any of them.
    pub(super) fn are_named_in(&self, text: &str) -> bool {
        let mut words = text.split(|c: char| !c.is_alphanumeric());
        words.any(|word| self.words.contains(word))
            || self.phrases.iter().any(|phrase| text.contains(phrase))
    }

    fn add_number(&mut self, number: u32) {
        self.words.insert(number.to_string());
    }

    fn add_name(&mut self, name: &str) {
        if name.is_empty() {
            return;
        }
        if name.chars().all(char::is_alphanumeric) {
            self.words.insert(name.to_owned());
        } else {
            self.phrases.insert(escape_invisible(name).into_owned());
            self.phrases.insert(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::{PuSet, Sample, ThreadObservation};

    fn thread(tid: u32, name: &str) -> ThreadObservation {
        ThreadObservation {
            id: ThreadId {
                pid: tid,
                tid,
                start_ticks: 1,
            },
            name: name.into(),
            original: PuSet::default().into(),
            managed: true,
            last_pu: None,
            sample: Sample::default(),
        }
    }

    #[test]
    fn texts_that_name_others_are_withheld() {
        let seen = Observation {
            threads: vec![
                thread(4711, "SECRETprog"),
                thread(4712, "worker-1"),
                thread(4713, "sh"),
                thread(900, "sh"),
            ],
            ..Observation::default()
        };
        let programs = [(4700, "batch.slice".to_owned()), (900, "sh".to_owned())];
        let own = |pid| pid == 900;
        let strangers = HiddenNames::collect(&seen, &programs, |id| own(id.pid), own);
        for text in [
            "slots run in turn: SECRETprog (14551), busy (14560)",
            "next to thread 4712",
            "shares its core with worker-1",
            "of batch.slice",
        ] {
            assert_eq!(strangers.conceal(text.to_owned()), WITHHELD, "{text}");
        }
        for text in [
            "core of CPU 0: stays",
            "slots run in turn: sh (900)",
            "47110 ms",
        ] {
            assert_eq!(strangers.conceal(text.to_owned()), text);
        }
    }
}
