//! The futex calls of Linux (futex(2)).

use crate::recorder::SystemCall;

/// Number of the call on x86-64.
const FUTEX: u64 = 202;
/// Bits of the operation without the flags for private words and clocks.
const OPERATION: u64 = 0x7f;

/// A futex call, by its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Futex {
    /// Waits on a word for as long as it has a value.
    Wait(u64, u64),
    /// Wakes so many threads that wait on a word, or moves them to another word.
    Wake(u64, u64),
}

impl Futex {
    /// The futex call; `None` for other calls and operations. The operations are `FUTEX_WAIT`,
    /// `FUTEX_WAIT_BITSET`, `FUTEX_WAKE`, `FUTEX_WAKE_BITSET`, `FUTEX_WAKE_OP`, `FUTEX_REQUEUE` and
    /// `FUTEX_CMP_REQUEUE`. One that moves waiters counts as one that wakes all.
    pub(super) fn from_call(call: &SystemCall) -> Option<Self> {
        let [word, operation, value] = call.arguments;
        if call.number != FUTEX {
            return None;
        }
        match operation & OPERATION {
            0 | 9 => Some(Self::Wait(word, value)),
            1 | 5 | 10 => Some(Self::Wake(word, value & 0xffff_ffff)),
            3 | 4 => Some(Self::Wake(word, u64::MAX)),
            _ => None,
        }
    }
}

#[cfg(test)]
pub(super) fn call(operation: u64, word: u64, value: u64) -> SystemCall {
    SystemCall {
        number: FUTEX,
        arguments: [word, operation, value],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn futex_operations_are_recognised() {
        assert_eq!(Futex::from_call(&call(128, 8, 1)), Some(Futex::Wait(8, 1)));
        assert_eq!(Futex::from_call(&call(129, 8, 3)), Some(Futex::Wake(8, 3)));
        assert_eq!(
            Futex::from_call(&call(4, 8, 0)),
            Some(Futex::Wake(8, u64::MAX))
        );
        assert_eq!(Futex::from_call(&call(6, 8, 0)), None);
        assert_eq!(Futex::from_call(&SystemCall::default()), None);
    }
}
