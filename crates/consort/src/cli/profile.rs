//! Arguments of `profile`.

use super::count::count_parser;
use super::{OutputFormat, values};
use clap::Args;
use consort_ops::trace::TraceSampling;
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of `profile`.
#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    /// Write the program file to FILE; or every number to FILE.csv, FILE.arrow or FILE.parquet, one per row: case, policy, seed, program, measure, value, unit; or both, each with its --out
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Vec<PathBuf>,
    /// Write a trace of what was recorded to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Write a page with pictures to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) report_html: Option<PathBuf>,
    /// Replace files that exist
    #[arg(long)]
    pub(crate) force: bool,
    /// Instructions that pass before anything is recorded: 500M
    #[arg(long, value_name = "N", value_parser = count_parser::<u64>(0..=MOST_INSTRUCTIONS), default_value = "0")]
    pub(crate) skip: u64,
    /// End the program after recording so many instructions
    #[arg(long, value_name = "N", value_parser = count_parser::<u64>(0..=MOST_INSTRUCTIONS))]
    pub(crate) instructions: Option<u64>,
    /// Sampling of instructions: `none` records all; with --instructions none if not given
    #[arg(long, value_name = "every=N,window=N,warm=N", value_parser = parse_sampling)]
    pub(crate) sampling: Option<SamplingChoice>,
    /// Output format; with json and csv the output of CMD goes to stderr
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
    /// The command and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD", add = values::command())]
    pub(crate) command: Vec<OsString>,
}

/// Sampling as the command line asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SamplingChoice {
    /// Everything is recorded.
    None,
    /// Windows are.
    Windows(TraceSampling),
}

impl SamplingChoice {
    /// Sampling where the command line says nothing.
    pub(crate) const USUAL: Self = Self::Windows(TraceSampling {
        every: 50_000_000,
        window: 500_000,
        warm: 500_000,
    });

    pub(crate) const fn windows(self) -> Option<TraceSampling> {
        match self {
            Self::None => None,
            Self::Windows(sampling) => Some(sampling),
        }
    }
}

/// Instructions of one run: far more than any emulator executes.
const MOST_INSTRUCTIONS: u64 = 1 << 56;

fn parse_sampling(text: &str) -> Result<SamplingChoice, String> {
    if text == "none" {
        return Ok(SamplingChoice::None);
    }
    let mut sampling = TraceSampling {
        every: 0,
        window: 0,
        warm: 0,
    };
    for part in text.split(',') {
        let (key, number) = part.split_once('=').unwrap_or((part, ""));
        let place = match key {
            "every" => &mut sampling.every,
            "window" => &mut sampling.window,
            "warm" => &mut sampling.warm,
            _ => {
                return Err(format!(
                    "unknown key '{key}'; expected every, window and warm, or `none`"
                ));
            }
        };
        *place = count_parser::<u64>(0..=MOST_INSTRUCTIONS)(number)?;
    }
    let recorded = sampling.window.saturating_add(sampling.warm);
    if sampling.window == 0 || recorded > sampling.every {
        return Err(
            "expected window above 0, and every at least window and warm together".to_owned(),
        );
    }
    Ok(SamplingChoice::Windows(sampling))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_fit_into_their_distance() {
        let parsed = parse_sampling("every=10M,window=1M,warm=500k").unwrap();
        assert_eq!(parsed.windows().unwrap().warm, 500_000);
        assert_eq!(parse_sampling("none"), Ok(SamplingChoice::None));
        assert!(parse_sampling("every=1M,window=1M,warm=1").is_err());
        assert!(
            parse_sampling("each=1M")
                .unwrap_err()
                .contains("unknown key 'each'")
        );
    }
}
