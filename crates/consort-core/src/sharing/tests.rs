//! Tests on synthetic machines: their sharing is found, and unclear measurements decide nothing.

use super::*;
use crate::ids::PuId;
use crate::pu_set::PuSet;
use crate::stats::{ConfidenceInterval, RatioInterval};
use crate::topology::Topology;
use proptest::prelude::*;

/// Sharing in a made-up machine: the number of each CPU's core, level 2 cache and LLC domain.
#[derive(Clone, Debug)]
struct Truth(Vec<[usize; 3]>);

impl Truth {
    /// Cores of `ways` CPUs, way after way, and LLC domains of `cores` cores.
    fn new(pus: usize, ways: usize, cores: usize) -> Self {
        let all = pus / ways;
        let place = |pu: usize| [pu % all, pu % all, (pu % all) / cores];
        Self((0..pus).map(place).collect())
    }

    fn pus(&self) -> PuSet {
        (0..self.0.len() as u32).map(PuId).collect()
    }

    fn groups(&self, kind: usize) -> Vec<PuSet> {
        let mut groups: Vec<PuSet> = Vec::new();
        for pu in 0..self.0.len() {
            let same = |other: &usize| self.0[*other][kind] == self.0[pu][kind];
            let group: PuSet = (0..self.0.len())
                .filter(same)
                .map(|p| PuId(p as u32))
                .collect();
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        groups
    }

    /// Every pair, with intervals of this relative width.
    fn evidence(&self, width: f64) -> Vec<PairEvidence> {
        let n = self.0.len();
        let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b)));
        pairs.map(|(a, b)| self.pair(a, b, width)).collect()
    }

    fn pair(&self, a: usize, b: usize, width: f64) -> PairEvidence {
        let same = |kind: usize| self.0[a][kind] == self.0[b][kind];
        let slowdown = |stress| match stress {
            Stress::Int | Stress::Fp | Stress::L1 if same(0) => 1.6,
            Stress::L2 if same(1) => 1.8,
            Stress::Memory => 1.2,
            _ => 1.02,
        };
        let effect = |stress| StressEffect {
            stress,
            slowdown: ratio(slowdown(stress), 1.0 + width),
        };
        let ns = [300.0, 90.0, 20.0][usize::from(same(2)) + usize::from(same(0))];
        PairEvidence {
            a: PuId(a as u32),
            b: PuId(b as u32),
            effects: Stress::ALL.into_iter().map(effect).collect(),
            round_trip_ns: Some(ConfidenceInterval {
                mean: ns,
                ci95: Some(ns * width),
                n: 8,
            }),
        }
    }
}

fn ratio(mean: f64, factor95: f64) -> RatioInterval {
    RatioInterval {
        mean,
        factor95: Some(factor95),
        n: 8,
    }
}

fn found(level: &SharingLevel) -> Vec<PuSet> {
    level.groups.iter().map(|group| group.pus.clone()).collect()
}

fn texts(level: &SharingLevel) -> Vec<String> {
    found(level).iter().map(ToString::to_string).collect()
}

fn hidden_smt2() -> (Truth, Inference) {
    let truth = Truth::new(4, 2, 2);
    let inference = infer(&truth.pus(), &truth.evidence(0.03));
    (truth, inference)
}

#[test]
fn hidden_smt_is_found_and_compared() {
    let (_, inference) = hidden_smt2();
    assert_eq!(texts(&inference.cores), ["0,2", "1,3"]);
    assert_eq!(texts(&inference.l2s), ["0,2", "1,3"]);
    assert!(inference.cores.groups[0].confidence.unwrap() > 0.97);
    assert_eq!(
        inference.pairs[1].core.why,
        "fp slowed 1.60 (1.55 to 1.65, 8 runs)"
    );
    let reported = Topology::uniform(4, 1).unwrap();
    let differences = differences(&inference, &reported);
    assert_eq!(differences.len(), 4, "{differences:?}");
    assert_eq!(
        differences[0],
        "CPUs 0,2 share a core; the kernel shows {0} {2}"
    );
    let agrees = Topology::uniform(2, 2).unwrap();
    assert_eq!(super::differences(&inference, &agrees), [""; 0]);
}

#[test]
fn unshared_pus_have_their_own_cores() {
    let truth = Truth::new(3, 1, 3);
    let inference = infer(&truth.pus(), &truth.evidence(0.03));
    assert_eq!(texts(&inference.cores), ["0", "1", "2"]);
    assert_eq!(texts(&inference.l2s), ["0", "1", "2"]);
    // All round trips are alike: one domain, or none.
    assert_eq!(inference.llcs.undecided.to_string(), "0-2");
    let reported = Topology::uniform(1, 3).unwrap();
    let first = &differences(&inference, &reported)[0];
    assert_eq!(
        first,
        "CPU 0 shares a core with no other; the kernel shows {0-2}"
    );
}

