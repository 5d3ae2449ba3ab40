//! Paths of control groups as text that keeps every byte.
//!
//! The kernel takes any bytes in a name but `/`, newline and NUL. Patterns and reports are text. So
//! a byte that is no part of a character is represented by a character from the end of the last
//! private plane, which stands for itself nowhere: its own four bytes are represented in the same
//! way. A pattern's `*` and `?` match such a character like any other.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The character that represents byte 0.
const FIRST: u32 = 0x10_FF00;

/// The text that represents these bytes.
pub(crate) fn decode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            match byte_of(char) {
                None => text.push(char),
                Some(_) => {
                    let mut buffer = [0; 4];
                    let bytes = char.encode_utf8(&mut buffer).bytes();
                    text.extend(bytes.filter_map(char_of));
                }
            }
        }
        text.extend(chunk.invalid().iter().copied().filter_map(char_of));
    }
    text
}

/// The bytes that a text represents.
pub(crate) fn encode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for char in text.chars() {
        match byte_of(char) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend(char.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    bytes
}

/// The path that a text represents.
pub(crate) fn path_of(text: &str) -> PathBuf {
    OsString::from_vec(encode(text)).into()
}

/// The text for people: bytes that are no part of a character are escaped, `\xff`.
pub(crate) fn escape_for_display(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match byte_of(char) {
            // Writing to a text does not fail.
            Some(byte) => drop(write!(shown, "\\x{byte:02x}")),
            None => shown.push(char),
        }
    }
    shown
}

/// Text of a file with names in it; `None` where it cannot be read.
pub(crate) fn text_of_file(path: &Path) -> Option<String> {
    Some(decode(&crate::read::bytes(path).ok()?))
}

fn char_of(byte: u8) -> Option<char> {
    char::from_u32(FIRST + u32::from(byte))
}

fn byte_of(char: char) -> Option<u8> {
    u8::try_from(u32::from(char).checked_sub(FIRST)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_that_are_no_text_are_escaped() {
        assert_eq!(escape_for_display(&decode(b"bin\xff/in")), "bin\\xff/in");
        assert_eq!(escape_for_display(&decode("ünï".as_bytes())), "ünï");
    }

    proptest! {
        #[test]
        fn every_byte_comes_back(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(encode(&decode(&bytes)), bytes);
        }

        #[test]
        fn every_text_comes_back(text in "\\PC{0,20}|[\u{10ff00}-\u{10ffff}a]{0,6}") {
            prop_assert_eq!(encode(&decode(text.as_bytes())), text.into_bytes());
        }
    }
}
