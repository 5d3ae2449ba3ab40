//! Results on stdout, failures on stderr, and the exit status.

use clap::ValueEnum;
use consort_kernels::KernelError;
use consort_kernels::crew::ThreadReport;
use serde::Serialize;
use std::io::{self, Write};
use std::process::ExitCode;
use thiserror::Error;

/// Output format of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoFormat {
    /// For people.
    Table,
    /// One JSON document.
    Json,
}

/// A program's judgement of its own results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DemoVerdict {
    Right,
    Wrong,
}

impl DemoVerdict {
    pub(crate) fn from_ok(ok: bool) -> Self {
        match ok {
            true => Self::Right,
            false => Self::Wrong,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Right => "ok",
            Self::Wrong => "WRONG",
        }
    }
}

impl From<DemoVerdict> for ExitCode {
    fn from(verdict: DemoVerdict) -> Self {
        match verdict {
            DemoVerdict::Right => Self::SUCCESS,
            DemoVerdict::Wrong => Self::FAILURE,
        }
    }
}

/// Reason why a program did not come to a verdict.
#[derive(Debug, Error)]
pub(crate) enum DemoError {
    /// A kernel could not run.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A call of the system failed.
    #[error("{what}: {source}")]
    System {
        /// Action that failed.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// The program cannot run here.
    #[error("{0}")]
    Unavailable(String),
    /// A result could not be printed.
    #[error("cannot write the result to stdout: {0}")]
    Stdout(#[from] io::Error),
}

impl DemoError {
    /// Wraps a system error with what was tried.
    pub(crate) fn system<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self::System {
            what,
            source: source.into(),
        }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Kernel(KernelError::Unsupported { .. }) | Self::Unavailable(_) => 2,
            _ => 1,
        }
    }
}

pub(crate) type DemoOutcome = Result<DemoVerdict, DemoError>;

/// Prints a failure on stderr.
pub(crate) fn fail(code: u8, message: &str) -> ExitCode {
    // With a closed stderr, the exit status still shows the failure.
    let _ = writeln!(io::stderr(), "consort-demo: {message}");
    ExitCode::from(code)
}

/// Prints one line or block.
pub(crate) fn print_line(text: &str) -> Result<(), DemoError> {
    Ok(writeln!(io::stdout(), "{}", text.trim_end())?)
}

/// Prints a program's result, as text or as one JSON document.
pub(crate) fn print_result(
    ok: bool,
    format: DemoFormat,
    text: impl FnOnce() -> String,
    document: &impl Serialize,
) -> DemoOutcome {
    match format {
        DemoFormat::Table => print_line(&text())?,
        DemoFormat::Json => {
            print_line(&serde_json::to_string(document).map_err(io::Error::other)?)?;
        }
    }
    Ok(DemoVerdict::from_ok(ok))
}

/// The result of a program made of threads.
#[derive(Serialize)]
struct ProgramReport<'a> {
    program: &'a str,
    threads: &'a [ThreadReport],
    ok: bool,
}

/// Prints what the threads did; right if all of them are.
pub(crate) fn print_threads(
    program: &str,
    threads: &[ThreadReport],
    format: DemoFormat,
) -> DemoOutcome {
    let ok = threads.iter().all(|thread| thread.ok);
    let document = ProgramReport {
        program,
        threads,
        ok,
    };
    let text = || {
        let mut text = format!(
            "{:<15} {:>12}  {:<16}  result\n",
            "thread", "units", "checksum"
        );
        for t in threads {
            let word = DemoVerdict::from_ok(t.ok).word();
            text += &format!("{:<15} {:>12}  {}  {word}\n", t.name, t.units, t.checksum);
        }
        text
    };
    print_result(ok, format, text, &document)
}
