//! The interference model of the machine, and each thread's cycle stack alone by its inverse.

use crate::ids::ThreadId;
use crate::model::{InterferenceModel, LevelParameters, embedded_model, embedded_model_names};
use crate::policies::grouping::GroupedThreads;
use crate::policy::{NameOrFile, PolicyError};
use crate::signal::SignalOffers;
use crate::stack::CycleStack;
use crate::text::hint;
use crate::topology::Topology;
use std::collections::BTreeMap;

/// The option's value for the first shipped model that fits.
const AUTO: &str = "auto";

/// Reads the model that the option names; `None` for `auto`.
///
/// # Errors
/// [`PolicyError::Model`].
pub(super) fn read_model_option(
    named: NameOrFile<'_>,
) -> Result<Option<InterferenceModel>, PolicyError> {
    let (text, origin) = match named {
        NameOrFile::Name(AUTO) => return Ok(None),
        NameOrFile::File { path, content } => (content, path),
        NameOrFile::Name(name) => match embedded_model(name) {
            Some(text) => (text, name),
            None => {
                let hint = hint(name, embedded_model_names().chain([AUTO]));
                return Err(bad_model(format!(
                    "knows no model '{name}'; {hint}, or write FILE.toml"
                )));
            }
        },
    };
    let model = InterferenceModel::parse(text, origin).map(Some);
    model.map_err(|error| bad_model(format!("cannot use its model: {error}")))
}

fn bad_model(why: String) -> PolicyError {
    let policy = super::INFO.name;
    PolicyError::Model { policy, why }
}

/// A model that fits the machine.
pub(super) struct MachineModel {
    model: InterferenceModel,
}

impl MachineModel {
    /// Takes the model that the option names, or else the first shipped one that fits.
    ///
    /// # Errors
    /// No model fits. The text names the machine's stack and what to do.
    pub(super) fn select_model(
        named: Option<InterferenceModel>,
        offers: &SignalOffers,
    ) -> Result<Self, String> {
        let (machine, stack) = (offers.machine(), offers.stack());
        if let Some(model) = named {
            let fits = model.check_fit(machine, stack);
            fits.map_err(|error| format!("cannot use its model: {error}"))?;
            return Ok(Self { model });
        }
        let mut shipped = embedded_model_names()
            .filter_map(|name| InterferenceModel::parse(embedded_model(name)?, name).ok());
        let model = shipped.find(|model| model.check_fit(machine, stack).is_ok());
        model.map(|model| Self { model }).ok_or_else(|| {
            format!(
                "has no model of machine '{machine}' with the cycle stack [{}]; \
                 train one with 'consort train' and name it by model=FILE.toml",
                stack.join(", ")
            )
        })
    }

    /// Number of threads that can be placed: per core no more than it has CPUs, and than the
    /// model's highest level.
    pub(super) fn thread_capacity(&self, topology: &Topology) -> usize {
        let levels = self.model.levels.iter();
        let most = levels.map(|level| level.ways() as usize).max().unwrap_or(1);
        let cores = topology.cores().iter();
        cores.map(|core| core.pus.len().min(most)).sum()
    }

    /// The level for so many threads on a core: its own, or the next one above.
    pub(super) fn level(&self, threads: usize) -> Option<&LevelParameters> {
        let levels = self.model.levels.iter();
        let enough = levels.filter(|level| level.ways() as usize >= threads);
        enough.min_by_key(|level| level.ways())
    }

    /// Number of components of a stack.
    pub(super) fn components(&self) -> usize {
        self.model.components.len()
    }

    /// A stack's shares in the model's order; `None` if it is of another kind or empty.
    fn shares(&self, stack: &CycleStack) -> Option<Vec<f64>> {
        let shares = self.model.shares(stack).ok()?;
        (shares.iter().sum::<f64>() > 0.0).then_some(shares)
    }
}

/// The last estimate of each thread's stack alone on a core.
#[derive(Debug, Default)]
pub(super) struct AloneStacks(BTreeMap<ThreadId, Vec<f64>>);

impl AloneStacks {
    pub(super) fn retain(&mut self, is_here: impl Fn(ThreadId) -> bool) {
        self.0.retain(|&id, _| is_here(id));
    }

    /// Inverts the measured stacks, core by core. Threads without a known stack take no part, as if
    /// they were not there.
    pub(super) fn update(
        &mut self,
        model: &MachineModel,
        topology: &Topology,
        crew: &GroupedThreads<'_>,
    ) {
        let mut by_core: BTreeMap<usize, Vec<(ThreadId, Vec<f64>)>> = BTreeMap::new();
        for thread in &crew.members {
            let stack = thread.sample.stack.as_ref();
            let shares = stack.and_then(|(stack, _)| model.shares(stack));
            let core = thread.last_pu.and_then(|pu| topology.core_of(pu));
            if let Some((core, shares)) = core.zip(shares) {
                by_core.entry(core).or_default().push((thread.id, shares));
            }
        }
        for measured in by_core.into_values() {
            let stacks: Vec<&[f64]> = measured.iter().map(|(_, shares)| &shares[..]).collect();
            let level = model.level(stacks.len().max(2));
            let inverse = level.and_then(|level| level.invert(&stacks).ok());
            for (thread, (id, shares)) in measured.iter().enumerate() {
                // As they are if the model has no level for this number of threads.
                let alone = inverse.as_ref().map(|inverse| inverse.st_stack(thread));
                self.0.insert(*id, alone.unwrap_or(shares).to_vec());
            }
        }
    }

    /// The stacks of all members, one after another, with the mean of the known ones for a thread
    /// without one; `None` if no stack is known.
    pub(super) fn member_stacks(&self, crew: &GroupedThreads<'_>) -> Option<Vec<f64>> {
        let members = crew.members.iter();
        let stacks: Vec<Option<&Vec<f64>>> = members.map(|thread| self.0.get(&thread.id)).collect();
        let known = stacks.iter().copied().flatten();
        let count = known.clone().count();
        let mut mean = known.clone().next()?.clone();
        for stack in known.skip(1) {
            for (sum, share) in mean.iter_mut().zip(stack) {
                *sum += share;
            }
        }
        for share in &mut mean {
            *share /= count as f64;
        }
        let all = stacks.into_iter().map(|stack| stack.unwrap_or(&mean));
        Some(all.flatten().copied().collect())
    }
}
