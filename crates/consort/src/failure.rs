//! Failure of the program: one line on stderr and exit code 1 or 2.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use consort_core::escape_invisible;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// Error message for `consort` without a verb.
const NO_VERB: &str = "a verb is required, for example: consort run -- CMD; see --help";

/// Exit code for bad usage and bad input.
const BAD_INPUT: u8 = 2;

/// An error with an exit code of its own instead of 1.
#[derive(Debug)]
struct CodedError {
    code: u8,
    message: String,
}

impl fmt::Display for CodedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CodedError {}

/// An error of the caller: it names the input, what is wrong with it, and what is expected.
pub(crate) fn bad_input(message: impl fmt::Display) -> anyhow::Error {
    with_code(BAD_INPUT, message)
}

/// An error that ends the program with this exit code.
pub(crate) fn with_code(code: u8, message: impl fmt::Display) -> anyhow::Error {
    let message = message.to_string();
    CodedError { code, message }.into()
}

/// The same error, marked as the caller's, with its whole chain as one line.
pub(crate) fn as_bad_input(error: &anyhow::Error) -> anyhow::Error {
    bad_input(error_chain(error))
}

/// The chain of an error as one text, without causes that an effect repeats.
pub(crate) fn error_chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Prints an error as one line and returns its exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    say(&one_line(&error_chain(error)));
    let coded = error.downcast_ref::<CodedError>();
    coded.map_or(ExitCode::FAILURE, |coded| ExitCode::from(coded.code))
}

/// Prints an error that changes nothing about the exit code.
pub(crate) fn warn(error: &anyhow::Error) {
    say(&one_line(&format!("warning: {}", error_chain(error))));
}

/// Prints an error of clap as one line; help and version go to stdout unchanged.
pub(crate) fn report_usage(error: &clap::Error, command: &clap::Command) -> ExitCode {
    if !error.use_stderr() {
        // A closed reader, as with `consort --help | head -1`, is no failure.
        return match error.print() {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
            _ => ExitCode::SUCCESS,
        };
    }
    let (path, verb) = innermost_verb(command);
    let line = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if path.is_empty() => {
            NO_VERB.to_owned()
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let names = verb.get_subcommands().map(clap::Command::get_name);
            let names = names.collect::<Vec<_>>().join(", ");
            format!("consort{path} needs one of {names}; see consort{path} --help")
        }
        ErrorKind::InvalidSubcommand => {
            let given = match error.get(ContextKind::InvalidSubcommand) {
                Some(ContextValue::String(given)) => given.as_str(),
                _ => "",
            };
            // `consort help --help`, where the parser expects a verb.
            if matches!(given, "-h" | "--help") {
                let _ = command.clone().print_help();
                return ExitCode::SUCCESS;
            }
            let visible = verb.get_subcommands().filter(|verb| !verb.is_hide_set());
            let names: Vec<&str> = visible.map(clap::Command::get_name).collect();
            let hint = consort_core::hint(given, names.into_iter());
            let of = if path.is_empty() {
                String::new()
            } else {
                format!(" of consort{path}")
            };
            format!("unknown verb '{given}'{of}; {hint}")
        }
        ErrorKind::InvalidUtf8 => {
            let mut given = std::env::args_os().skip(1);
            let given = given
                .find(|word| word.to_str().is_none())
                .unwrap_or_default();
            format!(
                "argument {} is not valid UTF-8; rename what it names",
                given.display()
            )
        }
        ErrorKind::UnknownArgument => {
            dashed_value(error).unwrap_or_else(|| usage_line(&error.to_string()))
        }
        _ => usage_line(&error.to_string()),
    };
    say(&line);
    ExitCode::from(BAD_INPUT)
}

/// Prints a line to stderr. If that fails, as on a full disk, only the exit code is left.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "consort: {}", escape_invisible(line));
}

/// The verb below which the arguments of this process go wrong, and its path, as ` list`.
fn innermost_verb(command: &clap::Command) -> (String, &clap::Command) {
    let (mut path, mut verb) = (String::new(), command);
    for word in std::env::args_os().skip(1) {
        let word = word.to_string_lossy();
        match verb.find_subcommand(&*word) {
            Some(inner) => {
                path = format!("{path} {word}");
                verb = inner;
            }
            None if word.starts_with('-') => {}
            None => break,
        }
    }
    (path, verb)
}

/// A value such as `-1`, which the parser takes for an option, with the option that it follows.
fn dashed_value(error: &clap::Error) -> Option<String> {
    let number = |word: &str| {
        let digits = word.strip_prefix('-')?;
        digits
            .starts_with(|c: char| c.is_ascii_digit())
            .then(|| word.to_owned())
    };
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    number(given)?;
    let words: Vec<String> = { std::env::args_os() }
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let at = words
        .iter()
        .position(|word| word.starts_with(given.as_str()))?;
    let (value, option) = (&words[at], words[..at].last()?);
    Some(format!(
        "invalid value '{value}' for '{option}': it must not begin with '-'; see --help"
    ))
}

/// Clap's message and its tips without the usage block.
fn usage_line(message: &str) -> String {
    let reported = message.lines().map(str::trim).take_while(|line| {
        !line.starts_with("Usage:") && !line.starts_with("For more information")
    });
    let parts: Vec<&str> = reported.filter(|line| !line.is_empty()).collect();
    let line = parts.join("; ");
    let line = line
        .strip_prefix("error: ")
        .unwrap_or(&line)
        .replace(":; ", ": ");
    format!("{line}; see --help")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
