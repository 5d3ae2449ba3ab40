//! Lines put together from the pieces that a stream gives, each of bounded length.

use super::message::{MAX_LINE_BYTES, MessageError};

/// The beginning of a line that is not whole yet.
#[derive(Clone, Debug, Default)]
pub struct LineBuffer {
    rest: Vec<u8>,
}

impl LineBuffer {
    /// Takes a piece in; returns the lines that are whole now, without their ends.
    ///
    /// # Errors
    /// When a line is too long; the stream is then of no use any more.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<Vec<u8>>, MessageError> {
        let mut whole = Vec::new();
        let mut parts = piece.split(|&byte| byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            if self.rest.len() + part.len() >= MAX_LINE_BYTES {
                return Err(MessageError::TooLong);
            }
            self.rest.extend_from_slice(part);
            if parts.peek().is_some() {
                whole.push(std::mem::take(&mut self.rest));
            }
        }
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_without_end_is_cut_off() {
        let mut lines = LineBuffer::default();
        let piece = [b'x'; 1_000];
        let taken = (0..10).take_while(|_| lines.push(&piece).is_ok()).count();
        assert_eq!(taken, 4);
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            texts in prop::collection::vec("[a-z]{0,20}", 0..10),
            cut in 1usize..30,
        ) {
            let stream: String = texts.iter().map(|text| format!("{text}\n")).collect();
            let mut lines = LineBuffer::default();
            let pieces = stream.as_bytes().chunks(cut);
            let found: Vec<Vec<u8>> = pieces.flat_map(|p| lines.push(p).unwrap()).collect();
            let texts: Vec<Vec<u8>> = texts.into_iter().map(String::into_bytes).collect();
            prop_assert_eq!(found, texts);
        }
    }
}
