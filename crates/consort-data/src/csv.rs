//! The one writer of CSV: every file and every `--format csv` goes through it.

use consort_core::escape_invisible;
use std::borrow::Cow;
use std::io::{self, Write};

/// Writes records of one length, the header line first if there is one, and flushes. Fields are
/// quoted only if they need it.
///
/// # Errors
/// Those of `out`, and records of unequal lengths.
pub fn write_csv<R>(out: &mut dyn Write, records: impl IntoIterator<Item = R>) -> io::Result<()>
where
    R: IntoIterator,
    R::Item: AsRef<[u8]>,
{
    let mut writer = csv::Writer::from_writer(out);
    for record in records {
        writer.write_record(record)?;
    }
    writer.flush()
}

/// Makes a field one line without characters that a terminal acts on.
pub fn escape_field(field: String) -> String {
    match escape_invisible(&field) {
        Cow::Borrowed(_) => field,
        Cow::Owned(safe) => safe,
    }
}

/// CSV of records in memory.
pub fn csv_text<R>(records: impl IntoIterator<Item = R>) -> String
where
    R: IntoIterator,
    R::Item: AsRef<[u8]>,
{
    let mut bytes = Vec::new();
    // Writing to memory cannot fail, and fields are text.
    let _ = write_csv(&mut bytes, records);
    String::from_utf8_lossy(&bytes).into_owned()
}
