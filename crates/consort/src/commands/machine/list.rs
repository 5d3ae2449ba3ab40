//! The machines that come with Consort and the user's own.

use crate::cli::MachineArgs;
use crate::descriptions;
use crate::output::{self, OutputColumn, number, text};
use crate::table_file;
use anyhow::Result;
use serde::Serialize;

/// One machine.
#[derive(Serialize)]
struct MachineRow {
    name: String,
    title: String,
    cores: usize,
    pus: usize,
    origin: String,
}

const COLUMNS: &[OutputColumn<MachineRow>] = &[
    text("name", |r| r.name.clone()),
    text("title", |r| r.title.clone()),
    number("cores", |r| r.cores.to_string()),
    number("pus", |r| r.pus.to_string()),
    text("origin", |r| r.origin.clone()),
];

pub(super) fn print(args: &MachineArgs) -> Result<()> {
    let names = descriptions::machines().into_iter();
    let rows: Vec<MachineRow> = names.map(row).collect::<Result<_>>()?;
    table_file::write_list(args.list_out.out.as_deref(), COLUMNS, &rows)?;
    let mut out = output::stdout();
    output::print(&mut out, args.format, COLUMNS, &rows, &rows)
}

fn row(name: String) -> Result<MachineRow> {
    let (chip, origin) = descriptions::full_chip(&name)?;
    Ok(MachineRow {
        title: chip.spec().title.clone(),
        cores: chip.topology().cores().len(),
        pus: chip.topology().pus().len(),
        name,
        origin,
    })
}
