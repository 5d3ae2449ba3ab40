//! Lines of bounded length, each one JSON document with the version of its language.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// Longest line other than an answer of a daemon, its end included, bytes.
pub const MAX_LINE_BYTES: usize = 4_096;

/// A language of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Requests to a daemon and its answers.
    Control,
    /// Messages between the members of a group and their leader.
    Groups,
}

impl Language {
    /// Version that this Consort speaks. It rises with every change that an older peer would
    /// misunderstand.
    pub fn version(self) -> u32 {
        match self {
            Self::Control => 1,
            Self::Groups => 3,
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Control => "the control language",
            Self::Groups => "the language of groups",
        })
    }
}

/// Reason for which a line was not understood, or cannot be sent.
#[derive(Debug, Error)]
pub enum LineError {
    /// The line is of another version of its language.
    #[error("the line speaks version {found} of {language}, and this is version {}", language.version())]
    Version {
        /// The language of the connection.
        language: Language,
        /// Version of the line.
        found: u32,
    },
    /// The line is not JSON of the expected form.
    #[error("not a {} of {language}: {source}", noun(language))]
    Malformed {
        /// The language of the connection.
        language: Language,
        /// The fault that the parser found.
        source: serde_json::Error,
    },
    /// The line is longer than [`MAX_LINE_BYTES`].
    #[error("{} is at most {MAX_LINE_BYTES} bytes long", limited(.0))]
    TooLong(Language),
}

fn noun(language: &Language) -> &'static str {
    match language {
        Language::Control => "line",
        Language::Groups => "message",
    }
}

fn limited(language: &Language) -> String {
    match language {
        Language::Control => "a request".to_owned(),
        Language::Groups => format!("a message of {language}"),
    }
}

#[derive(Deserialize)]
struct LineVersion {
    version: u32,
}

/// Reads a line without its end as a document of type `T`, which has a `version`.
pub(super) fn parse_line<T: DeserializeOwned>(
    language: Language,
    line: &[u8],
) -> Result<T, LineError> {
    let malformed = |source| LineError::Malformed { language, source };
    // The version first, because a line of another version may have any other form.
    let LineVersion { version } = serde_json::from_slice(line).map_err(malformed)?;
    if version != language.version() {
        return Err(LineError::Version {
            language,
            found: version,
        });
    }
    serde_json::from_slice(line).map_err(malformed)
}

/// Writes a document as a line of at most `max_bytes`, its end included.
pub(super) fn write_line(
    language: Language,
    max_bytes: usize,
    document: &impl Serialize,
) -> Result<Vec<u8>, LineError> {
    let line = serde_json::to_vec(document);
    let mut line = line.map_err(|source| LineError::Malformed { language, source })?;
    line.push(b'\n');
    match line.len() > max_bytes {
        true => Err(LineError::TooLong(language)),
        false => Ok(line),
    }
}

/// Lines put together from the pieces that a stream returns, each of bounded length.
#[derive(Clone, Debug)]
pub struct LineBuffer {
    language: Language,
    max_bytes: usize,
    /// The beginning of a line that is not complete yet.
    partial: Vec<u8>,
}

impl LineBuffer {
    /// An empty buffer for lines of at most `max_bytes`, their ends included.
    pub fn new(language: Language, max_bytes: usize) -> Self {
        Self {
            language,
            max_bytes,
            partial: Vec::new(),
        }
    }

    /// Adds a piece; returns the lines that are complete now, without their ends.
    ///
    /// # Errors
    /// If a line is too long. The stream is then of no use any more, because the beginning of the
    /// next line cannot be found.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<Vec<u8>>, LineError> {
        let mut complete = Vec::new();
        let mut parts = piece.split(|&byte| byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            if self.partial.len() + part.len() >= self.max_bytes {
                return Err(LineError::TooLong(self.language));
            }
            self.partial.extend_from_slice(part);
            if parts.peek().is_some() {
                complete.push(std::mem::take(&mut self.partial));
            }
        }
        Ok(complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn buffer() -> LineBuffer {
        LineBuffer::new(Language::Groups, MAX_LINE_BYTES)
    }

    #[test]
    fn line_without_end_is_refused_at_limit() {
        let mut lines = buffer();
        let piece = [b'x'; 1_000];
        let taken = (0..10).take_while(|_| lines.push(&piece).is_ok()).count();
        assert_eq!(taken, 4);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_pieces(
            texts in prop::collection::vec("[a-z]{0,20}", 0..10),
            cut in 1usize..30,
        ) {
            let stream: String = texts.iter().map(|text| format!("{text}\n")).collect();
            let mut lines = buffer();
            let pieces = stream.as_bytes().chunks(cut);
            let found: Vec<Vec<u8>> = pieces.flat_map(|p| lines.push(p).unwrap()).collect();
            let texts: Vec<Vec<u8>> = texts.into_iter().map(String::into_bytes).collect();
            prop_assert_eq!(found, texts);
        }
    }
}
