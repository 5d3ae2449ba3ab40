//! Random machines, programs and placements.

use super::build::{compute, machine};
use consort_sim::machine::detail::PredictorKind;
use consort_sim::machine::{
    CoreSpec, L2Group, MachineSpec, NumaSpec, PipelineSpec, RobSharing, Scope, SmtMode,
};
use consort_sim::program::{
    ChainSpec, DivisionSpec, ILP_WINDOWS, IlpSpec, MixSpec, NextLineSpec, PhaseSpec, PrefetchSpec,
    ResolutionSpec, SetCurve, StretchSpec,
};
use proptest::prelude::*;

fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![Just(Scope::Pu), Just(Scope::Core)]
}

fn rob_sharing() -> impl Strategy<Value = RobSharing> {
    prop_oneof![
        Just(RobSharing::Shared),
        Just(RobSharing::Partitioned),
        Just(RobSharing::Private)
    ]
}

prop_compose! {
    fn cores()(
        in_order in any::<bool>(),
        hz in 0.5f64..5.0,
        width in 1u32..9,
        rob in 16u32..512,
        rob_sharing in rob_sharing(),
        depth in 4.0f64..25.0,
        (outstanding, is_tagged) in (1u32..24, any::<bool>()),
        ways in 1u32..5,
        unit_counts in prop::array::uniform3(1u32..5),
        unit_latency in 1.0f64..8.0,
        scopes in prop::array::uniform5(scope()),
        l1 in 8.0f64..64.0,
        l2 in prop::option::of(64.0f64..2048.0),
    ) -> CoreSpec {
        let mut core = machine().core_types["big"].clone();
            core.pipeline = if in_order { PipelineSpec::InOrder } else { PipelineSpec::OutOfOrder };
            core.frequency_ghz = hz;
            core.dispatch_width = f64::from(width);
            core.rob_entries = (!in_order).then_some(rob);
            core.rob_sharing = rob_sharing;
            core.pipeline_depth_cycles = depth;
            core.outstanding_misses = outstanding;
            core.branch_predictor.kind = is_tagged.then_some(PredictorKind::Tage);
            core.smt = (1..=ways)
                .map(|w| SmtMode {
                    ways: w,
                    thread_dispatch_width: (f64::from(width) / f64::from(w.min(2))).max(1.0),
                })
                .collect();
            core.units.int.count = unit_counts[0];
            core.units.fp.count = unit_counts[1];
            core.units.load_store.count = unit_counts[2];
            core.units.fp.latency_cycles = unit_latency;
            core.units.int.per = scopes[0];
            core.units.fp.per = scopes[1];
            core.units.load_store.per = scopes[2];
            core.l1d.per = scopes[3];
            core.branch_predictor.per = scopes[4];
            core.l1d.size_kib = l1;
            (core.tlb.first_entries, core.tlb.hit_cycles) = (Some(64), Some(7.0));
            match l2 {
                Some(kib) => core.l2.as_mut().unwrap().size_kib = kib,
                None => core.l2 = None,
            }
        core
    }
}

prop_compose! {
    pub fn machines()(
        core in cores(),
        packages in 1u32..3,
        nodes in 1u32..3,
        domains in 1u32..3,
        l2s in 1u32..4,
        cores_per_l2 in 1u32..3,
        llc in 1024.0f64..65536.0,
        remote in any::<bool>(),
        memory_ns in 30.0f64..200.0,
        memory_gb_s in 0.5f64..50.0,
        fabric_gb_s in 1.0f64..200.0,
        link_gb_s in 0.5f64..50.0,
    ) -> MachineSpec {
        let mut m = machine();
        m.core_types.insert("big".into(), core);
        m.layout.packages = packages;
        m.layout.nodes_per_package = nodes;
        m.layout.llc_domains_per_node = domains;
        m.layout.cluster = vec![L2Group { core_type: "big".into(), l2_domains: l2s, cores_per_l2 }];
        m.llc.size_kib = llc;
        m.llc.remote_latency_ns = (remote && domains > 1).then_some(40.0);
        m.memory.latency_ns = memory_ns;
        m.memory.bandwidth_gb_s = memory_gb_s;
        m.interconnect.bandwidth_gb_s = fabric_gb_s;
        m.numa = Some(NumaSpec {
            same_package_ns: 30.0,
            other_package_ns: 80.0,
            link_bandwidth_gb_s: link_gb_s,
            memory_nodes: None,
        });
        m
    }
}

