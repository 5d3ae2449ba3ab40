//! Machines.

use crate::failure::Failure;
use crate::view::Topology;
use consort_lab::Descriptions;
use consort_sim::chip::Chip;
use consort_sim::machine::{KeyChange, LoadedMachine, MachineSource, apply_changes};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// A described machine, to simulate on.
#[pyclass(frozen, module = "consort")]
#[derive(Clone)]
pub(crate) struct Machine {
    /// The machine as an argument named it, for example `power8:smt=2`.
    text: String,
    changes: Vec<KeyChange>,
    loaded: Arc<LoadedMachine>,
    chip: Arc<Chip>,
}

impl Machine {
    /// Reads a machine, with values changed.
    pub(crate) fn read(text: &str, changes: Vec<KeyChange>) -> Result<Self, Failure> {
        let loaded =
            Descriptions::load_machine_with_changes(text, &changes).map_err(Failure::input)?;
        let chip = Chip::new(&loaded.spec, loaded.smt).map_err(Failure::input)?;
        Ok(Self {
            text: text.to_owned(),
            changes,
            loaded: Arc::new(loaded),
            chip: Arc::new(chip),
        })
    }

    /// The chip that is simulated.
    pub(crate) fn chip(&self) -> Arc<Chip> {
        Arc::clone(&self.chip)
    }

    /// The machine as cases of tables name it.
    pub(crate) fn label(&self) -> String {
        let changes = self
            .changes
            .iter()
            .map(|(key, value)| format!(" {key}={value}"));
        self.text.clone() + &changes.collect::<String>()
    }
}

#[pymethods]
impl Machine {
    /// Reads a machine: a name (``consort.machines()``), or FILE.toml, either with ``:smt=N``,
    /// ``:memory=NODE+NODE`` or ``:prefetch=off`` behind it.
    ///
    /// Raises InputError with file, line and key where the description is wrong.
    #[staticmethod]
    fn load(name: &str) -> PyResult<Self> {
        Ok(Self::read(name, Vec::new())?)
    }

    /// The machine with values changed, by the dotted names of their keys:
    /// ``with_(**{"llc.size_kib": 65536, "core_type.core.smt[1].ways": 2})``. Units are in the names.
    ///
    /// Raises InputError with file, line and key, as a file with that value would.
    #[pyo3(signature = (**values))]
    fn with_(&self, values: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut changes = self.changes.clone();
        for (key, value) in values.into_iter().flatten() {
            let key: String = key.extract()?;
            let value = toml_value(&key, &value)?;
            changes.retain(|(known, _)| *known != key);
            changes.push((key, value));
        }
        Ok(Self::read(&self.text, changes)?)
    }

    /// The value of a key by its dotted name; None where the description has no such key.
    fn get<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let spec = toml::Value::try_from(&self.loaded.spec).map_err(Failure::run)?;
        let mut at = Some(&spec);
        for step in key.split(['.', '[']) {
            at = at.and_then(|value| match step.strip_suffix(']') {
                Some(index) => value.get(index.parse::<usize>().ok()?),
                None => value.get(step),
            });
        }
        at.map(|value| python_value(py, value)).transpose()
    }

    /// Its name.
    #[getter]
    fn name(&self) -> String {
        self.loaded.spec.name.clone()
    }

    /// Description in a line.
    #[getter]
    fn title(&self) -> String {
        self.loaded.spec.title.clone()
    }

    /// File of its description, or "built in".
    #[getter]
    fn origin(&self) -> String {
        match &self.loaded.source {
            MachineSource::File(path) => path.display().to_string(),
            MachineSource::Preset(_) => "built in".to_owned(),
        }
    }

    /// CPUs, cores and domains of the machine.
    #[getter]
    fn topology(&self) -> Topology {
        Topology::from(self.chip.topology())
    }

    /// The description as a machine file, changes included; options behind the name are not part
    /// of it.
    fn to_toml(&self) -> PyResult<String> {
        let (file, text) = self.loaded.source.read().map_err(Failure::input)?;
        Ok(apply_changes(&file, &text, &self.changes).map_err(Failure::input)?)
    }

    fn __repr__(&self) -> String {
        format!("<consort.Machine {}>", self.label())
    }
}

/// Names of all described machines: those that come with Consort, and those in the folders
/// ``machines`` below ``~/.config/consort`` and ``/etc/consort``.
#[pyfunction]
pub(crate) fn machines() -> Vec<String> {
    Descriptions::machine_names()
}

/// A machine as arguments name it.
#[derive(FromPyObject)]
pub(crate) enum MachineArgument<'py> {
    /// A machine that is loaded.
    Machine(PyRef<'py, Machine>),
    /// A machine by name or file.
    Name(String),
}

impl MachineArgument<'_> {
    /// The machine.
    pub(crate) fn get(self) -> Result<Machine, Failure> {
        match self {
            Self::Machine(machine) => Ok(machine.clone()),
            Self::Name(name) => Machine::read(&name, Vec::new()),
        }
    }
}

fn toml_value(key: &str, value: &Bound<'_, PyAny>) -> PyResult<toml::Value> {
    // A bool of Python is an int as well, and an int a float.
    if let Ok(value) = value.cast::<pyo3::types::PyBool>() {
        return Ok(value.is_true().into());
    }
    if let Ok(value) = value.extract::<i64>() {
        return Ok(value.into());
    }
    if let Ok(value) = value.extract::<f64>() {
        return Ok(value.into());
    }
    if let Ok(value) = value.extract::<String>() {
        return Ok(value.into());
    }
    if let Ok(items) = value.extract::<Vec<Bound<'_, PyAny>>>() {
        let items = items.iter().map(|item| toml_value(key, item));
        return Ok(toml::Value::Array(items.collect::<PyResult<_>>()?));
    }
    let kind = value.get_type().name()?;
    let message =
        format!("{key}: is a {kind}; expected a number, a text, a bool or a list of these");
    Err(Failure::Input(message).into())
}

fn python_value<'py>(py: Python<'py>, value: &toml::Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        toml::Value::String(text) => Ok(text.into_pyobject(py)?.into_any()),
        toml::Value::Integer(number) => Ok(number.into_pyobject(py)?.into_any()),
        toml::Value::Float(number) => Ok(number.into_pyobject(py)?.into_any()),
        toml::Value::Boolean(flag) => Ok(flag.into_pyobject(py)?.to_owned().into_any()),
        toml::Value::Datetime(time) => Ok(time.to_string().into_pyobject(py)?.into_any()),
        toml::Value::Array(items) => {
            let items = items.iter().map(|item| python_value(py, item));
            items.collect::<PyResult<Vec<_>>>()?.into_pyobject(py)
        }
        toml::Value::Table(table) => {
            let dict = PyDict::new(py);
            for (key, value) in table {
                dict.set_item(key, python_value(py, value)?)?;
            }
            Ok(dict.into_any())
        }
    }
}