#[test]
fn domains_show_in_round_trips() {
    let truth = Truth::new(8, 2, 2);
    let inference = infer(&truth.pus(), &truth.evidence(0.05));
    assert_eq!(texts(&inference.llcs), ["0-1,4-5", "2-3,6-7"]);
}

#[test]
fn noise_decides_nothing() {
    let truth = Truth::new(4, 2, 2);
    let inference = infer(&truth.pus(), &truth.evidence(0.9));
    assert_eq!(inference.cores.groups, []);
    assert_eq!(inference.cores.undecided, truth.pus());
    assert_eq!(
        SharingMap::from_inference(&inference, String::new()).cores,
        []
    );
    assert!(
        inference.pairs[0]
            .core
            .why
            .contains("may be more or less than 1.15")
    );
}

#[test]
fn speedup_together_decides_nothing() {
    let truth = Truth::new(2, 1, 2);
    let mut evidence = truth.evidence(0.03);
    assert_eq!(
        infer(&truth.pus(), &evidence).pairs[0].core.sharing,
        SharingAnswer::Apart
    );
    for effect in &mut evidence[0].effects {
        effect.slowdown = ratio(0.5, 1.02);
    }
    let pair = &infer(&truth.pus(), &evidence).pairs[0];
    assert_eq!(pair.core.sharing, SharingAnswer::Unclear, "{pair:?}");
    assert_eq!(pair.l2.sharing, SharingAnswer::Unclear, "{pair:?}");
    assert!(pair.core.why.contains("0.50"), "{pair:?}");
}

#[test]
fn one_pu_is_one_core_and_no_pu_is_none() {
    let one = infer(&"5".parse().unwrap(), &[]);
    assert_eq!(texts(&one.cores), ["5"]);
    assert_eq!(one.cores.groups[0].confidence, None);
    assert_eq!(infer(&PuSet::new(), &[]).cores.groups, []);
}

#[test]
fn contradictions_are_left_undecided() {
    let truth = Truth::new(4, 4, 1);
    let mut evidence = truth.evidence(0.03);
    let apart = Truth::new(4, 1, 1).pair(0, 1, 0.03);
    evidence[0] = apart;
    let inference = infer(&truth.pus(), &evidence);
    assert_eq!(inference.cores.undecided.to_string(), "0-3");
}

#[test]
fn siblings_decide_a_noisy_pair() {
    let truth = Truth::new(4, 2, 2);
    let mut evidence = truth.evidence(0.03);
    // 0 and 1: 0 shares with 2, and 2 is apart from 1.
    evidence[0] = truth.pair(0, 1, 0.9);
    let inference = infer(&truth.pus(), &evidence);
    assert_eq!(texts(&inference.cores), ["0,2", "1,3"]);
}

#[test]
fn incompletely_compared_pu_is_undecided() {
    let truth = Truth::new(4, 2, 2);
    let some: Vec<PairEvidence> = truth.evidence(0.03).drain(..2).collect();
    let inference = infer(&truth.pus(), &some);
    assert_eq!(texts(&inference.cores), ["0,2"]);
    assert_eq!(inference.cores.undecided.to_string(), "1,3");
}

#[test]
fn map_changes_topology_and_round_trips() {
    let (_, inference) = hidden_smt2();
    let map = SharingMap::from_inference(&inference, "a \"test\"".to_owned());
    assert_eq!(SharingMap::parse(&map.to_toml(), "f"), Ok(map.clone()));
    let reported = Topology::uniform(4, 1).unwrap();
    map.check(&reported, "f").unwrap();
    let changed = map.apply(&reported).unwrap();
    assert_eq!(
        (changed.smt(), changed.cores().len(), changed.l2s().len()),
        (2, 2, 2)
    );
    assert_eq!(changed.core_of(PuId(2)), changed.core_of(PuId(0)));
}

#[test]
fn unnamed_pus_stay_and_offline_pus_vanish() {
    let map = SharingMap::parse("cores = [\"0,3\", \"9\"]", "f").unwrap();
    let reported = Topology::uniform(2, 2).unwrap();
    let changed = map.apply(&reported).unwrap();
    let cores: Vec<Vec<PuId>> = changed.cores().iter().map(|c| c.pus.clone()).collect();
    assert_eq!(
        cores,
        [vec![PuId(0), PuId(3)], vec![PuId(1)], vec![PuId(2)]]
    );
    assert_eq!(changed.llcs().len(), 1);
}

fn error(text: &str) -> String {
    let reported = Topology::uniform(4, 1).unwrap();
    let map = SharingMap::parse(text, "m.toml");
    let checked = map.and_then(|map| map.check(&reported, "m.toml"));
    checked.unwrap_err().to_string()
}

