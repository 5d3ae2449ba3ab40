//! A whole model: levels, components, and what it holds for.

use super::error::ModelError;
use super::level::LevelParameters;
use super::provenance::Provenance;
use crate::stack::CycleStack;

/// An interference model for one machine and one kind of cycle stack.
#[doc(alias = "interference model")]
#[derive(Clone, Debug, PartialEq)]
pub struct InterferenceModel {
    /// Name of the model.
    pub name: String,
    /// Name of the machine that it was trained on.
    pub machine: String,
    /// Components of the cycle stack, in the order of all parameters.
    pub components: Vec<String>,
    /// One level per number of threads per core, ascending.
    pub levels: Vec<LevelParameters>,
    /// Origin of the model.
    pub provenance: Provenance,
}

impl InterferenceModel {
    /// The parameters for `ways` threads per core, where the model has them.
    pub fn level(&self, ways: u32) -> Option<&LevelParameters> {
        self.levels.iter().find(|level| level.ways() == ways)
    }

    /// Checks that the model holds for this machine and this cycle stack. The order
    /// of the components does not matter; [`InterferenceModel::shares`] brings them into the
    /// model's.
    ///
    /// # Errors
    /// Another machine, or components that the model lacks or has in addition.
    pub fn check_fit<S: AsRef<str>>(
        &self,
        machine: &str,
        components: &[S],
    ) -> Result<(), ModelError> {
        if machine != self.machine {
            return Err(ModelError::Machine {
                model: self.name.clone(),
                trained: self.machine.clone(),
                machine: machine.to_owned(),
            });
        }
        self.check_stack(components)
    }

    fn check_stack<S: AsRef<str>>(&self, components: &[S]) -> Result<(), ModelError> {
        let mut offered: Vec<&str> = components.iter().map(AsRef::as_ref).collect();
        let mut needed: Vec<&str> = self.components.iter().map(String::as_str).collect();
        offered.sort_unstable();
        needed.sort_unstable();
        if offered == needed {
            return Ok(());
        }
        Err(ModelError::Stack {
            model: self.name.clone(),
            needed: self.components.clone(),
            offered: components.iter().map(|c| c.as_ref().to_owned()).collect(),
        })
    }

    /// The shares of a stack in the order of the model's components.
    ///
    /// # Errors
    /// A stack of other components.
    pub fn shares(&self, stack: &CycleStack) -> Result<Vec<f64>, ModelError> {
        let share = |name: &String| stack.share(name);
        let shares: Option<Vec<f64>> = self.components.iter().map(share).collect();
        let offered = stack.components();
        let same_number = offered.len() == self.components.len();
        shares
            .filter(|_| same_number)
            .ok_or_else(|| ModelError::Stack {
                model: self.name.clone(),
                needed: self.components.clone(),
                offered: offered.iter().map(|c| c.name.to_string()).collect(),
            })
    }
}
