//! Leading of a group: the programs of its members come and go.

use super::LiveMachine;
use super::error::AttachError;
use crate::group::{JoiningCommand, LeaderMessage, LeaderTask};
use crate::proc::read_stat;
use consort_core::ThreadId;
use std::collections::BTreeSet;
use std::time::Instant;

impl LiveMachine {
    /// Takes in the tasks that members give, and carries them out.
    pub(super) fn serve_group_members(&mut self) {
        let Some(leader) = &mut self.group else {
            return;
        };
        for attended in leader.serve_members(Instant::now()) {
            match attended {
                LeaderTask::Asks {
                    conversation,
                    peer,
                    program,
                } => self.answer(conversation, peer, program),
                LeaderTask::Wakes(_) => self.wake_all(),
                LeaderTask::Leaves(root) => self.release_program(root),
            }
        }
    }

    fn answer(&mut self, conversation: u64, peer: u32, program: JoiningCommand) {
        let pid = program.pid;
        let answer = match self.refusal_reason(peer, &program) {
            Some(why) => LeaderMessage::Refused(why),
            None => {
                self.manage_program(program);
                LeaderMessage::Taken
            }
        };
        if let Some(leader) = &mut self.group {
            leader.answer(conversation, pid, &answer);
        }
    }

    /// Reason for which a program cannot be managed, if any. A member may hand over only a program
    /// that it has started itself.
    fn refusal_reason(&self, peer: u32, program: &JoiningCommand) -> Option<String> {
        let pid = program.pid;
        let stat = match read_stat(self.site.root(), pid, pid) {
            Ok(stat) => stat,
            Err(error) => return Some(AttachError::from_proc_error(pid, error).to_string()),
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

    fn manage_program(&mut self, program: JoiningCommand) {
        let JoiningCommand { pid, name, .. } = program;
        self.roster.trees_mut().insert_program(pid, name);
        self.census.watch(pid);
        let pus = self.site.online_pus();
        if let Some(Err(error)) = self.senses.join_tree(self.site.root(), pid, pus) {
            let text = format!("program {pid} is not sampled: {error}");
            self.warnings.insert(text);
        }
    }

    /// Puts a program back and lets go of it: its command has ended, or its Consort was killed.
    pub(super) fn release_program(&mut self, root: u32) {
        self.roster.trees_mut().mark_unmanaged(root);
        self.census.unwatch(root);
        let ids = self.roster.ids();
        let its: BTreeSet<ThreadId> = ids
            .filter(|id| self.roster.trees().root_of(id.pid) == Some(root))
            .collect();
        self.release_threads(|id| its.contains(id));
        self.warnings.extend(self.hands.forget_ended(&self.roster));
    }
}
