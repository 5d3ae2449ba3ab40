//! One snapshot of all spinning threads, as a line of a guest's console.

use crate::error::VmError;
use consort_core::PuId;
use serde::Serialize;
use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// The kinds of arrival that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SpinnerArrival {
    /// One process creates threads one after another and does not wait for any to run.
    Threads,
    /// One process forks processes of one thread, one after another, without `exec`.
    Processes,
}

impl SpinnerArrival {
    /// All kinds of arrival.
    pub const ALL: [Self; 2] = [Self::Threads, Self::Processes];

    fn word(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Processes => "processes",
        }
    }
}

impl Display for SpinnerArrival {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for SpinnerArrival {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|arrival| arrival.word() == word)
            .ok_or_else(|| format!("'{word}' is not 'threads' or 'processes'"))
    }
}

/// Places of the spinning threads of one repetition at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpreadSnapshot {
    /// Way in which the threads came into being.
    pub arrival: SpinnerArrival,
    /// Time at which the snapshot was due, ms of the guest after the last thread was started.
    pub after_ms: u64,
    /// Time at which it was complete, µs of the guest after the last thread was started.
    pub elapsed_us: u64,
    /// Number of times that the threads together had moved since their births.
    pub migrations: u64,
    /// The CPU of each thread.
    pub pus: Vec<PuId>,
}

impl Display for SpreadSnapshot {
    /// `look ARRIVAL AFTER_MS ELAPSED_US MIGRATIONS CPU,CPU`
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let pus: Vec<String> = self.pus.iter().map(PuId::to_string).collect();
        write!(
            f,
            "look {} {} {} {} {}",
            self.arrival,
            self.after_ms,
            self.elapsed_us,
            self.migrations,
            pus.join(",")
        )
    }
}

/// Reads the snapshots of a section and skips all other lines.
///
/// # Errors
/// [`VmError::LookLine`] for a line that begins with `look` and then goes wrong.
pub fn parse_snapshots(section: &str) -> Result<Vec<SpreadSnapshot>, VmError> {
    let lines = section.lines().filter(|line| line.starts_with("look "));
    lines
        .map(|line| parse(line).ok_or_else(|| VmError::LookLine(line.to_owned())))
        .collect()
}

fn parse(line: &str) -> Option<SpreadSnapshot> {
    let mut fields = line.split(' ').skip(1);
    let look = SpreadSnapshot {
        arrival: fields.next()?.parse().ok()?,
        after_ms: fields.next()?.parse().ok()?,
        elapsed_us: fields.next()?.parse().ok()?,
        migrations: fields.next()?.parse().ok()?,
        pus: parse_pus(fields.next()?)?,
    };
    fields.next().is_none().then_some(look)
}

fn parse_pus(list: &str) -> Option<Vec<PuId>> {
    let numbers = list.split(',');
    numbers.map(|pu| Some(PuId(pu.parse().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn printed_snapshot_is_read(
            arrival in prop::sample::select(&SpinnerArrival::ALL[..]),
            (after_ms, elapsed_us, migrations) in any::<(u64, u64, u64)>(),
            pus in prop::collection::vec(any::<u32>().prop_map(PuId), 1..9),
        ) {
            let look = SpreadSnapshot { arrival, after_ms, elapsed_us, migrations, pus };
            let console = format!("noise\n{look}\nmore noise\n");
            prop_assert_eq!(parse_snapshots(&console).unwrap(), [look]);
        }
    }

    #[test]
    fn broken_line_is_quoted() {
        for line in [
            "look threads 1 2 3 0,",
            "look cows 1 2 3 0",
            "look threads 1 2 3 0 9",
        ] {
            let error = parse_snapshots(line).unwrap_err().to_string();
            assert!(error.contains(line), "{error}");
        }
    }
}
