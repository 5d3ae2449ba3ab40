//! Leading of a group: the programs of its members come and go.

use super::Live;
use super::error::AttachError;
use crate::group::{Answer, Attended, Joining};
use crate::proc::read_stat;
use consort_core::ThreadId;
use std::collections::BTreeSet;
use std::time::Instant;

impl Live {
    /// Takes in the tasks that members give, and carries them out.
    pub(super) fn attend_group(&mut self) {
        let Some(leader) = &mut self.group else {
            return;
        };
        for attended in leader.attend(Instant::now()) {
            match attended {
                Attended::Asks {
                    conversation,
                    peer,
                    program,
                } => self.answer(conversation, peer, program),
                Attended::Wakes(_) => self.wake_all(),
                Attended::Leaves(root) => self.part_with_program(root),
            }
        }
    }

    fn answer(&mut self, conversation: u64, peer: u32, program: Joining) {
        let pid = program.pid;
        let answer = match self.reason_against(peer, &program) {
            Some(why) => Answer::Refused(why),
            None => {
                self.take_program(program);
                Answer::Taken
            }
        };
        if let Some(leader) = &mut self.group {
            leader.answer(conversation, pid, &answer);
        }
    }

    /// Reason for which a program cannot be managed, if any. A member may hand over only a program
    /// that it has started itself.
    fn reason_against(&self, peer: u32, program: &Joining) -> Option<String> {
        let pid = program.pid;
        let stat = match read_stat(self.site.root(), pid, pid) {
            Ok(stat) => stat,
            Err(error) => return Some(AttachError::of_process(pid, error).to_string()),
        };
        if stat.start_ticks != program.start_ticks {
            return Some(format!("process {pid} is another one than was meant"));
        }
        if stat.parent_pid != peer {
            return Some(format!(
                "process {pid} was not started by the member that hands it over, process {peer}"
            ));
        }
        self.senses.check_recorded(&program.name).err()
    }

    fn take_program(&mut self, program: Joining) {
        let Joining { pid, name, .. } = program;
        self.roster.trees_mut().plant(pid, name);
        self.census.watch(pid);
        let pus = self.site.online();
        if let Some(Err(error)) = self.senses.join_tree(self.site.root(), pid, pus) {
            let text = format!("program {pid} is not sampled: {error}");
            self.warnings.insert(text);
        }
    }

    /// Puts a program back and lets go of it: its command has ended, or its Consort was killed.
    pub(super) fn part_with_program(&mut self, root: u32) {
        self.roster.trees_mut().let_go(root);
        self.census.unwatch(root);
        let ids = self.roster.ids();
        let its: BTreeSet<ThreadId> = ids
            .filter(|id| self.roster.trees().root_of(id.pid) == Some(root))
            .collect();
        self.free(|id| its.contains(id));
        self.warnings.extend(self.hands.forget_ended(&self.roster));
    }
}
