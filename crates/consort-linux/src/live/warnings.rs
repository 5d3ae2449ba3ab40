//! Warnings for the user at the end of a run, each once and in bounded number.

use std::collections::BTreeSet;

/// Most warnings that are kept: a run of weeks with one for each thread must not grow.
const MOST: usize = 100;

/// Warnings, without repetitions.
#[derive(Clone, Debug, Default)]
pub(super) struct Warnings {
    kept: BTreeSet<String>,
    /// Number of warnings for which there was no room, repetitions included.
    dropped: u64,
}

impl Warnings {
    /// Takes in a warning, unless it is there already.
    pub(super) fn insert(&mut self, text: String) {
        if self.kept.len() < MOST {
            self.kept.insert(text);
        } else if !self.kept.contains(&text) {
            self.dropped += 1;
        }
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
}
