//! `/proc/<pid>/stat`: the fields that tell who a thread is (`proc_pid_stat(5)`).

/// What one line of `stat` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// State letter; Z and X are dead.
    pub state: u8,
    /// Parent process.
    pub ppid: u32,
    /// Process group.
    pub pgrp: u32,
    /// Session.
    pub session: u32,
    /// Start time in clock ticks since boot.
    pub start_ticks: u64,
    /// Address of the bottom of the stack: another one after each exec.
    pub start_stack: u64,
}

impl Stat {
    /// Whether the thread can still run.
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// Reads a line. The name in parentheses may itself hold anything, so the
    /// fields are counted from the last parenthesis.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let end_of_name = line.iter().rposition(|&byte| byte == b')')?;
        let rest = std::str::from_utf8(line.get(end_of_name + 1..)?).ok()?;
        // The first field here is number 3 of the manual page.
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        // Groups and sessions are -1 where they lie outside the PID namespace.
        let id = |field: usize| number(field).map_or(0, |n| u32::try_from(n).unwrap_or(0));
        Some(Self {
            state: *fields.first()?.as_bytes().first()?,
            ppid: id(4),
            pgrp: id(5),
            session: id(6),
            start_ticks: number(22)?,
            start_stack: number(28)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &str = "42 (a) b (c)) S 7 40 39 0 -1 4194304 1 0 0 0 1 2 0 0 20 0 1 0 \
                        987654 8192 100 18446744073709551615 1 2 140000 0 0";

    #[test]
    fn fields_are_counted_from_the_last_parenthesis() {
        let stat = Stat::parse(LINE.as_bytes()).unwrap();
        assert_eq!((stat.ppid, stat.pgrp, stat.session), (7, 40, 39));
        assert_eq!((stat.start_ticks, stat.start_stack), (987_654, 140_000));
        assert!(stat.is_alive());
    }

    #[test]
    fn a_short_line_is_none() {
        assert_eq!(Stat::parse(b"42 (x) S 7 40"), None);
        assert_eq!(Stat::parse(b""), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let _ = Stat::parse(&bytes);
        }

        #[test]
        fn any_name_leaves_the_fields_alone(name in "[^)]{0,15}") {
            let line = LINE.replace("a) b (c)", &name);
            prop_assert_eq!(Stat::parse(line.as_bytes()), Stat::parse(LINE.as_bytes()));
        }
    }
}
