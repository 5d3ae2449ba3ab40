//! Each thread's cycle stack alone, from those seen together.

use super::machine_model::MachineModel;
use crate::ids::ThreadId;
use crate::policies::grouping::GroupedThreads;
use crate::topology::Topology;
use std::collections::BTreeMap;

/// The last estimate of each thread's stack alone on a core.
#[derive(Debug, Default)]
pub(super) struct AloneStacks(BTreeMap<ThreadId, Vec<f64>>);

impl AloneStacks {
    pub(super) fn retain(&mut self, is_here: impl Fn(ThreadId) -> bool) {
        self.0.retain(|&id, _| is_here(id));
    }

    /// Inverts what was measured, core by core. Threads whose stack is not known take no part, as
    /// though they were not there.
    pub(super) fn update(
        &mut self,
        trained: &MachineModel,
        topology: &Topology,
        crew: &GroupedThreads<'_>,
    ) {
        let mut by_core: BTreeMap<usize, Vec<(ThreadId, Vec<f64>)>> = BTreeMap::new();
        for thread in &crew.members {
            let stack = thread.sample.stack.as_ref();
            let shares = stack.and_then(|(stack, _)| trained.shares(stack));
            let core = thread.last_pu.and_then(|pu| topology.core_of(pu));
            if let Some((core, shares)) = core.zip(shares) {
                by_core.entry(core).or_default().push((thread.id, shares));
            }
        }
        for measured in by_core.into_values() {
            self.invert_stacks(trained, measured);
        }
    }

    /// The stacks of one core; as they are where the model knows of no such number of threads.
    fn invert_stacks(&mut self, trained: &MachineModel, measured: Vec<(ThreadId, Vec<f64>)>) {
        let stacks: Vec<&[f64]> = measured.iter().map(|(_, shares)| &shares[..]).collect();
        let level = trained.level(stacks.len().max(2));
        let inverse = level.and_then(|level| level.invert(&stacks).ok());
        let alone: Vec<Option<Vec<f64>>> = (0..stacks.len())
            .map(|thread| Some(inverse.as_ref()?.st_stack(thread).to_vec()))
            .collect();
        for ((id, shares), alone) in measured.into_iter().zip(alone) {
            self.0.insert(id, alone.unwrap_or(shares));
        }
    }

    /// The stacks of all members, one after another; the mean of the others for one that is not
    /// known, and none where no stack is.
    pub(super) fn member_stacks(&self, crew: &GroupedThreads<'_>) -> Option<Vec<f64>> {
        let known: Vec<Option<&Vec<f64>>> = crew
            .members
            .iter()
            .map(|thread| self.0.get(&thread.id))
            .collect();
        let mean = mean(known.iter().copied().flatten())?;
        let of_all = known.into_iter().map(|stack| stack.unwrap_or(&mean));
        Some(of_all.flatten().copied().collect())
    }
}

fn mean<'a>(stacks: impl Iterator<Item = &'a Vec<f64>> + Clone) -> Option<Vec<f64>> {
    let count = stacks.clone().count();
    let mut sum = stacks.clone().next()?.clone();
    for stack in stacks.skip(1) {
        sum.iter_mut()
            .zip(stack)
            .for_each(|(sum, share)| *sum += share);
    }
    sum.iter_mut().for_each(|share| *share /= count as f64);
    Some(sum)
}
