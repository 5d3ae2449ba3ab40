//! Supply of a core to the threads on it: dispatch slots, turns of fetch, ports.

use super::claims::{FETCH, RESOURCES, SLOTS, Supply};
use super::core_model::PortSet;
use super::setting::Setting;
use super::units::{CLASSES, UnitQueue};

/// Returns the supply of a core, and notes in `settings` the use that each thread makes of it.
pub(super) fn supply(settings: &mut [Setting<'_>], members: &[usize]) -> Supply {
    let first = &settings[members[0]];
    let front = &first.model.tables.front;
    let turns = front.dispatch_threads;
    let in_groups = first.model.tables.group.is_some();
    let mut resources = [f64::INFINITY; RESOURCES];
    resources[SLOTS] = first.core.dispatch_width;
    resources[FETCH] = f64::from(front.fetch_threads);
    for &i in members {
        let setting = &mut settings[i];
        setting.use_of = [0.0; RESOURCES];
        setting.use_of[SLOTS] = setting.needs.operations;
        setting.use_of[FETCH] = setting.needs.fetch_turns;
    }
    if members.len() > 1 {
        let tight = tight_ports(settings, members);
        for (at, limit) in tight.into_iter().take(RESOURCES - FETCH - 1).enumerate() {
            resources[FETCH + 1 + at] = limit.ports;
            for (i, used) in limit.used {
                settings[i].use_of[FETCH + 1 + at] = used;
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

/// For each class of operations the ports that are likeliest to be taken, in each half of the core.
pub(super) fn unit_queues(settings: &[Setting<'_>], members: &[usize]) -> Vec<UnitQueue> {
    /// Classes in the order of [`unit_use`], as positions in [`WORKS`](super::core_model::WORKS).
    const WORK_OF: [usize; CLASSES] = [0, 1, 3, 5, 2];
    if members.len() < 2 {
        return Vec::new();
    }
    let limits = port_limits(settings, members);
    let mut queues = Vec::new();
    for (class, work) in WORK_OF.into_iter().enumerate() {
        for half in 0..2 {
            let of_class = |limit: &&PortLimit<'_>| limit.half == half && limit.set.has(work);
            let fullest = limits.iter().filter(of_class);
            let Some(limit) = fullest.max_by(|a, b| a.load.total_cmp(&b.load)) else {
                continue;
            };
            let used_by = |i: &usize| limit.used.iter().find(|(j, _)| j == i);
            let used = members
                .iter()
                .map(|i| used_by(i).map_or(0.0, |(_, used)| *used));
            queues.push(UnitQueue {
                class,
                ports: limit.ports,
                used: used.collect(),
            });
        }
    }
    queues
}

/// Ports that some threads use together.
struct PortLimit<'a> {
    set: &'a PortSet,
    /// Number of the core's half, 0 where it has none.
    half: usize,
    ports: f64,
    /// Port cycles per instruction of each thread that uses them.
    used: Vec<(usize, f64)>,
    /// Ports that the threads would keep busy if each ran as fast as alone, over `ports`.
    load: f64,
}

/// Ports that threads could exhaust together, those that they would exhaust most first.
fn tight_ports<'a>(settings: &[Setting<'a>], members: &[usize]) -> Vec<PortLimit<'a>> {
    let mut limits = port_limits(settings, members);
    limits.retain(|limit| limit.load > 1.0);
    limits.sort_by(|a, b| b.load.total_cmp(&a.load));
    limits
}

/// Ports that threads use together.
fn port_limits<'a>(settings: &[Setting<'a>], members: &[usize]) -> Vec<PortLimit<'a>> {
    let model = settings[members[0]].model;
    let mut limits = Vec::new();
    for set in model.ports.iter().filter(|set| set.is_shared()) {
        let halves = if set.has_halves() { 2 } else { 1 };
        for half in 0..halves {
            let of_half: Vec<usize> = members.iter().copied().skip(half).step_by(halves).collect();
            let use_of = |&i: &usize| (i, set.use_of(&settings[i].needs.works));
            let used: Vec<_> = of_half.iter().map(use_of).collect();
            let wanted = used.iter().map(|&(i, used)| used * settings[i].limits.all);
            let ports = set.together(of_half.len());
            let load = wanted.sum::<f64>() / ports;
            limits.push(PortLimit {
                set,
                half,
                ports,
                used,
                load,
            });
        }
    }
    limits
}
