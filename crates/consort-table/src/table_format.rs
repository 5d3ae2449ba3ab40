//! Formats of files, told by their names.

use crate::error::TableError;
use std::path::Path;

/// A format of a table's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Comma-separated, with a header line.
    Csv,
    /// The Arrow IPC file format, also known as Feather V2.
    Arrow,
    /// Apache Parquet.
    Parquet,
}

impl TableFormat {
    /// The format that a file's name asks for.
    ///
    /// # Errors
    /// A name with another ending; a format that is not part of this build.
    pub fn from_path(path: &Path) -> Result<Self, TableError> {
        let end = path.extension().and_then(|end| end.to_str());
        let missing = |format| TableError::NotBuilt {
            path: path.to_owned(),
            format,
        };
        match end {
            Some("csv") => Ok(Self::Csv),
            Some("arrow") if cfg!(feature = "arrow") => Ok(Self::Arrow),
            Some("arrow") => Err(missing("Arrow")),
            Some("parquet") if cfg!(feature = "parquet") => Ok(Self::Parquet),
            Some("parquet") => Err(missing("Parquet")),
            _ => Err(TableError::Format(path.to_owned())),
        }
    }
}

/// Says whether a file's name asks for a table, in whichever format, rather than for something
/// else.
pub fn is_table_path(path: &Path) -> bool {
    let end = path.extension().and_then(|end| end.to_str());
    matches!(end, Some("csv" | "arrow" | "parquet"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_says_the_format() {
        let of = |name: &str| TableFormat::from_path(Path::new(name));
        assert_eq!(of("a.b/c.csv").ok(), Some(TableFormat::Csv));
        assert_eq!(of("x.arrow").is_ok(), cfg!(feature = "arrow"));
        assert_eq!(of("x.parquet").is_ok(), cfg!(feature = "parquet"));
        let error = of("x.xlsx").map_err(|error| error.to_string());
        let expected = "x.xlsx: the name does not say the format; \
                        expected one that ends in .csv, .arrow or .parquet";
        assert_eq!(error, Err(expected.to_owned()));
    }
}
