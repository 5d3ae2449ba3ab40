//! The model that predicts, chosen to fit the machine.

use crate::model::{InterferenceModel, LevelParameters, embedded_model, embedded_model_names};
use crate::policy::{NameOrFile, PolicyError};
use crate::signal::SignalOffers;
use crate::stack::CycleStack;
use crate::text::hint;
use crate::topology::Topology;

/// The option's value that asks for whichever shipped model fits.
const AUTO: &str = "auto";

/// A model that fits the machine.
pub(super) struct MachineModel {
    model: InterferenceModel,
}

/// Reads the model that is asked for; none for `auto`.
///
/// # Errors
/// [`PolicyError::Model`].
pub(super) fn read_model_option(
    named: NameOrFile<'_>,
) -> Result<Option<InterferenceModel>, PolicyError> {
    let parse = |text: &str, origin: &str| {
        let model = InterferenceModel::parse(text, origin).map(Some);
        model.map_err(|error| bad_model(format!("cannot use its model: {error}")))
    };
    match named {
        NameOrFile::Name(AUTO) => Ok(None),
        NameOrFile::File { path, content } => parse(content, path),
        NameOrFile::Name(name) => match embedded_model(name) {
            Some(text) => parse(text, name),
            None => Err(unknown_model(name)),
        },
    }
}

impl MachineModel {
    /// Takes the model that is asked for, or else the shipped one that fits a machine.
    ///
    /// # Errors
    /// No model fits; the text says which do or what would be right.
    pub(super) fn select_model(
        asked: Option<InterferenceModel>,
        offers: &SignalOffers,
    ) -> Result<Self, String> {
        let (machine, stack) = (offers.machine(), offers.stack());
        if let Some(model) = asked {
            let fits = model.check_fit(machine, stack);
            fits.map_err(|error| format!("cannot use its model: {error}"))?;
            return Ok(Self { model });
        }
        let parsed = embedded_model_names()
            .filter_map(|name| InterferenceModel::parse(embedded_model(name)?, name).ok());
        let model = { parsed }.find(|model| model.check_fit(machine, stack).is_ok());
        model.map(|model| Self { model }).ok_or_else(|| {
            format!(
                "has no model of machine '{machine}' with the cycle stack [{}]; \
                 train one with 'consort train' and name it by model=FILE.toml",
                stack.join(", ")
            )
        })
    }

    /// Threads that can be placed: no more per core than it has PUs, and than the model knows of.
    pub(super) fn thread_capacity(&self, topology: &Topology) -> usize {
        let most = self.most_ways();
        topology
            .cores()
            .iter()
            .map(|core| core.pus.len().min(most))
            .sum()
    }

    /// Threads per core that the model goes up to.
    fn most_ways(&self) -> usize {
        let levels = self.model.levels.iter();
        levels.map(|level| level.ways() as usize).max().unwrap_or(1)
    }

    /// The level for so many threads on a core: its own, or the next one above.
    pub(super) fn level(&self, threads: usize) -> Option<&LevelParameters> {
        let levels = self.model.levels.iter();
        let enough = levels.filter(|level| level.ways() as usize >= threads);
        enough.min_by_key(|level| level.ways())
    }

    /// Number of components.
    pub(super) fn components(&self) -> usize {
        self.model.components.len()
    }

    /// A stack's shares in the model's order; none where it is of another kind or empty.
    pub(super) fn shares(&self, stack: &CycleStack) -> Option<Vec<f64>> {
        let shares = self.model.shares(stack).ok()?;
        (shares.iter().sum::<f64>() > 0.0).then_some(shares)
    }
}

fn unknown_model(name: &str) -> PolicyError {
    let names = embedded_model_names().chain([AUTO]);
    let hint = hint(name, names);
    bad_model(format!(
        "knows no model '{name}'; {hint}, or write FILE.toml"
    ))
}

fn bad_model(why: String) -> PolicyError {
    let policy = super::INFO.name;
    PolicyError::Model { policy, why }
}
