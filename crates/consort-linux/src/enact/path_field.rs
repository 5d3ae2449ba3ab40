//! Paths as one field of a journal's line.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Writes a path without blanks and control characters: such bytes, the backslash and all beyond
/// ASCII become a backslash and three octal digits, as in `/proc/self/mountinfo`.
pub(super) fn escape_path(path: &Path) -> String {
    let mut text = String::new();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_graphic() && byte != b'\\' {
            text.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(text, "\\{byte:03o}");
        }
    }
    text
}

/// Reads a path; none where a backslash is not followed by three octal digits.
pub(super) fn unescape_path(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'\\' {
            let digits = str::from_utf8(tail.get(..3)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 8).ok()?);
            rest = &tail[3..];
        } else {
            bytes.push(byte);
            rest = tail;
        }
    }
    Some(OsString::from_vec(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cut_escape_is_no_path() {
        for text in ["/a\\", "/a\\04", "/a\\9aa", "/\\777"] {
            assert_eq!(unescape_path(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn paths_come_back_and_have_no_blanks(bytes in prop::collection::vec(1u8.., 0..40)) {
            let path = PathBuf::from(OsString::from_vec(bytes));
            let text = escape_path(&path);
            prop_assert!(text.bytes().all(|b| b.is_ascii_graphic()));
            prop_assert_eq!(unescape_path(&text), Some(path));
        }

        #[test]
        fn any_text_is_read_without_panic(text: String) {
            let _ = unescape_path(&text);
        }
    }
}
