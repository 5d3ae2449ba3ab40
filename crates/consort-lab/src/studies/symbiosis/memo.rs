//! Results that several studies stand on, made once per process.
//!
//! A result follows from seed and scale alone, so whether it is made or remembered cannot be told
//! from it. The number of workers is part of the key all the same: a test that compares two of
//! them would else compare a result with itself.

use crate::context::Context;
use crate::study::{Scale, StudyError};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

type Key = (u64, Scale, NonZeroUsize);

/// One kind of result.
pub(in crate::studies) struct Memo<T>(Mutex<BTreeMap<Key, Arc<T>>>);

impl<T> Memo<T> {
    /// Nothing yet.
    pub(in crate::studies) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// What was made before for this context, or what `make` makes now. Whoever asks meanwhile
    /// waits for it; a failure is not kept.
    pub(in crate::studies) fn get(
        &self,
        context: &Context<'_>,
        make: impl FnOnce() -> Result<T, StudyError>,
    ) -> Result<Arc<T>, StudyError> {
        let key = (context.seed(), context.scale(), context.workers());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = known.get(&key) {
            return Ok(Arc::clone(made));
        }
        let made = Arc::new(make()?);
        known.insert(key, Arc::clone(&made));
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::workers;

    #[test]
    fn each_key_is_made_once_and_failures_are_not_kept() {
        let memo = Memo::new();
        let context = |seed, count| Context::new(seed, Scale::Quick, workers(count), &|_| ());
        let failing = memo.get(&context(1, 1), || Err(StudyError::Workers("no".to_owned())));
        assert!(failing.is_err());
        let mut made = 0;
        for (seed, count) in [(1, 1), (1, 1), (2, 1), (1, 2), (2, 1)] {
            let got = memo.get(&context(seed, count), || {
                made += 1;
                Ok((seed, count))
            });
            assert_eq!(*got.unwrap(), (seed, count));
        }
        assert_eq!(made, 3);
    }
}
