//! The file `/proc/<pid>/task/<tid>/stat` (`proc_pid_stat(5)`).

use consort_core::PuId;
use std::fs::File;
use std::os::unix::fs::FileExt;
use thiserror::Error;

/// Bytes in which the file fits: fifty numbers of at most 20 digits, and a name.
pub(crate) const STAT_BYTES: usize = 1280;
/// Number of fields behind the name that are kept: those up to the last one that is looked at, and
/// some more.
const MOST_FIELDS: usize = 50;

/// State of a thread, from the state letter of `proc_pid_stat(5)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunState {
    /// Running, or waiting for a CPU.
    Runnable,
    /// Asleep until something happens.
    Sleeping,
    /// Asleep and not to be woken by ordinary signals, mostly for a disk.
    Blocked,
    /// Stopped by a signal, a debugger or a freezer.
    Stopped,
    /// Ended, or about to.
    Dead,
    /// Alive, in a way that the manual page does not list.
    Unlisted,
}

impl RunState {
    fn from_letter(letter: u8) -> Self {
        match letter {
            b'R' | b'W' => Self::Runnable,
            b'S' | b'I' | b'P' => Self::Sleeping,
            b'D' | b'K' => Self::Blocked,
            b'T' | b't' => Self::Stopped,
            b'Z' | b'X' | b'x' => Self::Dead,
            _ => Self::Unlisted,
        }
    }
}

/// The fields of a stat line that Consort uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The thread's name.
    pub comm: String,
    /// State of the thread: running, asleep, stopped and so on.
    pub state: RunState,
    /// Process id of the parent; 0 when it lies outside the PID namespace.
    pub parent_pid: u32,
    /// Process group; 0 when it lies outside the PID namespace.
    pub group: u32,
    /// Session; 0 when it lies outside the PID namespace.
    pub session: u32,
    /// Kernel flags (`PF_*`).
    pub flags: u64,
    /// CPU time in user and kernel mode, clock ticks.
    pub cpu_ticks: u64,
    /// The same of the children that were waited for, and theirs.
    pub waited_ticks: u64,
    /// Start, clock ticks since boot.
    pub start_ticks: u64,
    /// Address of the bottom of the stack: another one after each exec, 0 when it may not be read.
    pub start_stack: u64,
    /// The CPU that it runs on or ran on last.
    pub last_pu: PuId,
    /// Scheduling policy (`SCHED_*`).
    pub policy: u32,
}

/// `PF_EXITING` of the kernel's `include/linux/sched.h`.
const EXITING: u64 = 0x4;

/// Fault of a stat line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StatError {
    /// The name is not in parentheses.
    #[error("no name in parentheses")]
    NoName,
    /// A field, numbered as in `proc_pid_stat(5)`, is missing or not a number.
    #[error("field {0} is missing or not a number")]
    Field(usize),
}

impl Stat {
    /// Returns true if the thread has not ended; a zombie has.
    pub(crate) fn is_alive(&self) -> bool {
        self.state != RunState::Dead
    }

    /// Returns true if the thread has ended or is about to: its files may be closed although
    /// `/proc` still lists it.
    pub(crate) fn is_exiting(&self) -> bool {
        !self.is_alive() || self.flags & EXITING != 0
    }

    /// Parses the file's content.
    ///
    /// The name may hold anything, parentheses, spaces and newlines too; it ends
    /// at the last closing parenthesis, since only numbers follow.
    ///
    /// # Errors
    /// When a field is missing or has another form.
    pub fn parse(text: &[u8]) -> Result<Self, StatError> {
        let open = text.iter().position(|&b| b == b'(');
        let close = text.iter().rposition(|&b| b == b')');
        let (Some(open), Some(close)) = (open, close) else {
            return Err(StatError::NoName);
        };
        let comm = text.get(open + 1..close).ok_or(StatError::NoName)?;
        let rest = std::str::from_utf8(&text[close + 1..]).map_err(|_| StatError::Field(3))?;
        let mut fields = [""; MOST_FIELDS];
        for (field, text) in fields.iter_mut().zip(rest.split_ascii_whitespace()) {
            *field = text;
        }
        Self::from_fields(String::from_utf8_lossy(comm).into_owned(), &fields)
    }

