//! Tables for data frames, through the Arrow C stream interface.

use crate::failure::Failure;
use arrow_array::RecordBatchIterator;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::ffi::FFI_ArrowSchema;
use consort_data::columnar::{record_batch, schema};
use consort_data::{Column, Values};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::path::PathBuf;
use std::sync::Arc;

/// A table of results.
///
/// Whatever reads the Arrow C stream interface takes it as it is: ``polars.DataFrame(table)``,
/// ``duckdb.sql("select * from table")``, ``pyarrow.table(table)``, and
/// ``pandas.DataFrame.from_arrow(table)`` where pyarrow is there. :meth:`to_pandas` needs pandas
/// alone. Units are in the columns' names, in :attr:`units`, and in the metadata of Arrow fields.
#[pyclass(frozen, module = "consort")]
pub(crate) struct Table(Arc<consort_data::Table>);

impl From<consort_data::Table> for Table {
    fn from(table: consort_data::Table) -> Self {
        Self(Arc::new(table))
    }
}

#[pymethods]
impl Table {
    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.columns().iter().map(|c| c.name.clone()).collect()
    }

    /// Unit of each column, None for texts, counts and plain ratios.
    #[getter]
    fn units<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let units = PyDict::new(py);
        for column in self.0.columns() {
            units.set_item(&column.name, column.unit.as_deref())?;
        }
        Ok(units)
    }

    /// Names of the columns, so that ``dict(table)`` has their values.
    fn keys(&self) -> Vec<String> {
        self.columns()
    }

    /// Values of a column, None where there is none.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let column = self.0.column(name).ok_or_else(|| unknown(&self.0, name))?;
        list(py, column)
    }

    fn __len__(&self) -> usize {
        self.0.row_count()
    }

    /// A ``pandas.DataFrame``; needs pandas, and nothing else.
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let columns = PyDict::new(py);
        for column in self.0.columns() {
            columns.set_item(&column.name, list(py, column)?)?;
        }
        py.import("pandas")?.getattr("DataFrame")?.call1((columns,))
    }

    /// The table as CSV with a header line. Numbers are written so that reading them gives the same
    /// bits.
    fn to_csv(&self) -> String {
        self.0.to_csv()
    }

    /// Writes the table to FILE.csv, FILE.arrow or FILE.parquet: whole, or not at all.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let table = Arc::clone(&self.0);
        let written = py.detach(move || consort_data::write_table(&path, &table));
        Ok(written.map_err(Failure::input)?)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(schema(&self.0).as_ref()).map_err(Failure::run)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The Arrow PyCapsule interface: an ``arrow_array_stream`` of one batch. A requested schema is
    /// not cast to, as the interface allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batch = record_batch(&self.0).map_err(Failure::run)?;
        let schema = batch.schema();
        let batches = RecordBatchIterator::new([Ok(batch)], schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        let columns = self.columns().join(", ");
        format!("<consort.Table of {} rows: {columns}>", self.0.row_count())
    }
}

fn list<'py>(py: Python<'py>, column: &Column) -> PyResult<Bound<'py, PyAny>> {
    match &column.values {
        Values::Text(all) => all.into_pyobject(py).map(Bound::into_any),
        Values::Count(all) => all.into_pyobject(py).map(Bound::into_any),
        Values::Number(all) => all.into_pyobject(py).map(Bound::into_any),
    }
}

fn unknown(table: &consort_data::Table, name: &str) -> PyErr {
    let known = table.columns().iter().map(|column| column.name.as_str());
    let hint = consort_core::hint(name, known);
    PyKeyError::new_err(format!("no column '{name}'; {hint}"))
}

/// Picks one of a result's tables.
///
/// # Errors
/// A name that none of them has.
pub(crate) fn pick(
    name: &str,
    tables: &[(&str, &dyn Fn() -> consort_data::Table)],
) -> PyResult<Table> {
    let found = tables.iter().find(|(known, _)| *known == name);
    let Some((_, table)) = found else {
        let hint = consort_core::hint(name, tables.iter().map(|(known, _)| *known));
        return Err(Failure::input(format!("unknown table '{name}'; {hint}")).into());
    };
    Ok(table().into())
}
