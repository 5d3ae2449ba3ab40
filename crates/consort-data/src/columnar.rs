//! Tables as Arrow record batches, and files of them. With the feature `columnar` only.

use crate::table::{Column, Table, Values};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use std::collections::HashMap;
use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;

/// Key of a column's unit in the metadata of its field.
pub const UNIT: &str = "unit";

/// Names, types and units of a table's columns.
pub fn schema(table: &Table) -> Arc<Schema> {
    let fields = table.columns().iter().map(field);
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn field(column: &Column) -> Field {
    let kind = match column.values {
        Values::Text(_) => DataType::Utf8,
        Values::Count(_) => DataType::UInt64,
        Values::Number(_) => DataType::Float64,
    };
    let unit = column
        .unit
        .iter()
        .map(|unit| (UNIT.to_owned(), unit.clone()));
    Field::new(&column.name, kind, true).with_metadata(unit.collect::<HashMap<_, _>>())
}

/// All rows of a table as one batch.
///
/// # Errors
/// Columns of unlike lengths.
pub fn record_batch(table: &Table) -> Result<RecordBatch, ArrowError> {
    let arrays = table.columns().iter().map(|column| -> ArrayRef {
        match &column.values {
            Values::Text(all) => Arc::new(StringArray::from_iter(all)),
            Values::Count(all) => Arc::new(UInt64Array::from(all.clone())),
            Values::Number(all) => Arc::new(Float64Array::from(all.clone())),
        }
    });
    RecordBatch::try_new(schema(table), arrays.collect())
}

/// Reason why a file of batches cannot be written.
type ColumnarError = Box<dyn std::error::Error + Send + Sync>;

/// A file of batches that is being written.
pub(crate) enum ColumnarWriter {
    Arrow(Box<FileWriter<BufWriter<File>>>),
    /// Parquet; every part becomes a row group or part of one.
    Parquet(Box<parquet::arrow::ArrowWriter<BufWriter<File>>>),
}

impl ColumnarWriter {
    /// Begins an Arrow file with the columns of a table.
    pub(crate) fn begin_arrow(file: File, table: &Table) -> Result<Self, ColumnarError> {
        let writer = FileWriter::try_new(BufWriter::new(file), &schema(table))?;
        Ok(Self::Arrow(Box::new(writer)))
    }

    /// Begins a Parquet file with the columns of a table.
    pub(crate) fn begin_parquet(file: File, table: &Table) -> Result<Self, ColumnarError> {
        let file = BufWriter::new(file);
        let writer = parquet::arrow::ArrowWriter::try_new(file, schema(table), None)?;
        Ok(Self::Parquet(Box::new(writer)))
    }

    pub(crate) fn write(&mut self, table: &Table) -> Result<(), ColumnarError> {
        match self {
            Self::Arrow(writer) => writer.write(&record_batch(table)?)?,
            Self::Parquet(writer) => writer.write(&record_batch(table)?)?,
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<(), ColumnarError> {
        match self {
            Self::Arrow(mut writer) => writer.finish()?,
            Self::Parquet(writer) => drop(writer.close()?),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_have_types_units_and_gaps() -> Result<(), ArrowError> {
        let table = Table::default()
            .with_text("who", [Some("a"), None])
            .with_numbers("x", Some("s"), [Some(1.5), None]);
        let batch = record_batch(&table)?;
        assert_eq!((batch.num_rows(), batch.num_columns()), (2, 2));
        assert_eq!(batch.column(0).null_count(), 1);
        assert_eq!(batch.schema().field(1).metadata()[UNIT], "s");
        Ok(())
    }
}
