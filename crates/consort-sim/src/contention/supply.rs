//! Supply of a core to the threads on it: dispatch slots, turns of fetch, ports.

use super::claims::{FETCH, RESOURCES, SLOTS, Supply};
use super::core_model::{CLASSES, PortSet, UnitQueue};
use super::thread_setting::ThreadSetting;

/// Returns the supply of a core, and notes in `uses` the use that each thread makes of it.
pub(super) fn supply(
    settings: &[ThreadSetting<'_>],
    uses: &mut [[f64; RESOURCES]],
    members: &[usize],
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
        let mut tight = port_limits(settings, members);
        tight.retain(|limit| limit.set.is_shared() && limit.load > 1.0);
        tight.sort_by(|a, b| b.load.total_cmp(&a.load));
        for (at, limit) in tight.into_iter().take(RESOURCES - FETCH - 1).enumerate() {
            resources[FETCH + 1 + at] = limit.ports;
            for (i, used) in limit.used {
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

/// For each thread and class of operations the ports that are likeliest to be taken.
pub(super) fn unit_queues(settings: &[ThreadSetting<'_>], members: &[usize]) -> Vec<UnitQueue> {
    /// Classes in the order of [`unit_use`], as positions in [`WORKS`](super::core_model::WORKS).
    const WORK_OF: [usize; CLASSES] = [0, 1, 3, 5, 2];
    let limits = port_limits(settings, members);
    let mut queues = Vec::new();
    for (class, work) in WORK_OF.into_iter().enumerate() {
        for (at, &i) in members.iter().enumerate() {
            let of_class =
                |limit: &&PortLimit<'_>| limit.set.has(work) && limit.thread_use(i) > 0.0;
            let fullest = limits.iter().filter(of_class);
            let Some(limit) = fullest.max_by(|a, b| a.load.total_cmp(&b.load)) else {
                continue;
            };
            queues.push(UnitQueue {
                class,
                thread: at,
                ports: limit.ports,
                used: members.iter().map(|&j| limit.thread_use(j)).collect(),
            });
        }
    }
    queues
}

/// Ports that some threads use together, or one uses alone.
struct PortLimit<'a> {
    set: &'a PortSet,
    ports: f64,
    /// Port cycles per instruction of each thread that uses them.
    used: Vec<(usize, f64)>,
    /// Ports that the threads would keep busy if each ran as fast as alone, over `ports`.
    load: f64,
}

impl PortLimit<'_> {
    /// Port cycles per instruction of a thread; 0 where it has other ports.
    fn thread_use(&self, i: usize) -> f64 {
        let own = self.used.iter().find(|(j, _)| *j == i);
        own.map_or(0.0, |(_, used)| *used)
    }
}

/// Limits of ports on the threads of a core.
fn port_limits<'a>(settings: &[ThreadSetting<'a>], members: &[usize]) -> Vec<PortLimit<'a>> {
    let model = settings[members[0]].model;
    let mut limits = Vec::new();
    for set in &model.ports {
        let parts = match (set.is_shared(), set.has_halves()) {
            (false, _) => members.len(),
            (true, true) => 2,
            (true, false) => 1,
        };
        for part in 0..parts {
            let threads: Vec<usize> = members.iter().copied().skip(part).step_by(parts).collect();
            let use_of = |&i: &usize| (i, set.port_use(&settings[i].needs.works));
            let used: Vec<_> = threads.iter().map(use_of).collect();
            let wanted = used.iter().map(|&(i, used)| used * settings[i].limits.all);
            let ports = set.joint_ports(threads.len());
            let load = wanted.sum::<f64>() / ports;
            limits.push(PortLimit {
                set,
                ports,
                used,
                load,
            });
        }
    }
    limits
}