prop_compose! {
    fn divisions()(
        operations in 0.0f64..0.1,
        mut lengthening in prop::array::uniform4(0.0f64..4.0),
    ) -> DivisionSpec {
        lengthening.sort_by(f64::total_cmp);
        DivisionSpec { operations, slow: 0.0, lengthening }
    }
}

/// The mix of which the classes have shares in these proportions.
fn mix(proportions: [f64; 6]) -> MixSpec {
    let sum: f64 = proportions.iter().sum();
    let [fp, vector, int, load, store, branch] = proportions.map(|part| part / sum);
    MixSpec {
        fp,
        vector,
        int,
        load,
        store,
        branch,
    }
}

/// Two kinds of stretches of unlike mixes.
fn stretches() -> impl Strategy<Value = Vec<StretchSpec>> {
    let mixes = prop::array::uniform2(prop::array::uniform6(0.01f64..1.0));
    let rest = (0.05f64..0.95, 1.0f64..1.5, 0.0f64..0.3, 0.0f64..1.0);
    (mixes, rest).prop_map(|(mixes, (share, operations, taken, part))| {
        let kinds = mixes.into_iter().zip([share, 1.0 - share]);
        let kind = |(shares, share): ([f64; 6], f64)| {
            let mix = mix(shares);
            StretchSpec {
                share,
                operations,
                taken,
                mix,
                multiply: part * mix.int,
                moves: part * mix.vector,
            }
        };
        kinds.map(kind).collect()
    })
}

/// Measured mispredictions, rising or not, alone and shared, with tags and without.
fn predictor_curves() -> impl Strategy<Value = [[f64; 5]; 4]> {
    prop::array::uniform4(prop::array::uniform5(0.0f64..20.0))
}

/// Two sets of longest chains, each shorter in larger windows.
pub fn chains() -> impl Strategy<Value = Vec<[ChainSpec; ILP_WINDOWS.len()]>> {
    let set = (0.02f64..1.0, 0.0f64..0.4, 0.0f64..0.4, 0.0f64..0.9);
    let set = set.prop_map(|(plain, load, fp, fall)| {
        ILP_WINDOWS.map(|window| {
            let part = consort_describe::math::pow(ILP_WINDOWS[0] / window, fall);
            ChainSpec {
                plain: plain * part,
                load: load * part,
                fp: fp * part,
                ..ChainSpec::default()
            }
        })
    });
    prop::collection::vec(set, 1..3)
}

/// Lines in caches of sets, fewer in larger ones and in sets of eight.
fn set_curves() -> impl Strategy<Value = SetCurve> {
    prop::collection::vec((0.0f64..10.0, 0.0f64..1.0), 9).prop_map(|mut points| {
        points.sort_by(|x, y| y.0.total_cmp(&x.0));
        let eight: f64 = points.iter().fold(1.0, |least, (_, part)| least.min(*part));
        SetCurve {
            four_ways: std::array::from_fn(|at| points[at].0),
            eight_ways: std::array::from_fn(|at| eight * points[at].0),
        }
    })
}

/// Counts by profiles of sets, next lines, pages, turns of fetch and wide dispatch.
type AddedCounts = ([SetCurve; 4], [f64; 8], [f64; 4], f64);

fn added_counts() -> impl Strategy<Value = AddedCounts> {
    let pages = prop::array::uniform8(0.0f64..30.0);
    let turns = prop::array::uniform4(0.05f64..0.5);
    (
        prop::array::uniform4(set_curves()),
        pages,
        turns,
        0.0f64..10.0,
    )
        .prop_map(|(curves, mut pages, mut turns, wide)| {
            pages.sort_by(|x, y| y.total_cmp(x));
            turns.sort_by(|x, y| y.total_cmp(x));
            (curves, pages, turns, wide)
        })
}

