//! Bound on guests that run at once: each keeps a host thread busy part of the time, and starved
//! ones run out of time.

use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::thread::available_parallelism;

/// Two for each PU, and no more than memory bears: each guest has one or two GiB.
static PLACES: LazyLock<usize> = LazyLock::new(|| {
    available_parallelism()
        .map_or(4, |pus| 2 * pus.get())
        .min(6)
});

static TAKEN: Mutex<usize> = Mutex::new(0);
static GIVEN_BACK: Condvar = Condvar::new();

/// A place for one guest, given back when dropped.
pub(crate) struct GuestPlace(());

/// Waits for a place.
pub(crate) fn wait_for_place() -> GuestPlace {
    let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let full = GIVEN_BACK.wait_while(taken, |taken| *taken >= *PLACES);
    *full.unwrap_or_else(PoisonError::into_inner) += 1;
    GuestPlace(())
}

impl Drop for GuestPlace {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        GIVEN_BACK.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn no_more_guests_than_places() {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let _place = wait_for_place();
                    let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    std::thread::yield_now();
                    running.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert!((1..=*PLACES).contains(&most.load(Ordering::SeqCst)));
    }
}
