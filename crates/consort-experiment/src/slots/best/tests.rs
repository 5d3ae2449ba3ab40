use super::super::super::testing::{chip, program};
use super::*;
use crate::Scale;
use crate::testing::workers;
use consort_sim::workload::{ProgramInstance, Workload};

const QUANTUM: TrialLengths = TrialLengths {
    warm_s: 0.1,
    length_s: 0.3,
};

fn suite(names: &[&str]) -> Suite {
    let entry = |name: &&str| ProgramInstance {
        name: (*name).to_owned(),
        program: program(name),
        threads: 8,
        start_ms: 0.0,
    };
    let workload = Workload {
        text: names.join("+"),
        entries: names.iter().map(entry).collect(),
    };
    Suite::new(&chip("xeon-e5320"), &workload)
}

fn search(suite: &Suite, objective: RoundObjective, count: usize) -> BestRound {
    let quest = SearchGoal {
        objective,
        members: SlotMembers::All,
    };
    found(suite, quest, count)
}

fn found(suite: &Suite, quest: SearchGoal, count: usize) -> BestRound {
    let context = ExperimentContext::new(1, Scale::Quick, workers(count), &|_| ());
    best_rounds(suite, &[quest], QUANTUM, &context)
        .unwrap()
        .remove(0)
}

#[test]
fn the_round_is_no_worse_than_gang_and_every_program_is_in_it() {
    let suite = suite(&["canneal", "streamcluster", "swaptions"]);
    for objective in [RoundObjective::EnergyDelay, RoundObjective::Throughput] {
        let found = search(&suite, objective, 2);
        let mut all: Vec<u32> = { found.round.slots.iter().flat_map(|slot| &slot.teams) }
            .map(|team| team.program.0)
            .collect();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2]);
        assert_eq!(found.estimated, 164);
        assert!(found.settled);
        match objective {
            RoundObjective::EnergyDelay => assert!(found.round.value <= 1.0),
            RoundObjective::Throughput => assert!(found.round.value >= 1.0),
        }
    }
}

/// swaptions scales linearly; what the others gain is measured against one for it.
#[test]
fn near_linear_programs_are_not_searched_and_nobody_loses_where_only_who_gains_may_share() {
    let suite = suite(&["canneal", "streamcluster", "swaptions"]);
    let quest = SearchGoal::default();
    assert_eq!(quest.members, SlotMembers::Gaining);
    let found = found(&suite, quest, 2);
    let linear = ProgramId(2);
    assert!(
        found
            .round
            .slots
            .contains(&CoscheduleSlot::alone(linear, 8))
    );
    let trials = SlotTrials::new(&suite, QUANTUM, 1);
    let gang: BTreeMap<ProgramId, ProgramMeasure> = { suite.ids() }
        .map(|id| {
            (
                id,
                trials.run(&CoscheduleSlot::alone(id, 8)).unwrap().measures[0],
            )
        })
        .collect();
    let slots = found.round.slots.iter();
    let slots: Vec<SlotTrial> = slots.map(|slot| trials.run(slot).unwrap()).collect();
    for (id, alone) in &gang {
        let trial = slots
            .iter()
            .find(|trial| trial.measure(*id).is_some())
            .unwrap();
        let own = trial
            .measure(*id)
            .unwrap()
            .energy_delay(trial.slot.quanta());
        assert!(own <= alone.energy_delay(1) * (1.0 + 1e-12), "{id}");
    }
    let value = RoundObjective::EnergyDelay.round_value(&slots, &gang);
    assert!((found.round.value - value).abs() < 1e-9);
}

#[test]
fn any_number_of_workers_finds_the_same() {
    let suite = suite(&["canneal", "vips"]);
    let [one, two] = [1, 2].map(|count| search(&suite, RoundObjective::EnergyDelay, count));
    assert_eq!(one.round, two.round);
    assert_eq!(one.sampled, two.sampled);
}

/// Of pairs, all slots can be simulated.
#[test]
fn of_two_programs_no_simulated_round_is_better_by_more_than_estimates_are_wrong() {
    let suite = suite(&["canneal", "dedup"]);
    let found = search(&suite, RoundObjective::EnergyDelay, 2);
    let trials = SlotTrials::new(&suite, QUANTUM, 1);
    let gang: BTreeMap<ProgramId, ProgramMeasure> = { suite.ids() }
        .map(|id| {
            (
                id,
                trials.run(&CoscheduleSlot::alone(id, 8)).unwrap().measures[0],
            )
        })
        .collect();
    let gang: Vec<(ProgramId, ProgramMeasure)> = gang.into_iter().collect();
    let mut whole = ExhaustiveSlots::new(8, &gang, RoundObjective::EnergyDelay).unwrap();
    for slot in whole.slots().collect::<Vec<_>>() {
        whole.record_trial(&trials.run(&slot).unwrap());
    }
    let best = whole.best().unwrap().value;
    assert!(best <= found.round.value);
    assert!(
        found.round.value <= 1.1 * best,
        "{} {best}",
        found.round.value
    );
}

#[test]
fn too_much_is_refused_before_anything_is_simulated() {
    let suite = suite(&["swaptions"; 17]);
    let context = ExperimentContext::new(1, Scale::Quick, workers(1), &|_| ());
    let refused = best_rounds(&suite, &[SearchGoal::default()], QUANTUM, &context);
    let text = refused.unwrap_err().to_string();
    assert_eq!(
        text,
        "17 programs, where an exhaustive search takes at most 16"
    );
}
