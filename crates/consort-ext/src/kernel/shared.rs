//! Memory that the kernel's part and this process both use while the other does.

use std::sync::atomic::{AtomicU64, Ordering};

/// A value that the kernel may change at any time.
pub(super) fn read<T: Copy>(field: &T) -> T {
    // SAFETY: a reference is valid and aligned; volatile, since the kernel writes meanwhile. All
    // types read so are plain numbers, of which every bit pattern is a value.
    unsafe { std::ptr::read_volatile(field) }
}

/// Stores a value so that the kernel sees all earlier stores first.
pub(super) fn publish(field: &mut u64, value: u64) {
    // SAFETY: the exclusive reference is valid and aligned; the kernel reads the field in one
    // piece, as atomics do.
    unsafe { AtomicU64::from_ptr(field) }.store(value, Ordering::Release);
}

/// Text that ends at its first zero byte.
pub(super) fn text(bytes: &[i8]) -> String {
    let until_zero = bytes.iter().map(|byte| read(byte).to_ne_bytes()[0]);
    let bytes: Vec<u8> = until_zero.take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_the_first_zero() {
        assert_eq!(text(&[104, 105, 0, 33]), "hi");
    }

    #[test]
    fn what_is_published_is_read() {
        let mut field = 3;
        publish(&mut field, 7);
        assert_eq!(read(&field), 7);
    }
}
