//! `consort list studies`: the studies by their source, or one with its setup.

use crate::failure::bad_input;
use crate::options::NamedListArgs;
use crate::output::file::write_list;
use crate::output::{self, OutputColumn, OutputFormat, number, text, wrap};
use anyhow::Result;
use consort_lab::StudyInfo;
use std::path::Path;

/// Times from this many seconds on are shown in minutes.
const MINUTES_FROM_S: u32 = 120;

const COLUMNS: &[OutputColumn<StudyInfo>] = &[
    text("id", |s| s.id.clone()),
    text("title", |s| s.title.clone()),
    number("about", about),
    text("source", |s| format!("{}, {}", s.source, s.section)),
];

/// Columns below the citation of their source.
const OF_SOURCE: &[OutputColumn<StudyInfo>] = &[
    text("id", |s| s.id.clone()),
    text("title", |s| s.title.clone()),
    number("about", about),
    text("in the source", |s| s.section.clone()),
];

fn about(study: &StudyInfo) -> String {
    match study.full_seconds_hint {
        seconds if seconds < MINUTES_FROM_S => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// `consort list studies`: all of them, or one.
pub(crate) fn list_studies(args: &NamedListArgs) -> Result<()> {
    let out = args.list.out.as_deref();
    let Some(id) = &args.name else {
        return print_list(out, args.format);
    };
    let known = consort_lab::registry().map_err(bad_input)?;
    let study = known.find(id).map_err(bad_input)?;
    let info = study.info();
    let rows = std::slice::from_ref(info);
    write_list(out, COLUMNS, rows)?;
    output::print(args.format, COLUMNS, rows, info, || {
        let (title, seed) = (format!("{}: ", info.id), info.default_seed);
        let source = format!("{}, {}", info.source, info.section);
        let time = format!("about {} in full on two cores; seed {seed}", about(info));
        let facts = [
            (title.as_str(), &info.title),
            ("source: ", &source),
            ("setup of the source: ", &info.original),
            ("differs: ", &info.differs),
            ("takes: ", &time),
            ("run: ", &format!("consort reproduce {} --quick", info.id)),
        ];
        facts.iter().map(|(lead, fact)| wrap(lead, fact)).collect()
    })
}

/// All studies; for people grouped by source, so that a citation stands once.
pub(super) fn print_list(out: Option<&Path>, format: OutputFormat) -> Result<()> {
    let known = consort_lab::registry().map_err(bad_input)?;
    let studies: Vec<StudyInfo> = known.list().cloned().collect();
    write_list(out, COLUMNS, &studies)?;
    output::print(format, COLUMNS, &studies, &studies, || {
        let mut text = String::new();
        for of_source in studies.chunk_by(|a, b| a.source == b.source) {
            let heading = wrap("", &of_source[0].source);
            text += &format!("{heading}{}\n", output::table(OF_SOURCE, of_source));
        }
        text + "consort list studies ID shows the setup of one; consort reproduce ID runs it.\n"
    })
}
