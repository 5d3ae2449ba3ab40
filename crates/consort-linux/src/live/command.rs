//! Commands to a live machine from sockets that are served while a quantum passes.
//!
//! The machine holds no socket. [`LiveMachine::observe_with`] polls the descriptors of a
//! [`CommandSource`], receives its commands whenever one of them is ready, carries them out at once
//! and passes the answers back: a client does not wait for the end of a quantum.

use super::LiveMachine;
use crate::group::{Leader, LeaderMessage, LeaderTask};
use crate::protocol::{AttachTargets, JoiningCommand, Peer};
use serde_json::Value;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Time at a stretch after which no further command is carried out: threads are to be placed
/// meanwhile.
const MAX_TIME: Duration = Duration::from_millis(10);

/// A command to a live machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Manage processes and control groups for a client: all of them, or none.
    Attach {
        /// Number of the client's connection.
        connection: u64,
        /// The client, which may attach only what is its own.
        peer: Peer,
        /// Processes and control groups.
        targets: AttachTargets,
    },
    /// Restore the masks of processes and control groups and stop managing them.
    Detach {
        /// Number of the client's connection.
        connection: u64,
        /// The client, which may detach only what is its own.
        peer: Peer,
        /// Processes and control groups.
        targets: AttachTargets,
    },
    /// Manage the command of a member of the group.
    Manage {
        /// Number of the member's connection.
        connection: u64,
        /// Process of the member, which must be the command's parent.
        member: u32,
        /// The command.
        program: JoiningCommand,
    },
    /// Resume all paused programs, because one of them was sent a signal.
    Wake,
    /// Stop managing the program with this root.
    Release(u32),
}

/// The answer to a [`Command`].
#[derive(Clone, Debug, PartialEq)]
pub enum CommandAnswer {
    /// To [`Command::Attach`] or [`Command::Detach`].
    Client {
        /// Number of the client's connection.
        connection: u64,
        /// JSON document for the client, or the reason for a refusal.
        result: Result<Value, String>,
    },
    /// To [`Command::Manage`].
    Member {
        /// Number of the member's connection.
        connection: u64,
        /// Process of the command.
        program: u32,
        /// The reason for a refusal, if it is an error.
        result: Result<(), String>,
    },
}

/// Sockets that commands come from.
pub trait CommandSource {
    /// Descriptors that are readable when a command may have come.
    fn fds(&self) -> Vec<BorrowedFd<'_>>;

    /// Returns true while a peer is connected. Commands are to be received then even if no
    /// descriptor is ready, because deadlines pass.
    fn has_connections(&self) -> bool;

    /// Receives commands, without waiting.
    fn receive(&mut self, now: Instant) -> Vec<Command>;

    /// Passes an answer on.
    fn answer(&mut self, answer: CommandAnswer);

    /// Notes that the process was sent SIGHUP.
    // Only a daemon reads its configuration again.
    fn note_hangup(&mut self) {}

    /// Returns true if the owner of the control loop has to act first, so that the quantum ends.
    fn ends_quantum(&self) -> bool;
}

/// A run that leads a group, or none.
impl CommandSource for Option<Leader> {
    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        self.iter().flat_map(Leader::fds).collect()
    }

    fn has_connections(&self) -> bool {
        self.as_ref().is_some_and(Leader::has_connections)
    }

    fn receive(&mut self, now: Instant) -> Vec<Command> {
        let Some(leader) = self else {
            return Vec::new();
        };
        let tasks = leader.serve_members(now).into_iter();
        let commands = tasks.map(|task| match task {
            LeaderTask::Manage {
                connection,
                peer,
                program,
            } => Command::Manage {
                connection,
                member: peer,
                program,
            },
            LeaderTask::Wake(_) => Command::Wake,
            LeaderTask::Release(root) => Command::Release(root),
        });
        commands.collect()
    }

    fn answer(&mut self, answer: CommandAnswer) {
        if let (
            Some(leader),
            CommandAnswer::Member {
                connection,
                program,
                result,
            },
        ) = (self, answer)
        {
            let message = match result {
                Ok(()) => LeaderMessage::Taken,
                Err(why) => LeaderMessage::Refused(why),
            };
            leader.answer(connection, program, &message);
        }
    }

    fn ends_quantum(&self) -> bool {
        self.as_ref()
            .is_some_and(|leader| leader.proposal().is_some())
    }
}

impl LiveMachine {
    /// Receives the commands that have come, and carries them out.
    pub(super) fn serve_commands(&mut self, source: &mut impl CommandSource) {
        let begun = Instant::now();
        loop {
            let commands = source.receive(Instant::now());
            // Again after requests of clients, so that those sent ahead need not wait for the next
            // time.
            let is_client = |command: &Command| {
                matches!(command, Command::Attach { .. } | Command::Detach { .. })
            };
            let is_last = !commands.iter().any(is_client) || begun.elapsed() > MAX_TIME;
            for command in commands {
                if let Some(answer) = self.execute(command) {
                    source.answer(answer);
                }
            }
            if is_last {
                return;
            }
        }
    }

    fn execute(&mut self, command: Command) -> Option<CommandAnswer> {
        match command {
            Command::Attach {
                connection,
                peer,
                targets,
            } => {
                let result = self.attach_for_peer(peer, &targets);
                Some(CommandAnswer::Client { connection, result })
            }
            Command::Detach {
                connection,
                peer,
                targets,
            } => {
                let result = self.detach_for_peer(peer, &targets);
                Some(CommandAnswer::Client { connection, result })
            }
            Command::Manage {
                connection,
                member,
                program,
            } => Some(CommandAnswer::Member {
                connection,
                program: program.pid,
                result: self.manage_member_program(member, program),
            }),
            Command::Wake => {
                self.wake_all();
                None
            }
            Command::Release(root) => {
                self.release_program(root);
                None
            }
        }
    }
}
