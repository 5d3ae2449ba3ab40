//! Relations of threads to each other, as tables of the page.

use anyhow::Result;
use consort_data::{ReportColumn, ReportTable};
use consort_profile::{SharedLines, ThreadRelations};

/// Roles, sharing, and where there are any, locks and barriers.
pub(super) fn tables(threads: &ThreadRelations) -> Result<Vec<ReportTable>> {
    let mut tables = vec![roles(threads)?, sharing(threads)?];
    if threads.locks.is_some() || threads.barriers.is_some() {
        tables.push(synchronisation_table(threads)?);
    }
    Ok(tables)
}

fn table<const N: usize>(
    key: &str,
    title: &str,
    columns: [(&str, &str); N],
) -> Result<ReportTable> {
    let columns = columns.map(|(key, title)| ReportColumn::plain(key, title));
    Ok(ReportTable::new(key, title, columns.into())?)
}

fn roles(threads: &ThreadRelations) -> Result<ReportTable> {
    let columns = [
        ("threads", "Threads"),
        ("at-once", "At a time"),
        ("executed", "10^6 instructions"),
        ("fp", "Floating point"),
        ("load", "Loads"),
        ("ilp", "ILP in 128"),
        ("missed", "Mispredictions per 1000"),
        ("l1", "Data misses per 1000, 32 KiB"),
        ("l2", "Data misses per 1000, 1 MiB"),
    ];
    let mut table = table("roles", "Roles: threads that run alike code", columns)?;
    for role in &threads.roles {
        let (figures, shares) = (&role.figures, role.figures.shares());
        let data = &figures.memory.data.misses;
        let cells = [
            role.threads.len() as f64,
            role.at_once as f64,
            role.executed as f64 / 1e6,
            shares.fp,
            shares.load,
            figures.ilp[3],
            figures.misprediction_mpki(),
            figures.per_kilo(data[3]),
            figures.per_kilo(data[8]),
        ];
        table.push(&role.name, cells.map(Into::into).into())?;
    }
    Ok(table)
}

fn sharing(threads: &ThreadRelations) -> Result<ReportTable> {
    let columns = [
        ("lines", "Lines of 64 bytes"),
        ("several", "Used by several threads"),
        ("written", "Of these written to"),
        ("common", "Share of a thread's lines in common"),
    ];
    let title = "Sharing while there are several threads";
    let mut table = table("sharing", title, columns)?;
    let cells = |shared: &SharedLines| {
        let counts = [shared.lines, shared.by_several, shared.written].map(|lines| lines as f64);
        let [lines, several, written] = counts;
        [lines, several, written, shared.by_all].map(Into::into)
    };
    table.push("data", cells(&threads.data).into())?;
    table.push("code", cells(&threads.code).into())?;
    Ok(table)
}

fn synchronisation_table(threads: &ThreadRelations) -> Result<ReportTable> {
    let columns = [
        ("times", "Times"),
        ("per-million", "Per 10^6 instructions of a thread"),
        ("lasts", "Held, or apart, instructions"),
    ];
    let title = "Locks, a lower bound, and barriers";
    let mut table = table("together", title, columns)?;
    if let Some(locks) = &threads.locks {
        let rate = threads.locks_per_million();
        let cells = [locks.taken as f64, rate, locks.hold_instr];
        table.push("locks", cells.map(Into::into).into())?;
    }
    if let (Some(barriers), Some(spacing)) = (&threads.barriers, threads.barrier_spacing()) {
        let cells = [barriers.opened as f64, 1e6 / spacing.max(1.0), spacing];
        table.push("barriers", cells.map(Into::into).into())?;
    }
    Ok(table)
}
