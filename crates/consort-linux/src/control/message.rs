//! The messages of the control socket.

use crate::group::MAX_LINE_BYTES;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

/// The version of the control language.
pub const VERSION: u32 = 1;
/// Longest answer, its end included.
pub const MAX_ANSWER_BYTES: usize = 16 << 20;

/// A request to a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum DaemonRequest {
    /// Report the state of the daemon: what it manages, how, and since when.
    Status,
    /// Report the reasons for which a thread is where it is.
    Explain {
        /// Kernel thread id.
        tid: u32,
    },
    /// Manage these processes and control groups.
    Attach(AttachTargets),
    /// Put these back and let go of them.
    Detach(AttachTargets),
    /// Go on with another policy.
    Policy {
        /// The policy with its options, as text.
        policy: String,
    },
    /// Read the configuration again.
    Reload,
}

/// Processes and control groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachTargets {
    /// Processes; each with all that it has started and will start.
    #[serde(default)]
    pub pids: Vec<u32>,
    /// Control groups, as paths or patterns.
    #[serde(default)]
    pub cgroups: Vec<String>,
    /// A policy of their own, as text; the daemon's where none is given.
    #[serde(default)]
    pub policy: Option<String>,
}

/// The answer of a daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DaemonAnswer {
    /// The request was carried out; its result.
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

/// Reason for which a line was not understood.
#[derive(Debug, Error)]
pub enum RequestError {
    /// The line is of another version of the control language.
    #[error("the line speaks version {0} of the control language, and this is version {VERSION}")]
    Version(u32),
    /// The line is no request, or no answer.
    #[error("not a line of the control language: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The request is longer than allowed.
    #[error("a request is at most {MAX_LINE_BYTES} bytes long")]
    TooLong,
}

#[derive(Deserialize)]
struct DaemonLineVersion {
    version: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DaemonRequestLine<T> {
    version: u32,
    request: T,
}

#[derive(Serialize, Deserialize)]
struct DaemonAnswerLine<T> {
    version: u32,
    answer: T,
}

fn check(line: &[u8]) -> Result<(), RequestError> {
    let DaemonLineVersion { version } = serde_json::from_slice(line)?;
    match version {
        VERSION => Ok(()),
        other => Err(RequestError::Version(other)),
    }
}

impl DaemonRequest {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// When the line is too long, of another version, or no request.
    pub fn parse(line: &[u8]) -> Result<Self, RequestError> {
        if line.len() >= MAX_LINE_BYTES {
            return Err(RequestError::TooLong);
        }
        check(line)?;
        Ok(serde_json::from_slice::<DaemonRequestLine<Self>>(line)?.request)
    }

    /// Writes the request as a line, its end included.
    ///
    /// # Errors
    /// [`RequestError::TooLong`].
    pub fn to_line(&self) -> Result<Vec<u8>, RequestError> {
        let version = VERSION;
        let request = self;
        let mut line = serde_json::to_vec(&DaemonRequestLine { version, request })?;
        line.push(b'\n');
        match line.len() > MAX_LINE_BYTES {
            true => Err(RequestError::TooLong),
            false => Ok(line),
        }
    }
}

impl DaemonAnswer {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// When the line is of another version, or no answer.
    pub fn parse(line: &[u8]) -> Result<Self, RequestError> {
        check(line)?;
        Ok(serde_json::from_slice::<DaemonAnswerLine<Self>>(line)?.answer)
    }

    /// Writes the answer as a line, its end included; an error in its place where it would be too
    /// long.
    #[must_use]
    pub fn to_line(&self) -> Vec<u8> {
        let version = VERSION;
        let line = |answer: &Self| {
            let line = serde_json::to_vec(&DaemonAnswerLine { version, answer });
            let line = line.ok().filter(|line| line.len() < MAX_ANSWER_BYTES);
            line.map(|mut line| {
                line.push(b'\n');
                line
            })
        };
        let too_long = || Self::Error("the answer is longer than 16 MiB".to_owned());
        let made = line(self).or_else(|| line(&too_long()));
        made.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_lines_are_those_of_the_module_s_head() {
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
        assert_eq!(
            DaemonAnswer::parse(&answer).unwrap(),
            DaemonAnswer::Error("no".into())
        );
    }

    #[test]
    fn other_versions_keys_and_lengths_are_refused_by_name() {
        let error = |line: &[u8]| DaemonRequest::parse(line).unwrap_err().to_string();
        assert!(error(br#"{"version":2,"request":"dance"}"#).contains("version 2"));
        assert!(error(br#"{"version":1,"request":{"attach":{"pid":1}}}"#).contains("`pid`"));
        let beside = br#"{"version":1,"request":"status","uid":0}"#;
        assert!(error(beside).contains("`uid`"));
        assert!(error(&[b' '; MAX_LINE_BYTES]).contains("at most 4096 bytes"));
        let long = DaemonRequest::Policy {
            policy: "x".repeat(MAX_LINE_BYTES),
        };
        assert!(matches!(long.to_line(), Err(RequestError::TooLong)));
    }

    proptest! {
        #[test]
        fn no_line_is_a_panic(line in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(DaemonRequest::parse(&line).is_err());
            prop_assert!(DaemonAnswer::parse(&line).is_err());
        }

        #[test]
        fn requests_survive_the_way(
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
