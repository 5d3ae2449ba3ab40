use super::*;
use consort_core::Topology;
use proptest::prelude::*;

const LIMITS: SlotLimits = SlotLimits {
    number: 4,
    total: Some(Duration::from_secs(5)),
};

fn layout() -> MachineLayout {
    MachineLayout::new(&Topology::uniform(4, 2).unwrap()).unwrap()
}

fn thread(tid: u32) -> ThreadId {
    ThreadId {
        pid: 100,
        tid,
        start_ticks: u64::from(tid) * 7,
    }
}

fn plan(places: &[(u32, &str)]) -> ExtPlan {
    let place = |&(tid, pus): &(u32, &str)| (thread(tid), pus.parse().unwrap());
    ExtPlan {
        places: places.iter().map(place).collect(),
        ..ExtPlan::unrestricted(Duration::from_millis(100))
    }
}

fn slot(length_ms: u64, programs: &[u32]) -> TimeSlot {
    TimeSlot {
        length: Duration::from_millis(length_ms),
        programs: programs.iter().copied().map(ProgramId).collect(),
        threads: BTreeSet::new(),
    }
}

/// Version, start, kind, number and slot of a line.
fn read(line: &[u8; 32]) -> (u64, u64, u32, u32, u32) {
    let long = |at: usize| u64::from_ne_bytes(line[at..at + 8].try_into().unwrap());
    let word = |at: usize| u32::from_ne_bytes(line[at..at + 4].try_into().unwrap());
    (long(0), long(8), word(16), word(20), word(24))
}

fn error(plan: &ExtPlan) -> String {
    let refused = encode(plan, 1, &SetNumbers::new(), &layout(), LIMITS);
    refused.unwrap_err().to_string()
}

fn encoded_as(plan: &ExtPlan, version: u64) -> EncodedPlan {
    encode(plan, version, &SetNumbers::new(), &layout(), LIMITS).unwrap()
}

#[test]
fn lines_name_version_start_and_place() {
    let encoded = encoded_as(&plan(&[(5, "3"), (6, "2,6"), (7, "0-7")]), 9);
    assert_eq!(read(&encoded.lines[&5]), (9, 35, 1, 3, 0));
    assert_eq!(read(&encoded.lines[&6]), (9, 42, 2, 2, 0));
    assert_eq!(read(&encoded.lines[&7]), (9, 49, 0, 0, 0));
    assert_eq!(encoded.stale_ns, 1_000_000_000);
    assert!(encoded.sets.is_empty());
}

#[test]
fn equal_sets_share_a_number() {
    let plan = plan(&[(5, "0-2"), (6, "1,3"), (7, "0-2")]);
    let encoded = encoded_as(&plan, 1);
    let number = |tid| read(&encoded.lines[&tid]);
    assert_eq!((number(5).2, number(5).3), (3, 0));
    assert_eq!((number(6).2, number(6).3), (3, 1));
    assert_eq!(number(7).3, 0);
    assert_eq!(encoded.sets_of, [1, 3, 1, 2, 0, 0, 0, 0]);
}

#[test]
fn a_number_means_one_set_in_plans_that_follow_each_other() {
    let first = encoded_as(&plan(&[(5, "0-2"), (6, "1,3")]), 1);
    let next = plan(&[(5, "5-7"), (6, "1,3")]);
    let next = encode(&next, 2, &first.sets, &layout(), LIMITS).unwrap();
    let numbers: Vec<u32> = next.sets.values().copied().collect();
    assert_eq!((read(&next.lines[&5]).3, read(&next.lines[&6]).3), (2, 1));
    assert_eq!(numbers.len(), 2);
    // The number of a set that is gone is free again one plan later.
    let last = encode(&plan(&[(5, "0,5")]), 3, &next.sets, &layout(), LIMITS).unwrap();
    assert_eq!(read(&last.lines[&5]).3, 0);
}

#[test]
fn a_threads_own_slot_goes_before_its_programs() {
    let mut plan = plan(&[(5, "3")]);
    plan.slots = vec![slot(20, &[100]), slot(30, &[])];
    plan.slots[1].threads.insert(thread(6));
    let encoded = encoded_as(&plan, 4);
    assert_eq!(read(&encoded.lines[&5]).4, 1);
    assert_eq!(read(&encoded.lines[&6]), (4, 42, 0, 0, 2));
    assert_eq!(encoded.slot_ns, [20_000_000, 30_000_000]);
    assert_eq!(encoded.programs[&100][..8], 4u64.to_ne_bytes());
    assert_eq!(encoded.programs[&100][8..12], 1u32.to_ne_bytes());
}

#[test]
fn what_cannot_be_is_refused() {
    assert!(error(&plan(&[(5, "9")])).contains("PU 9"));
    let with = |slots: Vec<TimeSlot>| ExtPlan { slots, ..plan(&[]) };
    let refused = error(&with(vec![slot(20, &[1]), slot(20, &[1])]));
    assert!(refused.contains("program 1 is in two"), "{refused}");
    assert!(error(&with(vec![slot(0, &[])])).contains("too short"));
    assert!(error(&with(vec![slot(6000, &[])])).contains("at most 5s"));
    assert!(error(&with(vec![slot(2, &[]); 5])).contains("at most 4"));
}

#[test]
fn more_sets_than_the_tables_hold_are_refused() {
    let pairs: Vec<String> = (0..17)
        .map(|i| format!("{}-{}", i % 6, 2 + i % 6))
        .collect();
    let distinct: Vec<String> = (1..=17u32)
        .map(|bits| {
            let pus = (0..5)
                .filter(|bit| bits >> bit & 1 == 1)
                .map(|bit| bit.to_string());
            format!("{},5,7", pus.collect::<Vec<_>>().join(","))
        })
        .collect();
    let places = |sets: &[String]| {
        let numbered: Vec<(u32, &str)> = (1..).zip(sets.iter().map(String::as_str)).collect();
        plan(&numbered)
    };
    assert_eq!(encoded_as(&places(&pairs), 1).sets.len(), 6);
    assert!(error(&places(&distinct)).contains("at most 16"));
}

proptest! {
    /// Whatever the places are, a line stands for exactly the PUs that the plan says.
    #[test]
    fn lines_mean_what_the_plan_says(masks in prop::collection::vec(1u32..256, 1..16)) {
        let set = |mask: u32| -> PuSet {
            (0..8).filter(|pu| mask >> pu & 1 == 1).map(consort_core::PuId).collect()
        };
        let places = (1..).zip(&masks).map(|(tid, &mask)| (thread(tid), set(mask))).collect();
        let plan = ExtPlan { places, ..plan(&[]) };
        let layout = layout();
        let encoded = encoded_as(&plan, 1);
        for (tid, &mask) in (1..).zip(&masks) {
            let (_, _, kind, number, _) = read(&encoded.lines[&tid]);
            let in_set = |pu: &consort_core::PuId| encoded.sets_of[pu.0 as usize] >> number & 1 == 1;
            let meant: PuSet = match kind {
                0 => layout.pus.clone(),
                1 => [consort_core::PuId(number)].into_iter().collect(),
                2 => layout.cores[number as usize].clone(),
                _ => layout.pus.iter().filter(in_set).collect(),
            };
            prop_assert_eq!(meant, set(mask));
        }
    }
}
