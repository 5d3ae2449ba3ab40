//! Policies that decide which multithreaded programs share the machine: `gang`, `fair-mis`,
//! `fair-com`, `greedy` and `pdpa`. A [`driver`] runs the slots of a
//! [chooser](crate::coscheduling).
//!
//! Source: Bhadauria and McKee, "An Approach to Resource-Aware Co-Scheduling for CMPs" (ICS 2010;
//! HOLISYN); for `pdpa` also Corbalan, Martorell, Labarta, "Performance-driven processor
//! allocation" (OSDI 2000).
//!
//! A driver samples every program alone on all cores for a quantum each, lets the chooser try slots
//! for a quantum each, and then runs the chosen slots in turn, each for as many quanta as it has
//! programs. Programs that are not in the slot are paused. A quantum is observed in two parts, so
//! that counters of which only half fit at once all count in each quantum.
//!
//! A program that comes or goes begins a new round; measures of the others are kept. Plans name a
//! quantum of their own, so the control loop's backoff does not judge them: it would compare the
//! progress of slots that differ on purpose.
//!
//! A program in another phase is sampled again, the others are not, and slots are chosen anew
//! ([`slot_rotation`]). This happens only after slots have run for as many quanta as it last took
//! to find them, so that at most half of the time goes into looking.
//!
//! Trials are bounded. For n programs on c cores sampling takes n quanta, and n more if one-core
//! throughput is needed. The fair schedulers try at most 3n co-schedules and 4 + 2m distributions
//! of cores to m members, 7n in all; `greedy` tries n·(c − 1), `pdpa` 2c + 1 for every c programs.
//!
//! Programs that want hardly any processor time take no turns and are not paused
//! ([`observed_programs`]). Each user's programs have a rotation of their own ([`Rotations`]).
//!
//! Pitfalls: a program with a thread that must be left alone runs all the time, in every slot.
//! The interval between observations that a user sets holds only until the first plan; the
//! option `quantum` is what counts.

mod driver;
mod explain;
mod fixed_slots;
mod measures;
mod observed_programs;
mod slot_rotation;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use fixed_slots::fixed_slot_policy;

use crate::coscheduling::{
    ContendedResource, CoscheduleSlot, EnergyDelayBaseline, FairChooser, GangChooser,
    GreedyChooser, PdpaChooser, SecondaryCondition,
};
use crate::ids::ProgramId;
use crate::policy::{ALL_USUAL, OptionInfo, PolicyError, PolicyInfo, PolicyOptions, PolicyResult};
use crate::pu_set::PuSet;
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;
use driver::{CoschedulingSettings, Rotations};
use std::collections::BTreeMap;

/// Divides the cores: each program gets neighbours in the order of last-level cache domains, the
/// programs with most cores first, so that few domains are shared. The source does not say which
/// cores a program gets.
pub fn divide_cores(topology: &Topology, slot: &CoscheduleSlot) -> BTreeMap<ProgramId, PuSet> {
    let mut cores: Vec<_> = topology.cores().iter().collect();
    cores.sort_by_key(|core| core.llc);
    let mut teams = slot.teams.clone();
    teams.sort_by_key(|team| std::cmp::Reverse(team.cores));
    let mut cores = cores.into_iter();
    let mut divided = BTreeMap::new();
    for team in teams {
        let own = cores.by_ref().take(team.cores as usize);
        let pus: PuSet = own.flat_map(|core| core.pus.iter().copied()).collect();
        divided.insert(team.program, pus);
    }
    divided
}

const QUANTUM: OptionInfo = OptionInfo {
    name: "quantum",
    default: "2000",
    meaning: "length of a quantum, ms (a number from 1)",
};

/// Distance from linear scaling up to which programs are left alone.
const ALPHA: OptionInfo = OptionInfo {
    name: "alpha",
    default: "0.1",
    meaning: "programs this close to linear scaling run alone (0 to 1)",
};

/// Return to the gang from slots that prove worse. It is the default only for the fair schedulers,
/// because the others are compared as they are.
const fn revert_option(default: &'static str) -> OptionInfo {
    OptionInfo {
        name: "revert",
        default,
        meaning: "go back to the gang when a round's energy-delay is worse than the gang's",
    }
}

