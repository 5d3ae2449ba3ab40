use super::super::testing::{Load, World, id};
use super::super::{
    Chooser, ChooserStep, ContendedResource, EnergyDelayBaseline, FairChooser, GangChooser,
    GreedyChooser, PdpaChooser, SecondaryCondition,
};
use super::*;
use proptest::prelude::*;

fn world(cores: u32, loads: &[(f64, f64)]) -> World {
    let load = |&(scaling, weight): &(f64, f64)| Load { scaling, weight };
    World {
        cores,
        loads: loads.iter().map(load).collect(),
    }
}

/// The search with everything known.
fn searched(world: &World, objective: RoundObjective) -> ExhaustiveSlots {
    let mut search = ExhaustiveSlots::new(world.cores, &world.rising(), objective).unwrap();
    for slot in search.slots().collect::<Vec<_>>() {
        search.record_trial(&world.run(&slot));
    }
    search
}

fn worth(world: &World, slots: &[CoscheduleSlot], objective: RoundObjective) -> f64 {
    let trials: Vec<SlotTrial> = slots.iter().map(|slot| world.run(slot)).collect();
    objective.round_value(&trials, &world.rising().into_iter().collect())
}

/// Returns true where `a` is at least as good as `b`, but for rounding.
fn as_good(objective: RoundObjective, a: f64, b: f64) -> bool {
    let slack = 1e-9 * b.abs();
    match objective {
        RoundObjective::EnergyDelay => a <= b + slack,
        RoundObjective::Throughput => a >= b - slack,
    }
}

/// Every round, written down one program after the other: into each slot that is there or a new
/// one, with any cores that are free in it.
fn every_round(
    world: &World,
    next: usize,
    slots: &mut Vec<CoscheduleSlot>,
    visit: &mut dyn FnMut(&[CoscheduleSlot]),
) {
    if next == world.loads.len() {
        return visit(slots);
    }
    let program = id(next);
    for at in 0..=slots.len() {
        if at == slots.len() {
            slots.push(CoscheduleSlot::default());
        }
        for cores in 1..=world.cores - slots[at].cores() {
            slots[at].teams.push(ProgramTeam { program, cores });
            every_round(world, next + 1, slots, visit);
            slots[at].teams.pop();
        }
    }
    slots.pop();
}

fn loads(most: usize) -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((1.0f64..8.0, 0.0f64..1.0), 1..=most)
}

fn objectives() -> impl Strategy<Value = RoundObjective> {
    prop::sample::select(vec![
        RoundObjective::EnergyDelay,
        RoundObjective::Throughput,
    ])
}

/// Slots at which a chooser ends.
fn round(world: &World, chooser: &mut dyn Chooser) -> Vec<CoscheduleSlot> {
    chooser.begin(world.cores, &world.rising());
    let mut last = None;
    loop {
        match chooser.next(last.take().as_ref()) {
            ChooserStep::Try(slot) => last = Some(world.run(&slot)),
            ChooserStep::Done(slots) => return slots,
        }
    }
}

fn choosers() -> Vec<Box<dyn Chooser>> {
    let fair = |order| {
        Box::new(FairChooser::new(
            order,
            EnergyDelayBaseline::Gang,
            SecondaryCondition::Off,
            0.1,
        )) as Box<dyn Chooser>
    };
    vec![
        Box::new(GangChooser::default()),
        fair(ContendedResource::Misses),
        fair(ContendedResource::Bus),
        Box::new(GreedyChooser::default()),
        Box::new(PdpaChooser::new(0.7, 0.95)),
    ]
}

proptest! {
    #[test]
    fn no_round_of_all_that_there_are_is_better(
        cores in 1u32..5, loads in loads(4), objective in objectives(),
    ) {
        let world = world(cores, &loads);
        let best = searched(&world, objective).best().unwrap();
        let mut naive = None;
        every_round(&world, 0, &mut Vec::new(), &mut |slots| {
            let value = worth(&world, slots, objective);
            let better = |than: f64| !as_good(objective, than, value);
            if naive.is_none_or(better) {
                naive = Some(value);
            }
        });
        let naive = naive.unwrap();
        prop_assert!((best.value - naive).abs() <= 1e-9 * naive.abs(), "{} {}", best.value, naive);
        let value = worth(&world, &best.slots, objective);
        prop_assert!((best.value - value).abs() <= 1e-9 * value.abs());
    }

    #[test]
    fn no_chooser_s_round_is_better(
        cores in 1u32..9, loads in loads(6), objective in objectives(),
    ) {
        let world = world(cores, &loads);
        let best = searched(&world, objective).best().unwrap();
        for mut chooser in choosers() {
            let slots = round(&world, chooser.as_mut());
            let value = worth(&world, &slots, objective);
            prop_assert!(as_good(objective, best.value, value), "{best:?} {slots:?} {value}");
        }
    }

    #[test]
    fn every_program_is_in_one_slot_and_every_slot_has_a_place(
        cores in 1u32..9, loads in loads(6), objective in objectives(),
    ) {
        let world = world(cores, &loads);
        let search = searched(&world, objective);
        let best = search.best().unwrap();
        let mut all: Vec<u32> = { best.slots.iter().flat_map(|s| &s.teams) }
            .map(|team| team.program.0)
            .collect();
        all.sort_unstable();
        prop_assert_eq!(all, (1..=loads.len() as u32).collect::<Vec<_>>());
        prop_assert!(best.slots.iter().all(|slot| slot.cores() <= cores));
        prop_assert_eq!(search.slots().count() as u64, slots_of(loads.len(), cores));
        let known = search.costs.iter().flatten();
        prop_assert!(known.skip(1).all(|cost| cost.is_finite()));
    }
}