prop_compose! {
    pub fn phases()(
        shares in prop::array::uniform6(0.01f64..1.0),
        a in 0.3f64..4.0,
        b in 0.0f64..0.9,
        use_distance in 1.0f64..10.0,
        branch_mpki in 0.0f64..20.0,
        exponent in 0.0f64..0.8,
        data in prop::collection::vec(0.0f64..80.0, 14),
        code in prop::collection::vec(0.0f64..20.0, 14),
        mlp in 1.0f64..10.0,
        mlp_exponent in 0.0f64..1.0,
        effectiveness in -1.0f64..1.0,
        excess in 0.0f64..2.0,
        writeback in 0.0f64..1.0,
        spread in 0.0f64..1.0,
        int_divisions in prop::option::of(divisions()),
        fp_divisions in prop::option::of(divisions()),
        stretches in prop::option::of(stretches()),
        miss_costs in prop::option::of((0.0f64..10.0, 1.0f64..30.0)),
        absorbed in prop::option::of((0.0f64..1.0, 0.0f64..1.0)),
        curves in prop::option::of(predictor_curves()),
        (chains, counts) in (prop::option::of(chains()), prop::option::of(added_counts())),
    ) -> PhaseSpec {
        let falling = |mut points: Vec<f64>| {
            points.sort_by(|x, y| y.total_cmp(x));
            points
        };
        let mut p = compute();
        p.mix = mix(shares);
        p.ilp = IlpSpec {
            a,
            b,
            use_distance,
            int_divisions,
            fp_divisions,
            miss_costs: miss_costs.map(|(near, more)| [near, near + more]),
            chains,
            ..p.ilp
        };
        p.stretches = stretches;
        p.branch.mpki = branch_mpki;
        p.branch.resolution = absorbed.map(|(absorbed, slow)| ResolutionSpec {
            cycles: 12.0,
            absorbed,
            absorbed_slow: Some(slow),
            misses: None,
        });
        p.branch.capacity_exponent = exponent;
        if let Some([tagged, tagged_shared, gshare, gshare_shared]) = curves {
            p.branch.tagged_mpki = Some(tagged);
            p.branch.tagged_shared_mpki = Some(tagged_shared);
            p.branch.gshare_mpki = Some(gshare);
            p.branch.gshare_shared_mpki = Some(gshare_shared);
        }
        p.data_mpki = falling(data);
        p.instruction_mpki = falling(code);
        p.mlp.value = mlp;
        p.mlp.window_exponent = mlp_exponent;
        p.prefetch = PrefetchSpec { effectiveness, excess };
        p.writeback_share = writeback;
        p.page_spread = spread;
        if let Some(([data, code, missed, late], pages, turns, wide)) = counts {
            p.data_conflicts = Some(data);
            p.instruction_conflicts = Some(code);
            p.next_lines = Some(NextLineSpec { missed, late });
            p.page_mpki = Some(pages);
            p.code.turns = Some(turns);
            p.ilp.wide_miss_costs = p.ilp.miss_costs.map(|costs| costs.map(|cost| cost + wide));
        }
        p
    }
}

/// Between one thread per eight CPUs and one per CPU, each at a CPU of its own.
pub fn placements() -> impl Strategy<Value = (Vec<PhaseSpec>, u64)> {
    (prop::collection::vec(phases(), 1..9), any::<u64>())
}

/// The first `n` of a shuffle of `0..pus`.
pub fn draw(pus: usize, n: usize, seed: u64) -> Vec<usize> {
    use rand::SeedableRng;
    use rand::seq::SliceRandom;
    let mut all: Vec<usize> = (0..pus).collect();
    all.shuffle(&mut rand_pcg::Pcg64Mcg::seed_from_u64(seed));
    all.truncate(n);
    all
}