/// Usual length of a quantum, ms.
const QUANTUM_MS: u64 = 2000;

fn quantum_ns(options: &PolicyOptions<'_>) -> Result<u64, PolicyError> {
    Ok(options.count("quantum")?.saturating_mul(1_000_000))
}

fn is_metered(offers: &SignalOffers) -> bool {
    offers.tier_of(Signal::Energy).is_some()
}

/// `gang`, the source's baseline: each program has all cores for a quantum, round robin. It
/// observes only which programs there are.
pub(crate) const GANG: PolicyInfo = PolicyInfo {
    name: "gang",
    family: "co-scheduling",
    source: "Bhadauria and McKee, ICS 2010, the baseline",
    needs: &[],
    uses: ALL_USUAL,
    tier_min: Tier::Proc,
    quantum_ms: QUANTUM_MS,
    live: true,
    simulated: true,
    summary: "gives each program all cores in turn",
    options: &[QUANTUM],
    open: open_gang,
};

fn open_gang(_: &Topology, offers: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    let settings = CoschedulingSettings {
        quantum_ns: quantum_ns(options)?,
        metered: is_metered(offers),
        sampled: false,
        alpha: None,
        phase: None,
        revert: false,
    };
    Ok(Box::new(Rotations::new(settings, GangChooser::default())))
}

/// `fair-mis`: the fair scheduler that orders programs by LLC misses. The program that misses most
/// is joined by programs that miss least while the energy-delay of all falls; then cores go where
/// they help most. It observes every program alone for a quantum of 2 s. Pitfall: the source gives
/// no threshold for a change of phase.
pub(crate) const FAIR_MIS: PolicyInfo = PolicyInfo {
    name: "fair-mis",
    family: "co-scheduling",
    source: "Bhadauria and McKee, ICS 2010 (HOLISYN)",
    needs: &[
        Signal::Cycles,
        Signal::Instructions,
        Signal::LlcAccesses,
        Signal::LlcMisses,
    ],
    // Without energy, cores times time stand for it.
    uses: |_| {
        &[
            Signal::Cycles,
            Signal::Instructions,
            Signal::LlcAccesses,
            Signal::LlcMisses,
            Signal::Energy,
        ]
    },
    tier_min: Tier::Counters,
    quantum_ms: QUANTUM_MS,
    live: true,
    simulated: true,
    summary: "lets programs share the machine that gain by it, chosen by LLC miss rate",
    options: FAIR_OPTIONS,
    open: |_, offers, options| open_fair(ContendedResource::Misses, offers, options),
};

/// `fair-com`: as `fair-mis`, but programs are ordered by the vector of bus occupancy and bus queue
/// time ([`crate::coscheduling::ProgramMeasure::bus_contention`]). Pitfall: cache and bus take four
/// counters; if there are two, each is counted half of the time.
pub(crate) const FAIR_COM: PolicyInfo = PolicyInfo {
    name: "fair-com",
    needs: &[
        Signal::Cycles,
        Signal::Instructions,
        Signal::BusBusyCycles,
        Signal::BusQueueCycles,
    ],
    // Miss rates show phases.
    uses: |_| {
        &[
            Signal::Cycles,
            Signal::Instructions,
            Signal::LlcAccesses,
            Signal::LlcMisses,
            Signal::BusBusyCycles,
            Signal::BusQueueCycles,
            Signal::Energy,
        ]
    },
    summary: "lets programs share the machine that gain by it, chosen by bus contention",
    open: |_, offers, options| open_fair(ContendedResource::Bus, offers, options),
    ..FAIR_MIS
};

const FAIR_OPTIONS: &[OptionInfo] = &[
    QUANTUM,
    OptionInfo {
        meaning: "programs this close to linear scaling run alone; also of the secondary condition (0 to 1)",
        ..ALPHA
    },
    OptionInfo {
        name: "better-than",
        default: "gang",
        meaning: "where each member's energy-delay must have been higher for a newcomer to stay: gang, or slot without the newcomer",
    },
    OptionInfo {
        name: "secondary",
        default: "printed",
        meaning: "secondary condition for taking a core: printed, reversed or off (see docs/concepts/policies/coscheduling.md)",
    },
    OptionInfo {
        name: "phase",
        default: "0.1",
        meaning: "shift of a program's LLC miss rate or share of busy cores that is a new phase (0 to 1)",
    },
    revert_option("true"),
];

