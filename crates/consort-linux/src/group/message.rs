//! The messages between members and their leader.
//!
//! One JSON document per line, at most [`MAX_LINE_BYTES`] long, with the version of this language:
//!
//! ```json
//! {"version":3,"message":{"hello":{"policy":"gang","interval_ms":null,"dry_run":false,"profile":null}}}
//! {"version":3,"message":{"welcome":{"leader":4711,"run":"4711-88-0","policy":"gang","interval_ms":2000,"dry_run":false,"profile":null,"open":{"policy":false,"interval":true}}}}
//! {"version":3,"message":{"program":{"pid":4720,"start_ticks":8812,"name":"xz"}}}
//! {"version":3,"message":"taken"}
//! {"version":3,"message":"wake"}
//! {"version":3,"message":{"terms":{"leader":4711,...}}}
//! ```
//!
//! A member says `hello` before it starts its command, `program` when it has started it, and `wake`
//! whenever its command is sent a signal, so that a paused one can receive it. The answer to the
//! first two is `welcome`, `taken` or `refused` with the reason. In between, a leader says `terms`
//! whenever these change, so that each member could lead on by them. The end of the connection is
//! the end of the membership, for either side.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use thiserror::Error;

/// The version of the language of groups.
pub const VERSION: u32 = 3;
/// Longest line, its end included.
pub const MAX_LINE_BYTES: usize = 4_096;

/// A message of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MemberMessage {
    /// The member would like to join on these terms.
    Hello(Demands),
    /// The member has started this command.
    Program(JoiningCommand),
    /// The member's command was sent a signal and should run to receive it.
    Wake,
}

/// A message of a leader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeaderMessage {
    /// The member may start its command on these terms.
    Welcome(GroupTerms),
    /// The member's command is managed.
    Taken,
    /// The member cannot join, for this reason.
    Refused(String),
    /// The terms that hold from now on.
    Terms(GroupTerms),
}

/// The terms that a member asks for; it takes the leader's for those that it leaves open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demands {
    /// Policy with options, as text.
    pub policy: Option<String>,
    /// Quantum, ms.
    pub interval_ms: Option<u64>,
    /// True if plans are made and not carried out.
    pub dry_run: bool,
    /// Report or file with measures of programs that this machine cannot count.
    pub profile: Option<PathBuf>,
}

/// The terms of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupTerms {
    /// Pid of the leader.
    pub leader: u32,
    /// Id of the leader's run, which is in the environment of the programs that it manages.
    pub run: String,
    /// Policy with options, as text.
    pub policy: String,
    /// Quantum, ms.
    pub interval_ms: u64,
    /// True if plans are made and not carried out.
    pub dry_run: bool,
    /// Report or file with measures of programs that this machine cannot count, if there is one.
    pub profile: Option<PathBuf>,
    /// Terms that no member has asked for so far.
    pub open: OpenTerms,
}

/// Terms that the leader has chosen itself: the first member that asks for others settles them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenTerms {
    /// The policy, and with it the recording.
    pub policy: bool,
    /// The quantum.
    pub interval: bool,
}

impl GroupTerms {
    /// Demands of a run that is to lead or to join on these terms; open terms stay open.
    pub fn demands(&self) -> Demands {
        Demands {
            policy: (!self.open.policy).then(|| self.policy.clone()),
            interval_ms: (!self.open.interval).then_some(self.interval_ms),
            dry_run: self.dry_run,
            profile: self.profile.clone(),
        }
    }
}

/// A command that is to be managed by the leader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoiningCommand {
    /// Process id of the command.
    pub pid: u32,
    /// Start of the process, clock ticks since boot.
    pub start_ticks: u64,
    /// Name of the command in reports.
    pub name: String,
}

/// Reason for which a line was not understood.
#[derive(Debug, Error)]
pub enum MessageError {
    /// The line is of another version of the language of groups.
    #[error("the line speaks version {0} of the language of groups, and this is version {VERSION}")]
    Version(u32),
    /// The line is not a message.
    #[error("not a message of the language of groups: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The line is longer than [`MAX_LINE_BYTES`].
    #[error("a message of the language of groups is at most {MAX_LINE_BYTES} bytes long")]
    TooLong,
}

#[derive(Deserialize)]
struct GroupLineVersion {
    version: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<T> {
    version: u32,
    message: T,
}

/// Reads a line without its end.
pub(super) fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, MessageError> {
    if line.len() >= MAX_LINE_BYTES {
        return Err(MessageError::TooLong);
    }
    let GroupLineVersion { version } = serde_json::from_slice(line)?;
    if version != VERSION {
        return Err(MessageError::Version(version));
    }
    Ok(serde_json::from_slice::<Envelope<T>>(line)?.message)
}

/// Writes a message as a line, its end included.
pub(super) fn to_line<T: Serialize>(message: &T) -> Result<Vec<u8>, MessageError> {
    let version = VERSION;
    let mut line = serde_json::to_vec(&Envelope { version, message })?;
    line.push(b'\n');
    if line.len() > MAX_LINE_BYTES {
        return Err(MessageError::TooLong);
    }
    Ok(line)
}

impl MemberMessage {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// When the line is not a message of this version.
    pub fn parse(line: &[u8]) -> Result<Self, MessageError> {
        parse(line)
    }
}

impl LeaderMessage {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// When the line is not a message of this version.
    pub fn parse(line: &[u8]) -> Result<Self, MessageError> {
        parse(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn there_and_back(request: &MemberMessage) {
        let line = to_line(request).unwrap();
        assert_eq!(line.last(), Some(&b'\n'));
        assert_eq!(
            MemberMessage::parse(&line[..line.len() - 1]).unwrap(),
            *request
        );
    }

    #[test]
    fn every_request_survives_the_way() {
        there_and_back(&MemberMessage::Hello(Demands::default()));
        there_and_back(&MemberMessage::Wake);
        there_and_back(&MemberMessage::Program(JoiningCommand {
            pid: 7,
            start_ticks: 9,
            name: "a \"b\"\n".to_owned(),
        }));
    }

    #[test]
    fn the_lines_are_those_of_the_module_s_head() {
        let wake = to_line(&MemberMessage::Wake).unwrap();
        assert_eq!(wake, b"{\"version\":3,\"message\":\"wake\"}\n");
        let hello = MemberMessage::Hello(Demands {
            policy: Some("gang".to_owned()),
            ..Demands::default()
        });
        let text = "{\"version\":3,\"message\":{\"hello\":\
             {\"policy\":\"gang\",\"interval_ms\":null,\"dry_run\":false,\"profile\":null}}}";
        assert_eq!(MemberMessage::parse(text.as_bytes()).unwrap(), hello);
    }

    #[test]
    fn another_version_is_named_whatever_it_says() {
        let error = MemberMessage::parse(br#"{"version":1,"message":{"dance":1}}"#).unwrap_err();
        assert!(error.to_string().contains("speaks version 1"), "{error}");
    }

    #[test]
    fn a_line_that_is_too_long_is_refused_by_both_sides() {
        let name = "x".repeat(MAX_LINE_BYTES);
        let request = MemberMessage::Program(JoiningCommand {
            pid: 1,
            start_ticks: 1,
            name: name.clone(),
        });
        assert!(matches!(to_line(&request), Err(MessageError::TooLong)));
        assert!(matches!(
            MemberMessage::parse(name.as_bytes()),
            Err(MessageError::TooLong)
        ));
    }

    proptest! {
        #[test]
        fn no_line_is_a_panic(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = MemberMessage::parse(&line);
            prop_assert!(LeaderMessage::parse(&line).is_err());
        }
    }
}
