//! All messages between processes: requests to a daemon with their answers, and those between the
//! members of a group and their leader.
//!
//! Each is one line of JSON with the version of its [`Language`]:
//!
//! ```json
//! {"version":1,"request":"status"}
//! {"version":1,"answer":{"ok":{"policy":"workover",...}}}
//! {"version":3,"message":{"hello":{"policy":"gang","interval_ms":null,"dry_run":false,"profile":null}}}
//! {"version":3,"message":{"welcome":{"leader":4711,"run":"4711-88-0","policy":"gang","interval_ms":2000,"dry_run":false,"profile":null,"open":{"policy":false,"interval":true}}}}
//! {"version":3,"message":{"program":{"pid":4720,"start_ticks":8812,"name":"xz"}}}
//! {"version":3,"message":"taken"}
//! {"version":3,"message":"wake"}
//! {"version":3,"message":{"terms":{"leader":4711,...}}}
//! ```
//!
//! A member sends `hello` before it starts its command, `program` when it has started it, and `wake`
//! whenever its command is sent a signal, so that a paused command can receive it. The answer to the
//! first two is `welcome`, `taken` or `refused` with the reason. A leader sends `terms` whenever they
//! change, so that each member could lead on by them. The end of the connection ends the membership,
//! for either side.

use super::connection::{Language, LineError, MAX_LINE_BYTES, parse_line, write_line};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// Longest answer of a daemon, its end included, bytes.
pub const MAX_ANSWER_BYTES: usize = 16 << 20;

/// A request to a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum DaemonRequest {
    /// Report the state of the daemon: what it manages, how, and since when.
    Status,
    /// Report why a thread is where it is.
    Explain {
        /// Kernel thread id.
        tid: u32,
    },
    /// Manage these processes and control groups.
    Attach(AttachTargets),
    /// Restore the masks of these and stop managing them.
    Detach(AttachTargets),
    /// Use another policy from now on.
    Policy {
        /// The policy with its options, as text.
        policy: String,
    },
    /// Read the configuration again.
    Reload,
}

/// Processes and control groups to attach or detach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachTargets {
    /// Processes, each with all that it has started and will start.
    #[serde(default)]
    pub pids: Vec<u32>,
    /// Control groups, as paths or patterns.
    #[serde(default)]
    pub cgroups: Vec<String>,
    /// A policy of their own, as text; `None` for the daemon's.
    #[serde(default)]
    pub policy: Option<String>,
}

/// The answer of a daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DaemonAnswer {
    /// The request was carried out, with this result.
    Ok(Value),
    /// The request was refused, for this reason.
    Error(String),
}

impl From<Result<Value, String>> for DaemonAnswer {
    fn from(result: Result<Value, String>) -> Self {
        match result {
            Ok(value) => Self::Ok(value),
            Err(why) => Self::Error(why),
        }
    }
}

/// A message of a member of a group.
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

/// A message of the leader of a group.
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

/// The terms that a member demands; it accepts the leader's for the ones that it leaves open.
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
    /// Terms that no member has demanded so far.
    pub open: OpenTerms,
}

/// Terms that the leader has chosen itself: the first member that demands others settles them.
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

/// A command that the leader of a group is to manage.
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

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestLine<T> {
    version: u32,
    request: T,
}

#[derive(Serialize, Deserialize)]
struct AnswerLine<T> {
    version: u32,
    answer: T,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupLine<T> {
    version: u32,
    message: T,
}

fn check_length(language: Language, line: &[u8]) -> Result<(), LineError> {
    match line.len() >= MAX_LINE_BYTES {
        true => Err(LineError::TooLong(language)),
        false => Ok(()),
    }
}

impl DaemonRequest {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// If the line is too long, of another version, or no request.
    pub fn parse(line: &[u8]) -> Result<Self, LineError> {
        check_length(Language::Control, line)?;
        Ok(parse_line::<RequestLine<Self>>(Language::Control, line)?.request)
    }

    /// Writes the request as a line, its end included.
    ///
    /// # Errors
    /// [`LineError::TooLong`].
    pub fn to_line(&self) -> Result<Vec<u8>, LineError> {
        let line = RequestLine {
            version: Language::Control.version(),
            request: self,
        };
        write_line(Language::Control, MAX_LINE_BYTES, &line)
    }
}

impl DaemonAnswer {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// If the line is of another version, or no answer.
    pub fn parse(line: &[u8]) -> Result<Self, LineError> {
        Ok(parse_line::<AnswerLine<Self>>(Language::Control, line)?.answer)
    }

    /// Writes the answer as a line, its end included. An answer that would be longer than
    /// [`MAX_ANSWER_BYTES`] is replaced by an error.
    #[must_use]
    pub fn to_line(&self) -> Vec<u8> {
        let write = |answer: &Self| {
            let version = Language::Control.version();
            let line = AnswerLine { version, answer };
            write_line(Language::Control, MAX_ANSWER_BYTES, &line)
        };
        let too_long = Self::Error("the answer is longer than 16 MiB".to_owned());
        write(self)
            .or_else(|_| write(&too_long))
            .unwrap_or_default()
    }
}

fn parse_group_line<T: serde::de::DeserializeOwned>(line: &[u8]) -> Result<T, LineError> {
    check_length(Language::Groups, line)?;
    Ok(parse_line::<GroupLine<T>>(Language::Groups, line)?.message)
}

fn write_group_line(message: &impl Serialize) -> Result<Vec<u8>, LineError> {
    let version = Language::Groups.version();
    let line = GroupLine { version, message };
    write_line(Language::Groups, MAX_LINE_BYTES, &line)
}

impl MemberMessage {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// If the line is too long, of another version, or no message of a member.
    pub fn parse(line: &[u8]) -> Result<Self, LineError> {
        parse_group_line(line)
    }

