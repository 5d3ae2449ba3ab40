//! Locks and barriers that threads wait for, for policies that speed up those that delay others.

use super::lock::ProgramLock;
use super::lock::point::LockState;
use super::program::ProgramState;
use super::programs::ProgramTable;
use super::thread::SimulatedThread;
use consort_core::{Bottleneck, BottleneckKind, ThreadId};

/// Objects of a program have the numbers from this multiple of its own on: its barrier, then its
/// locks.
const PER_PROGRAM: u64 = 1 << 32;

impl ProgramTable {
    /// The locks that are held and the locks and barriers that anybody waits for or has waited for
    /// since the last call, by id.
    pub(crate) fn take_bottlenecks(
        &mut self,
        threads: &[SimulatedThread],
        now: u64,
    ) -> Vec<Bottleneck> {
        let mut all = Vec::new();
        for (p, program) in self.iter_mut().enumerate() {
            let first = p as u64 * PER_PROGRAM;
            let told = program.waited.take_ns(now);
            all.extend(active_bottleneck(barrier_bottleneck(
                program, threads, first, told,
            )));
            for (number, lock) in program.locks.iter_mut().enumerate() {
                let told = lock.waited.take_ns(now);
                let id = first + 1 + number as u64;
                all.extend(active_bottleneck(lock_bottleneck(lock, threads, id, told)));
            }
        }
        all
    }
}

fn active_bottleneck(one: Bottleneck) -> Option<Bottleneck> {
    let held = one.kind == BottleneckKind::Lock && !one.executers.is_empty();
    (held || one.waited_ns > 0 || !one.waiters.is_empty()).then_some(one)
}

fn lock_bottleneck(
    lock: &ProgramLock,
    threads: &[SimulatedThread],
    id: u64,
    waited_ns: u64,
) -> Bottleneck {
    let names = |some: &mut dyn Iterator<Item = &usize>| some.map(|&t| threads[t].id).collect();
    Bottleneck {
        id,
        kind: BottleneckKind::Lock,
        executers: names(&mut lock.holder.iter()),
        waiters: names(&mut lock.queue.iter()),
        waited_ns,
    }
}

fn barrier_bottleneck(
    program: &ProgramState,
    threads: &[SimulatedThread],
    id: u64,
    waited_ns: u64,
) -> Bottleneck {
    let members = &threads[program.members.clone()];
    let those = |is: fn(&SimulatedThread) -> bool| -> Vec<ThreadId> {
        members.iter().filter(|t| is(t)).map(|t| t.id).collect()
    };
    Bottleneck {
        id,
        kind: BottleneckKind::Barrier,
        executers: those(|t| !waits_at_barrier(t) && t.step_left > 0.0 && !t.again),
        waiters: those(waits_at_barrier),
        waited_ns,
    }
}

fn waits_at_barrier(thread: &SimulatedThread) -> bool {
    thread.is_waiting() && !matches!(thread.locks.place, LockState::Waiting(_))
}