    fn from_fields(comm: String, fields: &[&str]) -> Result<Self, StatError> {
        let letter = fields.first().and_then(|f| f.bytes().next());
        let letter = letter.ok_or(StatError::Field(3))?;
        let number = |field| number(fields, field);
        Ok(Self {
            comm,
            state: RunState::from_letter(letter),
            parent_pid: to_u32(number(4)?, 4)?,
            group: id(fields, 5)?,
            session: id(fields, 6)?,
            flags: number(9)?,
            cpu_ticks: number(14)?.saturating_add(number(15)?),
            waited_ticks: number(16)?.saturating_add(number(17)?),
            start_ticks: number(22)?,
            start_stack: number(28)?,
            last_pu: PuId(to_u32(number(39)?, 39)?),
            policy: to_u32(number(41)?, 41)?,
        })
    }
}

/// A thread's line, from its open file; `None` if the thread is gone or cannot be read.
pub(crate) fn read_open(file: &File) -> Option<Stat> {
    let mut buffer = [0; STAT_BYTES];
    let len = file.read_at(&mut buffer, 0).ok()?;
    Stat::parse(&buffer[..len]).ok()
}

/// A field by its number in `proc_pid_stat(5)`; the state, first after the name, is number 3.
fn number(fields: &[&str], field: usize) -> Result<u64, StatError> {
    let text = fields.get(field - 3).ok_or(StatError::Field(field))?;
    text.parse().map_err(|_| StatError::Field(field))
}

/// A process group or session; 0 for one outside the PID namespace, for which the kernel writes 0
/// or -1.
fn id(fields: &[&str], field: usize) -> Result<u32, StatError> {
    let text = fields.get(field - 3).ok_or(StatError::Field(field))?;
    let id: i64 = text.parse().map_err(|_| StatError::Field(field))?;
    Ok(u32::try_from(id).unwrap_or(0))
}

fn to_u32(number: u64, field: usize) -> Result<u32, StatError> {
    u32::try_from(number).map_err(|_| StatError::Field(field))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A stat line with these fields and zeros elsewhere.
    pub(crate) fn line(tid: u32, comm: &str, parent: u32, start: u64) -> Vec<u8> {
        line_of(tid, comm, parent, start, 0, 0)
    }

    pub(crate) fn line_of(
        tid: u32,
        comm: &str,
        parent: u32,
        start: u64,
        flags: u64,
        policy: u32,
    ) -> Vec<u8> {
        let mut fields = vec!["0".to_owned(); 50];
        fields[0] = "R".into();
        fields[1] = parent.to_string();
        fields[2] = "40".into();
        fields[3] = "-1".into();
        fields[5] = "-1".into();
        fields[6] = flags.to_string();
        fields[11] = "7".into();
        fields[12] = "5".into();
        fields[19] = start.to_string();
        fields[25] = "140000".into();
        fields[36] = "3".into();
        fields[38] = policy.to_string();
        format!("{tid} ({comm}) {}\n", fields.join(" ")).into_bytes()
    }

    proptest! {
        #[test]
        fn any_name_is_read_back(comm in "[ -~\n]{0,15}", parent: u32, start: u64) {
            let stat = Stat::parse(&line(5, &comm, parent, start)).unwrap();
            prop_assert_eq!((stat.comm, stat.parent_pid, stat.start_ticks), (comm, parent, start));
        }

        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Stat::parse(&bytes);
        }
    }

    #[test]
    fn fields_are_where_the_manual_puts_them() {
        let stat = Stat::parse(&line_of(5, "x", 1, 2, 0x20_0000, 6)).unwrap();
        let expect = Stat {
            comm: "x".into(),
            state: RunState::Runnable,
            parent_pid: 1,
            group: 40,
            session: 0,
            flags: 0x20_0000,
            cpu_ticks: 12,
            waited_ticks: 0,
            start_ticks: 2,
            start_stack: 140_000,
            last_pu: PuId(3),
            policy: 6,
        };
        assert_eq!(stat, expect);
    }

    #[test]
    fn a_cut_line_names_the_field() {
        let line = line(5, "x", 1, 2);
        assert_eq!(Stat::parse(&line[..24]), Err(StatError::Field(14)));
        assert_eq!(Stat::parse(b"5 (x)"), Err(StatError::Field(3)));
        assert_eq!(Stat::parse(b"5 x"), Err(StatError::NoName));
    }

    #[test]
    fn only_the_letters_of_the_dead_are_dead() {
        let alive = |letter| {
            let mut line = line(5, "x", 1, 2);
            line[6] = letter;
            Stat::parse(&line).unwrap().is_alive()
        };
        let dead: Vec<u8> = (b'!'..=b'~').filter(|&letter| !alive(letter)).collect();
        assert_eq!(dead, b"XZx");
    }
}
