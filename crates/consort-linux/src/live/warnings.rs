//! Warnings for the user, each once and in bounded number: as they come, and all at the end of a
//! run.

use consort_core::escape_invisible;
use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

/// Most warnings that are kept, and most that are accepted within [`REFILL`]: a run of weeks with one
/// warning for each thread must neither grow nor fill a log.
const MOST: usize = 100;
/// Time in which room for [`MOST`] warnings comes back.
const REFILL: Duration = Duration::from_secs(3600);

/// The latest warnings, without repetitions.
#[derive(Clone, Debug)]
pub(super) struct Warnings {
    kept: BTreeSet<String>,
    /// The same, oldest first.
    order: VecDeque<String>,
    /// Warnings that came since the last report.
    unreported: Vec<String>,
    /// Number of warnings that may be taken in now.
    room: f64,
    /// Time up to which room has come back.
    refilled: Instant,
    /// Number of warnings for which there was no room, repetitions included.
    dropped: u64,
    /// Number of these that were not mentioned yet.
    unmentioned: u64,
}

impl Default for Warnings {
    fn default() -> Self {
        Self {
            kept: BTreeSet::new(),
            order: VecDeque::new(),
            unreported: Vec::new(),
            room: MOST as f64,
            refilled: Instant::now(),
            dropped: 0,
            unmentioned: 0,
        }
    }
}

impl Warnings {
    /// Takes in a warning, unless it is there already. It is one line: names of threads and groups in
    /// it may contain line ends, by which they would forge others.
    pub(super) fn insert(&mut self, text: String) {
        let text = match escape_invisible(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(escaped) => escaped,
        };
        if self.kept.contains(&text) {
            return;
        }
        if self.room < 1.0 {
            self.dropped += 1;
            self.unmentioned += 1;
            return;
        }
        self.room -= 1.0;
        // The oldest makes room, so that a long run keeps the latest.
        if self.kept.len() == MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.kept.remove(&oldest);
        }
        self.unreported.push(text.clone());
        self.order.push_back(text.clone());
        self.kept.insert(text);
    }

    /// Takes the warnings that came since the last call, oldest first, and as soon as there is room
    /// the number of those for which there was none; `now` room comes back.
    pub(super) fn take_new(&mut self, now: Instant) -> Vec<String> {
        let passed = now.saturating_duration_since(self.refilled);
        let came = MOST as f64 * passed.as_secs_f64() / REFILL.as_secs_f64();
        self.room = (self.room + came).min(MOST as f64);
        self.refilled = now;
        let mut reported = std::mem::take(&mut self.unreported);
        if self.unmentioned > 0 && self.room >= 1.0 {
            self.room -= 1.0;
            let left_out = std::mem::take(&mut self.unmentioned);
            reported.push(format!(
                "{left_out} warnings are not shown: there are more than {MOST} within an hour"
            ));
        }
        reported
    }

    /// The latest warnings; at the end, the number of warnings that were dropped.
    pub(super) fn into_vec(self) -> Vec<String> {
        let more = (self.dropped > 0).then(|| format!("{} further warnings", self.dropped));
        self.kept.into_iter().chain(more).collect()
    }
}

impl Extend<String> for Warnings {
    fn extend<T: IntoIterator<Item = String>>(&mut self, texts: T) {
        texts.into_iter().for_each(|text| self.insert(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_warning_is_kept_once() {
        let mut warnings = Warnings::default();
        warnings.extend((0..MOST + 7).map(|n| format!("thread {n:03}")));
        warnings.insert("thread 000".to_owned());
        let all = warnings.into_vec();
        assert_eq!(all.len(), MOST + 1);
        assert_eq!(all.last().map(String::as_str), Some("7 further warnings"));
    }

    #[test]
    fn line_end_in_a_name_forges_no_warning() {
        let mut warnings = Warnings::default();
        warnings.insert("thread 7 (a\nWARN fake) was released".to_owned());
        let reported = warnings.take_new(Instant::now());
        assert_eq!(reported, ["thread 7 (a\\nWARN fake) was released"]);
    }

    #[test]
    fn room_returns_after_a_flood() {
        let mut warnings = Warnings::default();
        let start = warnings.refilled;
        warnings.extend((0..MOST + 7).map(|n| format!("thread {n:03}")));
        assert_eq!(warnings.take_new(start).len(), MOST);
        warnings.insert("too soon".to_owned());
        let left_out = |number| {
            format!("{number} warnings are not shown: there are more than 100 within an hour")
        };
        assert_eq!(warnings.take_new(start + REFILL / 50), [left_out(8)]);
        warnings.extend(["one", "two"].map(str::to_owned));
        let reported = warnings.take_new(start + 100 * REFILL);
        assert_eq!(reported, ["one".to_owned(), left_out(1)]);
        let all_again = start + 200 * REFILL;
        assert!(warnings.take_new(all_again).is_empty());
        warnings.extend((0..MOST).map(|n| format!("later {n:03}")));
        assert_eq!(warnings.take_new(all_again).len(), MOST);
        let all = warnings.into_vec();
        assert!(all.iter().any(|text| text == "9 further warnings"));
        assert_eq!(all.len(), MOST + 1);
    }

    #[test]
    fn new_warnings_are_taken_once() {
        let mut warnings = Warnings::default();
        warnings.extend(["late".to_owned(), "alone".to_owned(), "late".to_owned()]);
        let now = warnings.refilled;
        assert_eq!(warnings.take_new(now), ["late", "alone"]);
        warnings.insert("alone".to_owned());
        assert!(warnings.take_new(now).is_empty());
        assert_eq!(warnings.into_vec(), ["alone", "late"]);
    }
}
