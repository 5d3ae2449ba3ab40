//! Assertions of the reader of Parquet, which damaged pages break, as errors.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// True while this thread's panics are held.
    static HOLDS: Cell<bool> = const { Cell::new(false) };
}

/// Result of a call, or nothing where it panicked; nothing is printed of that.
pub(crate) fn catch_panic<T>(call: impl FnOnce() -> T) -> Option<T> {
    silence_caught_panics();
    let before = HOLDS.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    HOLDS.set(before);
    result.ok()
}

/// Wraps the process's hook, once: panics elsewhere are printed as ever.
fn silence_caught_panics() {
    static WRAPPED: Once = Once::new();
    WRAPPED.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            if !HOLDS.get() {
                usual(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_panics_has_no_result_and_what_does_not_has_its_own() {
        assert_eq!(catch_panic(|| 7), Some(7));
        assert_eq!(catch_panic(|| Vec::<u8>::new()[0]), None);
        assert!(!HOLDS.get());
    }
}
