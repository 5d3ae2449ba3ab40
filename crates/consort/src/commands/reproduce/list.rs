//! `consort reproduce list`: the studies.

use super::LIST;
use crate::cli::{self, ReproduceArgs};
use crate::failure::bad_input;
use crate::output::{self, OutputColumn, number, text};
use crate::table_file;
use anyhow::Result;
use consort_lab::StudyInfo;
use std::process::ExitCode;

/// About how long takes longer than this many seconds is told in minutes.
const MINUTES_FROM_S: u32 = 120;

const COLUMNS: &[OutputColumn<StudyInfo>] = &[
    text("id", |s| s.id.clone()),
    text("title", |s| s.title.clone()),
    number("about", |s| duration_text(s.full_seconds_hint)),
    text("source", |s| format!("{}, {}", s.source, s.section)),
];

pub(super) fn execute(args: &ReproduceArgs) -> Result<ExitCode> {
    if let Some(other) = args
        .studies
        .iter()
        .find(|id| !id.eq_ignore_ascii_case(LIST))
    {
        return Err(bad_input(format!(
            "'{LIST}' stands alone, without '{other}'; leave out one of them"
        )));
    }
    let known = consort_lab::registry().map_err(bad_input)?;
    let studies: Vec<StudyInfo> = known.list().cloned().collect();
    table_file::write_list(cli::table_output(&args.out), COLUMNS, &studies)?;
    let mut out = output::stdout();
    output::print(&mut out, args.format, COLUMNS, &studies, &studies)?;
    Ok(ExitCode::SUCCESS)
}

fn duration_text(seconds: u32) -> String {
    if seconds < MINUTES_FROM_S {
        format!("{seconds} s")
    } else {
        format!("{} min", seconds.div_ceil(60))
    }
}
