//! Warnings for the user, each once and in bounded number: as they come, and all at the end of a
//! run.

use std::collections::BTreeSet;

/// Most warnings that are kept: a run of weeks with one for each thread must not grow.
const MOST: usize = 100;

/// Warnings, without repetitions.
#[derive(Clone, Debug, Default)]
pub(super) struct Warnings {
    kept: BTreeSet<String>,
    /// Those that were taken in since the last were told.
    untold: Vec<String>,
    /// Number of warnings for which there was no room, repetitions included.
    dropped: u64,
}

impl Warnings {
    /// Takes in a warning, unless it is there already.
    pub(super) fn insert(&mut self, text: String) {
        if self.kept.contains(&text) {
            return;
        }
        if self.kept.len() == MOST {
            self.dropped += 1;
            return;
        }
        self.untold.push(text.clone());
        self.kept.insert(text);
    }

    /// Takes the warnings that came since the last call, oldest first.
    pub(super) fn tell(&mut self) -> Vec<String> {
        std::mem::take(&mut self.untold)
    }

    /// All warnings, with the number of further ones as the last.
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
    fn a_warning_is_kept_once_and_a_flood_is_counted() {
        let mut warnings = Warnings::default();
        warnings.extend((0..MOST + 7).map(|n| format!("thread {n:03}")));
        warnings.insert("thread 000".to_owned());
        let all = warnings.into_vec();
        assert_eq!(all.len(), MOST + 1);
        assert_eq!(all.last().map(String::as_str), Some("7 further warnings"));
    }

    #[test]
    fn what_is_new_is_told_once_and_all_at_the_end() {
        let mut warnings = Warnings::default();
        warnings.extend(["late".to_owned(), "alone".to_owned(), "late".to_owned()]);
        assert_eq!(warnings.tell(), ["late", "alone"]);
        warnings.insert("alone".to_owned());
        assert!(warnings.tell().is_empty());
        assert_eq!(warnings.into_vec(), ["alone", "late"]);
    }
}