fn open_fair(
    order: ContendedResource,
    offers: &SignalOffers,
    options: &PolicyOptions<'_>,
) -> PolicyResult {
    let alpha = options.share("alpha")?;
    let words = [
        ("gang", EnergyDelayBaseline::Gang),
        ("slot", EnergyDelayBaseline::Slot),
    ];
    let standard = options.one_of("better-than", &words, "gang or slot")?;
    let words = [
        ("printed", SecondaryCondition::Printed),
        ("reversed", SecondaryCondition::Reversed),
        ("off", SecondaryCondition::Off),
    ];
    let secondary = options.one_of("secondary", &words, "printed, reversed or off")?;
    let settings = CoschedulingSettings {
        quantum_ns: quantum_ns(options)?,
        metered: is_metered(offers),
        sampled: true,
        alpha: Some(alpha),
        phase: Some(options.share("phase")?),
        revert: options.flag("revert")?,
    };
    let chooser = FairChooser::new(order, standard, secondary, alpha);
    Ok(Box::new(Rotations::new(settings, chooser)))
}

/// `greedy`: programs at the number of cores that is best for them alone, packed into slots; see
/// [`GreedyChooser`]. It observes every program alone with every number of cores, a quantum of 2 s
/// each. Pitfalls: that is long, and while a program has few cores the others are idle. Measures
/// are not renewed, whatever phases come.
pub(crate) const GREEDY: PolicyInfo = PolicyInfo {
    name: "greedy",
    family: "co-scheduling",
    source: "Bhadauria and McKee, ICS 2010, the greedy scheduler",
    needs: &[Signal::Instructions],
    // Without energy, cores times time stand for it.
    uses: |_| &[Signal::Cycles, Signal::Instructions, Signal::Energy],
    tier_min: Tier::Counters,
    quantum_ms: QUANTUM_MS,
    live: true,
    simulated: true,
    summary: "packs programs at the number of cores that suits each by itself",
    options: &[QUANTUM, revert_option("false")],
    open: open_greedy,
};

fn open_greedy(_: &Topology, offers: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    let settings = CoschedulingSettings {
        quantum_ns: quantum_ns(options)?,
        metered: is_metered(offers),
        sampled: true,
        alpha: None,
        phase: None,
        revert: options.flag("revert")?,
    };
    Ok(Box::new(Rotations::new(settings, GreedyChooser::default())))
}

/// `pdpa`: each program's cores by how efficiently it uses them, as Bhadauria and McKee adapt it;
/// see [`PdpaChooser`]. It ignores the neighbours of a program. It observes every program alone on
/// all cores and on one, then all of them together with the cores that each step of the search
/// gives them, a quantum of 2 s each. Pitfall: the thresholds are estimated; a program between them
/// keeps its cores.
pub(crate) const PDPA: PolicyInfo = PolicyInfo {
    name: "pdpa",
    source: "Corbalan et al., OSDI 2000; Bhadauria and McKee, ICS 2010",
    summary: "runs programs at the same time, each on as many cores as it uses efficiently",
    options: &[
        QUANTUM,
        ALPHA,
        OptionInfo {
            name: "low",
            default: "0.5",
            meaning: "efficiency below which a program is given fewer cores (0 to 1)",
        },
        OptionInfo {
            name: "high",
            default: "0.9",
            meaning: "efficiency above which a program is given more cores (0 to 1)",
        },
        revert_option("false"),
    ],
    open: open_pdpa,
    ..GREEDY
};

fn open_pdpa(_: &Topology, offers: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    let chooser = PdpaChooser::new(options.share("low")?, options.share("high")?);
    let settings = CoschedulingSettings {
        quantum_ns: quantum_ns(options)?,
        metered: is_metered(offers),
        sampled: true,
        alpha: Some(options.share("alpha")?),
        phase: None,
        revert: options.flag("revert")?,
    };
    Ok(Box::new(Rotations::new(settings, chooser)))
}
