//! Numbers and texts as bytes.

use super::Damage;

/// Longest text that is read.
const MOST_TEXT: u64 = 4096;

pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A difference modulo 2^64, small in either direction.
pub(super) fn put_signed(out: &mut Vec<u8>, difference: u64) {
    let signed = difference.cast_signed();
    put_number(out, ((signed << 1) ^ (signed >> 63)).cast_unsigned());
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    let most = text.len().min(MOST_TEXT as usize);
    let end = (0..=most)
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0);
    put_number(out, end as u64);
    out.extend_from_slice(&text.as_bytes()[..end]);
}

/// A reader of bytes from the front.
#[derive(Debug, Clone)]
pub(super) struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) const fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn read_byte(&mut self) -> Result<u8, Damage> {
        let (&byte, rest) = self.0.split_first().ok_or(Damage::Truncated)?;
        self.0 = rest;
        Ok(byte)
    }

    pub(super) fn take(&mut self, bytes: u64) -> Result<&'a [u8], Damage> {
        let bytes = usize::try_from(bytes).map_err(|_| Damage::Truncated)?;
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or(Damage::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn read_number(&mut self) -> Result<u64, Damage> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.read_byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Damage::Value)
    }

    pub(super) fn read_signed(&mut self) -> Result<u64, Damage> {
        let number = self.read_number()?;
        Ok((number >> 1) ^ (number & 1).wrapping_neg())
    }

    pub(super) fn read_index(&mut self) -> Result<u32, Damage> {
        u32::try_from(self.read_number()?).map_err(|_| Damage::Value)
    }

    pub(super) fn read_text(&mut self) -> Result<String, Damage> {
        let length = self.read_number()?;
        if length > MOST_TEXT {
            return Err(Damage::Value);
        }
        String::from_utf8(self.take(length)?.to_vec()).map_err(|_| Damage::Value)
    }
}
