//! The model that predicts, chosen to fit the machine.

use crate::model::{Level, Model, embedded, embedded_names};
use crate::policy::{Named, PolicyError};
use crate::signal::Offers;
use crate::stack::CycleStack;
use crate::suggest::hint;
use crate::topology::Topology;

/// The option's value that asks for whichever shipped model fits.
const AUTO: &str = "auto";

/// A model, once one is chosen.
pub(super) struct Trained {
    model: Option<Model>,
}

impl Trained {
    /// The model that is asked for; none for `auto`.
    pub(super) fn new(named: Named<'_>, policy: &'static str) -> Result<Self, PolicyError> {
        let parse = |text: &str, origin: &str| {
            Model::parse(text, origin)
                .map(Some)
                .map_err(|error| PolicyError::Unfit {
                    policy,
                    why: format!("cannot use its model: {error}"),
                })
        };
        let model = match named {
            Named::Name(AUTO) => None,
            Named::File { path, content } => parse(content, path)?,
            Named::Name(name) => match embedded(name) {
                Some(text) => parse(text, name)?,
                None => return Err(unknown(name)),
            },
        };
        Ok(Self { model })
    }

    /// Checks that the model fits a machine, or takes the shipped one that does.
    pub(super) fn choose(&mut self, offers: &Offers) -> Result<(), String> {
        let (machine, stack) = (offers.machine(), offers.stack());
        if let Some(model) = &self.model {
            let fits = model.fits(machine, stack);
            return fits.map_err(|error| format!("cannot use its model: {error}"));
        }
        let parsed = embedded_names().filter_map(|name| Model::parse(embedded(name)?, name).ok());
        self.model = { parsed }.find(|model| model.fits(machine, stack).is_ok());
        self.model.as_ref().map(|_| ()).ok_or_else(|| {
            format!(
                "has no model of machine '{machine}' with the cycle stack [{}]; \
                 train one with 'consort train' and name it by model=FILE.toml",
                stack.join(", ")
            )
        })
    }

    /// Threads that can be placed: no more per core than it has PUs, and than the model knows of.
    pub(super) fn room(&self, topology: &Topology) -> usize {
        let most = self.most_ways();
        topology
            .cores()
            .iter()
            .map(|core| core.pus.len().min(most))
            .sum()
    }

    /// Threads per core that the model goes up to.
    fn most_ways(&self) -> usize {
        let levels = self.model.iter().flat_map(|model| &model.levels);
        levels.map(|level| level.ways() as usize).max().unwrap_or(1)
    }

    /// The level for so many threads on a core: its own, or the next one above.
    pub(super) fn level(&self, threads: usize) -> Option<&Level> {
        let levels = self.model.iter().flat_map(|model| &model.levels);
        let enough = levels.filter(|level| level.ways() as usize >= threads);
        enough.min_by_key(|level| level.ways())
    }

    /// Number of components.
    pub(super) fn components(&self) -> usize {
        self.model
            .as_ref()
            .map_or(0, |model| model.components.len())
    }

    /// A stack's shares in the model's order; none where it is of another kind or empty.
    pub(super) fn shares(&self, stack: &CycleStack) -> Option<Vec<f64>> {
        let shares = self.model.as_ref()?.shares(stack).ok()?;
        (shares.iter().sum::<f64>() > 0.0).then_some(shares)
    }
}

fn unknown(name: &str) -> PolicyError {
    let names = embedded_names().chain([AUTO]);
    PolicyError::Unfit {
        policy: super::INFO.name,
        why: format!(
            "knows no model '{name}'; {}, or write FILE.toml",
            hint(name, names)
        ),
    }
}
