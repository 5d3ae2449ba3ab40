//! Ports as Verilator lays them out in memory.

/// Bytes of Verilator's type for a port of so many bits: 1, 2, 4, 8, or words of 4.
pub(crate) fn bytes(bits: usize) -> usize {
    match bits {
        0..=8 => 1,
        9..=16 => 2,
        17..=32 => 4,
        33..=64 => 8,
        _ => 4 * bits.div_ceil(32),
    }
}

/// Appends fields of equal width to a frame as one port, the first in the lowest bits.
pub(crate) fn put_port(frame: &mut Vec<u8>, width: usize, fields: impl Iterator<Item = u64>) {
    let start = frame.len();
    let mut at = 0;
    for field in fields {
        for bit in 0..width {
            let byte = start + (at + bit) / 8;
            if frame.len() <= byte {
                frame.resize(byte + 1, 0);
            }
            frame[byte] |= ((field >> bit & 1) as u8) << ((at + bit) % 8);
        }
        at += width;
    }
    frame.resize(start + bytes(at), 0);
}

/// Reads a port of so many fields off the front of a frame.
pub(crate) fn take_port(frame: &mut &[u8], width: usize, count: usize) -> Vec<u64> {
    let (own, rest) = frame.split_at(bytes(width * count).min(frame.len()));
    *frame = rest;
    let bit = |n: usize| u64::from(own.get(n / 8).is_some_and(|byte| byte >> (n % 8) & 1 == 1));
    let field = |n: usize| (0..width).fold(0, |value, b| value | bit(n * width + b) << b);
    (0..count).map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_put_is_taken(
            width in 1usize..=64,
            fields in prop::collection::vec(any::<u64>(), 1..40),
        ) {
            let mask = u64::MAX >> (64 - width);
            let fields: Vec<u64> = fields.iter().map(|f| f & mask).collect();
            let mut frame = Vec::new();
            put_port(&mut frame, width, fields.iter().copied());
            prop_assert_eq!(frame.len(), bytes(width * fields.len()));
            let mut rest = frame.as_slice();
            prop_assert_eq!(take_port(&mut rest, width, fields.len()), fields);
            prop_assert!(rest.is_empty());
        }
    }
}