#[test]
fn invalid_maps_name_file_and_key() {
    let cases = [
        (
            "cores = [\"0,9\"]",
            "m.toml: cores[0] = \"0,9\": CPU 9 does not exist here or is offline; online are 0-3",
        ),
        (
            "cores = [\"0-1\", \"1\"]",
            "m.toml: cores[1] = \"1\": CPU 1 is in another of cores already; name every CPU once",
        ),
        (
            "cores = [\"0\", \"\"]",
            "m.toml: cores[1] = \"\": is empty; name at least one CPU",
        ),
        (
            "cores = [\"0,1\"]\nllcs = [\"1,2\"]",
            "m.toml: cores[0] = \"0-1\": '1-2' of llcs has only some of these CPUs; a core lies in one cache",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(error(text), expected);
    }
    assert!(error("cores = []\nl3s = []").starts_with("m.toml, line 2: unknown field `l3s`"));
    assert!(error("l2s = []").contains("missing key `cores`"));
    assert!(error("cores = [\"x\"]").starts_with("m.toml: cores[0] = \"x\": "));
}

#[test]
fn a_core_across_nodes_is_refused() {
    let mut facts = Topology::uniform(2, 1).unwrap().facts();
    facts[1].node = 1;
    let reported = Topology::new(facts, vec![crate::topology::CoreType::uniform()]).unwrap();
    let map = SharingMap::parse("cores = [\"0-1\"]", "m").unwrap();
    let error = map.check(&reported, "m").unwrap_err().to_string();
    assert!(error.contains("different NUMA nodes"), "{error}");
    assert!(map.apply(&reported).is_err());
}

/// A machine of any shape, not only with equal cores.
fn machines() -> impl Strategy<Value = Truth> {
    prop::collection::vec((0usize..6, 0usize..4), 1..12).prop_map(|places| {
        let llc_of_l2: Vec<usize> = (0..4).map(|l2| l2 % 2).collect();
        // A core lies in one level 2 cache, and that in one LLC domain.
        let l2_of_core = |core: usize| places.iter().find(|p| p.0 == core).map_or(0, |p| p.1);
        let place = |&(core, _): &(usize, usize)| {
            let l2 = l2_of_core(core);
            [core, l2, llc_of_l2[l2]]
        };
        Truth(places.iter().map(place).collect())
    })
}

proptest! {
    #[test]
    fn clear_measurements_give_the_truth(truth in machines()) {
        let inference = infer(&truth.pus(), &truth.evidence(0.02));
        prop_assert_eq!(found(&inference.cores), truth.groups(0));
        prop_assert_eq!(found(&inference.l2s), truth.groups(1));
    }

    #[test]
    fn groups_partition_the_pus(
        n in 1u32..8,
        measured in prop::collection::vec(
            (0u32..9, 0u32..9, prop::collection::vec((0usize..5, 0.5f64..3.0, 1.0f64..2.0), 0..5), 1.0f64..500.0),
            0..30,
        ),
    ) {
        let pus: PuSet = (0..n).map(PuId).collect();
        let evidence: Vec<PairEvidence> = measured.into_iter().map(|(a, b, effects, ns)| PairEvidence {
            a: PuId(a),
            b: PuId(b),
            effects: effects.into_iter().map(|(stress, mean, factor)| StressEffect {
                stress: Stress::ALL[stress],
                slowdown: ratio(mean, factor),
            }).collect(),
            round_trip_ns: ConfidenceInterval::from_values(&[ns, ns * 1.01]),
        }).collect();
        let inference = infer(&pus, &evidence);
        for level in [&inference.cores, &inference.l2s, &inference.llcs] {
            let count: usize = level.groups.iter().map(|g| g.pus.len()).sum();
            let all = level.groups.iter().fold(level.undecided.clone(), |all, g| all.union(&g.pus));
            prop_assert_eq!(&all, &pus);
            prop_assert_eq!(count + level.undecided.len(), pus.len());
        }
        // Whatever was inferred can be applied to a flat machine: it is a partition.
        let map = SharingMap::from_inference(&inference, String::new());
        let reported = Topology::uniform(n, 1).unwrap();
        if map.check(&reported, "m").is_ok() {
            let changed = map.apply(&reported).unwrap();
            prop_assert_eq!(changed.pus(), &pus);
        }
    }

    #[test]
    fn the_order_of_the_pairs_does_not_matter(truth in machines(), width in 0.01f64..0.5, seed in 0usize..100) {
        let mut evidence = truth.evidence(width);
        let one = infer(&truth.pus(), &evidence);
        let by = seed % evidence.len().max(1);
        evidence.rotate_left(by);
        evidence.reverse();
        let two = infer(&truth.pus(), &evidence);
        prop_assert_eq!((one.cores, one.l2s, one.llcs), (two.cores, two.l2s, two.llcs));
    }

    #[test]
    fn any_text_is_a_map_or_error(text in "(cores|l2s|llcs|source|=|\\[|\\]|\"|,|[0-9 -]|\n|\\PC){0,40}") {
        if let Err(error) = SharingMap::parse(&text, "m") {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }
}
