//! Logical cores: what the operating system schedules on when a hardware scheduler sits below.
//!
//! A permutation from logical to physical CPUs. Exchanging two costs each thread involved the
//! registers ([`super::cache_contents`]), the drain of its pipeline, and the refill of what it
//! leaves behind. A logical core whose thread is in kernel mode must not be exchanged by hardware;
//! [`Engine::is_in_kernel`] tells. Refilling caches after a move is user mode: it is the thread's own
//! accesses that wait.

use super::Engine;
use super::calendar::picoseconds;
use super::simulated_program::EngineError;
use super::thread::SimulatedThread;

/// Physical CPU of each logical one, and the reverse.
#[doc(alias = "logical core")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogicalMap {
    physical: Vec<usize>,
    logical: Vec<usize>,
}

impl LogicalMap {
    pub(crate) fn identity(n: usize) -> Self {
        Self {
            physical: (0..n).collect(),
            logical: (0..n).collect(),
        }
    }

    pub(crate) fn new(physical: &[usize]) -> Result<Self, EngineError> {
        let n = physical.len();
        let mut logical = vec![n; n];
        for (l, &p) in physical.iter().enumerate() {
            match logical.get_mut(p) {
                Some(free) if *free == n => *free = l,
                _ => return Err(EngineError::Mapping(physical.to_vec())),
            }
        }
        Ok(Self {
            physical: physical.to_vec(),
            logical,
        })
    }

    pub(crate) fn physical_pu(&self, logical: usize) -> usize {
        self.physical[logical]
    }

    pub(crate) fn logical_pu(&self, physical: usize) -> usize {
        self.logical[physical]
    }

    pub(crate) fn len(&self) -> usize {
        self.physical.len()
    }
}

impl Engine {
    /// Gives every logical core the physical CPU listed for it; threads that thereby move pay for
    /// it.
    pub(crate) fn remap(&mut self, physical: &[usize]) -> Result<(), EngineError> {
        let map = LogicalMap::new(physical)?;
        if map.len() != self.kernel.len() {
            return Err(EngineError::Mapping(physical.to_vec()));
        }
        let changed = (0..map.len()).filter(|&l| map.physical_pu(l) != self.kernel.physical_pu(l));
        let moved = changed.filter_map(|l| Some((self.kernel.current_thread(l)?, l)));
        let moved: Vec<(usize, usize)> = moved.collect();
        // All leave before any arrives, so that no CPU has two threads.
        for &(t, logical) in &moved {
            self.threads[t].halt(self.calendar.now());
            self.moves.leave_caches(
                &self.kernel,
                &mut self.threads,
                t,
                self.kernel.physical_pu(logical),
            );
        }
        self.kernel.set_map(map);
        for (t, logical) in moved {
            self.swap_in(t, self.kernel.physical_pu(logical));
            self.calendar.void_rates();
        }
        Ok(())
    }

    /// Charges a thread for being moved to a physical CPU beneath the operating system.
    fn swap_in(&mut self, t: usize, to: usize) {
        self.enter_caches(t, to);
        let thread = &mut self.threads[t];
        thread.clock.keep_debt(self.calendar.now());
        thread.owe(self.calendar.now(), picoseconds(self.moves.swap_s(to)));
        thread.clock.hz = self.chip.frequency_hz(self.chip.places()[to]);
    }

    pub(crate) fn logical_cores(&self) -> usize {
        self.kernel.len()
    }

    pub(crate) fn physical_pu(&self, logical: usize) -> usize {
        self.kernel.physical_pu(logical)
    }

    pub(crate) fn occupant(&self, logical: usize) -> Option<&SimulatedThread> {
        let current = self.kernel.current_thread(logical);
        current.map(|t| &self.threads[t])
    }

    pub(crate) fn is_in_kernel(&self, logical: usize) -> bool {
        self.occupant(logical)
            .is_some_and(SimulatedThread::is_in_kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_permutations_are_mappings() {
        for bad in [&[0, 0][..], &[1, 2][..], &[5, 0][..]] {
            assert!(matches!(LogicalMap::new(bad), Err(EngineError::Mapping(_))));
        }
    }

    proptest! {
        #[test]
        fn directions_are_inverse(map in Just((0..9usize).collect::<Vec<_>>()).prop_shuffle()) {
            let map = LogicalMap::new(&map).unwrap();
            for pu in 0..9 {
                prop_assert_eq!(map.logical_pu(map.physical_pu(pu)), pu);
            }
        }
    }
}