#[test]
fn two_programs_that_use_half_of_the_cores_share_them() {
    let best = searched(
        &world(8, &[(4.0, 0.0), (4.0, 0.0)]),
        RoundObjective::EnergyDelay,
    );
    let best = best.best().unwrap();
    // Two quanta for half of the energy each.
    assert_eq!(best.value, 0.25);
    let cores: Vec<u32> = best.slots[0].teams.iter().map(|team| team.cores).collect();
    assert_eq!((best.slots.len(), cores), (1, vec![4, 4]));
}

/// By hand: the second program halves the speed of the first. On six cores and two, for two quanta,
/// the first does 6/2 · 2/8 = 0.75 times what it does in the gang, the second 2 · 2/2 = 2 times: 1.375
/// in the mean. On no number of cores beside the second does the first do as much as in the gang.
#[test]
fn a_sparing_search_leaves_out_slots_in_which_somebody_loses() {
    let foes = world(8, &[(8.0, 0.0), (2.0, 1.0)]);
    let best = |mut search: ExhaustiveSlots| {
        for slot in search.slots().collect::<Vec<_>>() {
            search.record_trial(&foes.run(&slot));
        }
        search.best().unwrap()
    };
    let new = || ExhaustiveSlots::new(8, &foes.rising(), RoundObjective::Throughput).unwrap();
    let (any, spared) = (best(new()), best(new().exclude_harmful_slots()));
    assert_eq!((any.slots.len(), any.value), (1, 1.375));
    assert_eq!((spared.slots.len(), spared.value), (2, 1.0));
}

#[test]
fn a_slot_that_nothing_is_known_of_is_not_chosen() {
    let world = world(8, &[(4.0, 0.0), (4.0, 0.0)]);
    let mut search = ExhaustiveSlots::new(8, &world.rising(), RoundObjective::Throughput).unwrap();
    assert_eq!(search.best(), None);
    let alone = [
        CoscheduleSlot::alone(id(0), 8),
        CoscheduleSlot::alone(id(1), 8),
    ];
    alone
        .iter()
        .for_each(|slot| search.record_trial(&world.run(slot)));
    assert_eq!(search.best().unwrap().slots, alone);
}

#[test]
fn a_later_trial_of_a_slot_replaces_the_earlier() {
    let world = world(8, &[(4.0, 0.0), (4.0, 0.0)]);
    let mut search = searched(&world, RoundObjective::Throughput);
    let pair = search.best().unwrap().slots;
    let mut trial = world.run(&pair[0]);
    trial.measures.iter_mut().for_each(|m| m.instructions = 0.0);
    search.record_trial(&trial);
    assert_ne!(search.best().unwrap().slots, pair);
}

#[test]
fn trials_of_others_are_passed_over() {
    let world = world(4, &[(4.0, 0.0), (4.0, 0.0)]);
    let mut search =
        ExhaustiveSlots::new(4, &world.rising()[..1], RoundObjective::Throughput).unwrap();
    let pair = CoscheduleSlot {
        teams: [0, 1]
            .map(|i| ProgramTeam {
                program: id(i),
                cores: 2,
            })
            .into(),
    };
    for slot in [
        pair,
        CoscheduleSlot::alone(id(1), 4),
        CoscheduleSlot::alone(id(0), 5),
        CoscheduleSlot::default(),
    ] {
        let trial = SlotTrial {
            measures: vec![ProgramMeasure::default(); slot.teams.len()],
            slot,
        };
        search.record_trial(&trial);
    }
    assert_eq!(search.best(), None);
}

#[test]
fn twelve_programs_on_eight_cores_are_searched_and_more_than_the_bounds_refused() {
    let gang = |n: u32| {
        (1..=n)
            .map(|i| (ProgramId(i), ProgramMeasure::default()))
            .collect::<Vec<_>>()
    };
    let new = |n, cores| ExhaustiveSlots::new(cores, &gang(n), RoundObjective::default());
    assert_eq!(new(12, 8).unwrap().slots().count(), 125_969);
    assert_eq!(
        new(17, 1).unwrap_err(),
        ExhaustiveError::Programs { programs: 17 }
    );
    let text = new(12, 16).unwrap_err().to_string();
    assert!(
        text.starts_with("12 programs on 16 cores make 30421754 slots"),
        "{text}"
    );
    assert_eq!(slots_of(16, u32::MAX), u64::MAX);
}

#[test]
fn no_programs_make_an_empty_round() {
    let search = ExhaustiveSlots::new(4, &[], RoundObjective::default()).unwrap();
    assert_eq!(search.best().unwrap().slots, []);
}