    /// Writes the message as a line, its end included.
    ///
    /// # Errors
    /// [`LineError::TooLong`].
    pub fn to_line(&self) -> Result<Vec<u8>, LineError> {
        write_group_line(self)
    }
}

impl LeaderMessage {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// If the line is too long, of another version, or no message of a leader.
    pub fn parse(line: &[u8]) -> Result<Self, LineError> {
        parse_group_line(line)
    }

    /// Writes the message as a line, its end included.
    ///
    /// # Errors
    /// [`LineError::TooLong`].
    pub fn to_line(&self) -> Result<Vec<u8>, LineError> {
        write_group_line(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_lines_match_documentation() {
        let line = DaemonRequest::Status.to_line().unwrap();
        assert_eq!(line, b"{\"version\":1,\"request\":\"status\"}\n");
        let text =
            br#"{"version":1,"request":{"attach":{"pids":[4711],"cgroups":[],"policy":"gang"}}}"#;
        let attach = DaemonRequest::Attach(AttachTargets {
            pids: vec![4711],
            cgroups: Vec::new(),
            policy: Some("gang".to_owned()),
        });
        assert_eq!(DaemonRequest::parse(text).unwrap(), attach);
        let answer = DaemonAnswer::Error("no".to_owned()).to_line();
        assert_eq!(answer, b"{\"version\":1,\"answer\":{\"error\":\"no\"}}\n");
        let read = DaemonAnswer::parse(&answer).unwrap();
        assert_eq!(read, DaemonAnswer::Error("no".into()));
    }

    #[test]
    fn group_lines_match_documentation() {
        let wake = MemberMessage::Wake.to_line().unwrap();
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
    fn wrong_control_lines_are_refused_with_reason() {
        let error = |line: &[u8]| DaemonRequest::parse(line).unwrap_err().to_string();
        assert_eq!(
            error(br#"{"version":2,"request":"dance"}"#),
            "the line speaks version 2 of the control language, and this is version 1"
        );
        assert!(error(br#"{"version":1,"request":{"attach":{"pid":1}}}"#).contains("`pid`"));
        let extra = error(br#"{"version":1,"request":"status","uid":0}"#);
        assert!(extra.starts_with("not a line of the control language: "));
        assert!(extra.contains("`uid`"), "{extra}");
        let long = error(&[b' '; MAX_LINE_BYTES]);
        assert_eq!(long, "a request is at most 4096 bytes long");
        let request = DaemonRequest::Policy {
            policy: "x".repeat(MAX_LINE_BYTES),
        };
        assert!(matches!(request.to_line(), Err(LineError::TooLong(_))));
    }

    #[test]
    fn wrong_group_lines_are_refused_with_reason() {
        let error = |line: &[u8]| MemberMessage::parse(line).unwrap_err().to_string();
        assert_eq!(
            error(br#"{"version":1,"message":{"dance":1}}"#),
            "the line speaks version 1 of the language of groups, and this is version 3"
        );
        assert!(error(b"{}").starts_with("not a message of the language of groups: "));
        let name = "x".repeat(MAX_LINE_BYTES);
        assert_eq!(
            error(name.as_bytes()),
            "a message of the language of groups is at most 4096 bytes long"
        );
        let program = MemberMessage::Program(JoiningCommand {
            pid: 1,
            start_ticks: 1,
            name,
        });
        assert!(matches!(program.to_line(), Err(LineError::TooLong(_))));
    }

    #[test]
    fn member_messages_are_read_back() {
        for message in [
            MemberMessage::Hello(Demands::default()),
            MemberMessage::Wake,
            MemberMessage::Program(JoiningCommand {
                pid: 7,
                start_ticks: 9,
                name: "a \"b\"\n".to_owned(),
            }),
        ] {
            let line = message.to_line().unwrap();
            assert_eq!(line.last(), Some(&b'\n'));
            let read = MemberMessage::parse(&line[..line.len() - 1]).unwrap();
            assert_eq!(read, message);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_lines_are_refused(line in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(DaemonRequest::parse(&line).is_err());
            prop_assert!(DaemonAnswer::parse(&line).is_err());
            let _ = MemberMessage::parse(&line);
            prop_assert!(LeaderMessage::parse(&line).is_err());
        }

        #[test]
        fn daemon_requests_are_read_back(
            pids in prop::collection::vec(any::<u32>(), 0..9),
            cgroups in prop::collection::vec("\\PC{0,20}", 0..9),
            policy in prop::option::of("[a-z:=.0-9]{1,20}"),
        ) {
            let request = DaemonRequest::Detach(AttachTargets { pids, cgroups, policy });
            let line = request.to_line().unwrap();
            prop_assert_eq!(DaemonRequest::parse(&line[..line.len() - 1]).unwrap(), request);
        }
    }
}
