//! Supply of a core to the threads on it: dispatch slots, turns of fetch, ports.

use super::claims::{FETCH, RESOURCES, SLOTS, Supply};
use super::core_model::{CLASSES, MAX_WAYS, PortSet, UnitQueue};
use super::thread_setting::ThreadSetting;

/// Returns the supply of a core, and notes in `uses` the use that each thread makes of it.
pub(super) fn supply(
    settings: &[ThreadSetting<'_>],
    uses: &mut [[f64; RESOURCES]],
    members: &[usize],
    limits: &[PortLimit<'_>],
) -> Supply {
    let first = &settings[members[0]];
    let front = &first.model.tables.front;
    let turns = front.dispatch_threads;
    let in_groups = front.whole_groups;
    let mut resources = [f64::INFINITY; RESOURCES];
    resources[SLOTS] = first.core.dispatch_width;
    resources[FETCH] = f64::from(front.fetch_threads);
    for &i in members {
        uses[i][SLOTS] = settings[i].needs.slots;
        uses[i][FETCH] = settings[i].needs.fetch_turns;
    }
    if members.len() > 1 {
        // Only what threads could exhaust together limits them; there is room for the most wanted.
        let is_tight = |limit: &&PortLimit<'_>| limit.set.is_shared() && limit.load > 1.0;
        let mut tight: Vec<_> = limits.iter().filter(is_tight).collect();
        tight.sort_by(|a, b| b.load.total_cmp(&a.load));
        for (at, limit) in tight.into_iter().take(RESOURCES - FETCH - 1).enumerate() {
            resources[FETCH + 1 + at] = limit.ports;
            for (&i, used) in members.iter().zip(limit.used) {
                uses[i][FETCH + 1 + at] = used;
            }
        }
    }
    Supply {
        resources,
        turns: if turns == u32::MAX {
            f64::INFINITY
        } else {
            f64::from(turns)
        },
        in_groups,
    }
}

/// For each of a core's threads and each class of operations the ports that are likeliest to be
/// taken.
pub(super) fn unit_queues(threads: usize, limits: &[PortLimit<'_>]) -> Vec<UnitQueue> {
    /// Classes in the order of [`unit_use`], as positions in [`WORKS`](super::core_model::WORKS).
    const WORK_OF: [usize; CLASSES] = [0, 1, 3, 5, 2];
    let mut queues = Vec::with_capacity(CLASSES * threads);
    for (class, work) in WORK_OF.into_iter().enumerate() {
        for thread in 0..threads {
            let of_class = |limit: &&PortLimit<'_>| limit.set.has(work) && limit.used[thread] > 0.0;
            let fullest = limits.iter().filter(of_class);
            if let Some(limit) = fullest.max_by(|a, b| a.load.total_cmp(&b.load)) {
                queues.push(UnitQueue {
                    class,
                    thread,
                    ports: limit.ports,
                    used: limit.used,
                });
            }
        }
    }
    queues
}

/// Ports that some threads use together, or one uses alone.
pub(super) struct PortLimit<'a> {
    set: &'a PortSet,
    ports: f64,
    /// Port cycles per instruction of each of the core's threads; 0 of threads on other ports.
    used: [f64; MAX_WAYS],
    /// Ports that the threads would keep busy if each ran as fast as alone, over `ports`.
    load: f64,
}

/// Limits of ports on the threads of a core.
pub(super) fn port_limits<'a>(
    settings: &[ThreadSetting<'a>],
    members: &[usize],
) -> Vec<PortLimit<'a>> {
    let model = settings[members[0]].model;
    let mut limits = Vec::with_capacity(model.ports.len() * members.len());
    for set in &model.ports {
        let parts = match (set.is_shared(), set.has_halves()) {
            (false, _) => members.len(),
            (true, true) => 2,
            (true, false) => 1,
        };
        for part in 0..parts {
            let threads = members.iter().enumerate().skip(part).step_by(parts);
            let (mut used, mut wanted, count) = ([0.0; MAX_WAYS], 0.0, threads.len());
            for (at, &i) in threads {
                used[at] = set.port_use(&settings[i].needs.works);
                wanted += used[at] * settings[i].limits.all;
            }
            let ports = set.joint_ports(count);
            limits.push(PortLimit {
                set,
                ports,
                used,
                load: wanted / ports,
            });
        }
    }
    limits
}
