//! The levels that the threads of a run reach, laid out from a chip.

use super::cache::{SetAssociativeCache, Tlb};
use super::dram::Dram;
use super::level::{CacheLevel, NextLevel, Rank};
use super::stream::StreamTable;
use super::{Interconnect, LevelPrefetcher, MemoryHierarchy, RemoteLlcs, ThreadMemoryPath};
use crate::placement::TracePlacement;
use crate::time::{CoreClock, Femtos, from_ns};
use consort_sim::chip::{Chip, PuPlace};
use consort_sim::machine::detail::{PrefetchInto, Replacement, WritePolicy};
use consort_sim::machine::{CacheSpec, CoreSpec, PrefetchScope, Scope};
use rand::RngExt as _;
use rand_pcg::Pcg64;
use std::collections::{BTreeMap, BinaryHeap};

/// Distance of address spaces: more than a program has.
const SPACE_BYTES: u64 = 1 << 52;
/// Space of a huge page: address spaces begin at a multiple of it, drawn by seed.
const HUGE_PAGE_BYTES: u64 = 1 << 21;
/// Lines on their way to a last-level cache that says nothing.
const UNLIMITED: u32 = 4096;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LevelKey {
    Code(usize, usize),
    Data(usize, usize),
    L2(usize),
    Llc(usize),
}

struct MemoryBuilder<'a> {
    chip: &'a Chip,
    random: Pcg64,
    seed: u64,
    line_bytes: u64,
    levels: Vec<CacheLevel>,
    index: BTreeMap<LevelKey, usize>,
    tlbs: Vec<Tlb>,
    tlb_index: BTreeMap<(usize, usize), usize>,
    prefetchers: Vec<LevelPrefetcher>,
    prefetcher_index: BTreeMap<(u8, usize), usize>,
}

impl MemoryHierarchy {
    /// Builds the memory that the threads at these placements reach.
    pub(crate) fn new(chip: &Chip, placements: &[TracePlacement<'_>], seed: u64) -> Self {
        let spec = chip.spec();
        let mut build = MemoryBuilder::new(chip, seed);
        let threads: Vec<_> = placements.iter().map(|p| build.add_thread(p)).collect();
        let remote = build.find_remote_llcs(&threads);
        let nodes = chip.domains().nodes;
        // Each line that is read takes a slot of every bus.
        let slots = f64::from(spec.interconnect.buses.unwrap_or(1));
        let line_ns = slots * f64::from(spec.memory.line_bytes) / spec.interconnect.bandwidth_gb_s;
        let link = Interconnect {
            free: 0,
            line: from_ns(line_ns),
        };
        Self {
            drams: (0..nodes).map(|_| Dram::new(&spec.memory)).collect(),
            links: vec![link; chip.domains().packages],
            counts: vec![Default::default(); threads.len()],
            threads,
            levels: build.levels,
            tlbs: build.tlbs,
            prefetchers: build.prefetchers,
            events: BinaryHeap::new(),
            numbered: 0,
            line_bytes: build.line_bytes,
            answers: Vec::new(),
            remote,
        }
    }
}

impl<'a> MemoryBuilder<'a> {
    fn new(chip: &'a Chip, seed: u64) -> Self {
        Self {
            chip,
            random: Pcg64::new(u128::from(seed), 0x5eed),
            seed,
            line_bytes: u64::from(chip.spec().memory.line_bytes),
            levels: Vec::new(),
            index: BTreeMap::new(),
            tlbs: Vec::new(),
            tlb_index: BTreeMap::new(),
            prefetchers: Vec::new(),
            prefetcher_index: BTreeMap::new(),
        }
    }

    fn add_thread(&mut self, placement: &TracePlacement<'_>) -> ThreadMemoryPath {
        let pu = placement.pu.0 as usize;
        let place = self.chip.places()[pu];
        let core = self.chip.core_spec(place).clone();
        let clock = CoreClock::new(core.frequency_ghz);
        let llc = self.add_llc(place.llc);
        let before = match &core.l2 {
            Some(l2) => NextLevel::Level(self.add_l2(place.l2, l2, &core, clock, llc)),
            None => llc,
        };
        let own = |scope| if scope == Scope::Pu { pu } else { usize::MAX };
        let code = LevelKey::Code(place.core, own(core.l1i.per));
        let data = LevelKey::Data(place.core, own(core.l1d.per));
        let code = self.add_level(code, Rank::Code, &core.l1i, &core, clock, before, 1);
        let data = self.add_level(data, Rank::Data, &core.l1d, &core, clock, before, 1);
        let home = self.chip.memory_node(place.node);
        let idle = self.chip.spec().memory.latency_ns;
        ThreadMemoryPath {
            code,
            data,
            tlb: self.add_tlb((place.core, own(core.tlb.per)), &core),
            prefetcher: self.add_prefetcher(place, &core, data, before, llc),
            home,
            hop: from_ns(self.chip.memory_latency_ns(place, home) - idle),
            link: place.package,
            base: self.base(placement.space),
            cycle: clock.span(1.0),
        }
    }

    /// Start of an address space: the same for threads of one program.
    fn base(&self, space: u32) -> u64 {
        let mut random = Pcg64::new(u128::from(space), u128::from(self.seed));
        let shift: u64 = random.random_range(0..1 << 16);
        (u64::from(space) + 1) * SPACE_BYTES + shift * HUGE_PAGE_BYTES
    }

    fn add_l2(
        &mut self,
        l2: usize,
        spec: &CacheSpec,
        core: &CoreSpec,
        clock: CoreClock,
        llc: NextLevel,
    ) -> usize {
        let cores = self.count_l2_cores(l2);
        self.add_level(LevelKey::L2(l2), Rank::L2, spec, core, clock, llc, cores)
    }

    fn count_l2_cores(&self, l2: usize) -> u32 {
        let places = self.chip.places().iter().filter(|place| place.l2 == l2);
        let mut cores: Vec<_> = places.map(|place| place.core).collect();
        cores.dedup();
        cores.len() as u32
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "a level is where it is, what and for whom"
    )]
    fn add_level(
        &mut self,
        key: LevelKey,
        rank: Rank,
        spec: &CacheSpec,
        core: &CoreSpec,
        clock: CoreClock,
        next: NextLevel,
        cores: u32,
    ) -> usize {
        if let Some(&known) = self.index.get(&key) {
            return known;
        }
        let cache = self.cache(spec.size_kib, spec.ways, spec.replacement);
        let misses = spec.miss_queue.unwrap_or(core.outstanding_misses * cores);
        let reach = clock.span(spec.latency_cycles);
        let mut level = CacheLevel::new(rank, cache, next, reach, misses);
        let cycles = spec
            .bytes_per_cycle
            .map(|bytes| self.line_bytes as f64 / bytes);
        level.service = cycles.map_or(0, |cycles| clock.span(cycles));
        let at = self.add(key, level);
        if let NextLevel::Level(next) = next {
            self.levels[next].before.push(at);
        }
        at
    }

    /// The LLC of a domain, or memory where it has none.
    fn add_llc(&mut self, llc: usize) -> NextLevel {
        if let Some(&known) = self.index.get(&LevelKey::Llc(llc)) {
            return NextLevel::Level(known);
        }
        let size_kib = self.chip.llc_kib(llc);
        if size_kib == 0.0 {
            return NextLevel::Memory;
        }
        let spec = &self.chip.spec().llc;
        let cache = self.cache(size_kib, spec.ways, spec.replacement);
        let misses = spec.miss_queue.unwrap_or(UNLIMITED);
        let reach = from_ns(spec.latency_ns);
        let mut level = CacheLevel::new(Rank::Llc, cache, NextLevel::Memory, reach, misses);
        level.service = spec
            .bandwidth_gb_s
            .map_or(0, |gb_s| from_ns(self.line_bytes as f64 / gb_s));
        level.fill = spec.fill.unwrap_or_default();
        NextLevel::Level(self.add(LevelKey::Llc(llc), level))
    }

    fn add(&mut self, key: LevelKey, level: CacheLevel) -> usize {
        self.levels.push(level);
        self.index.insert(key, self.levels.len() - 1);
        self.levels.len() - 1
    }

    fn cache(
        &self,
        size_kib: f64,
        ways: u32,
        replacement: Option<Replacement>,
    ) -> SetAssociativeCache {
        let lines = (size_kib * 1024.0) as u64 / self.line_bytes;
        SetAssociativeCache::new(
            lines,
            ways,
            replacement.unwrap_or_default(),
            self.random.clone(),
        )
    }

    fn add_tlb(&mut self, key: (usize, usize), core: &CoreSpec) -> usize {
        if let Some(&known) = self.tlb_index.get(&key) {
            return known;
        }
        self.tlbs.push(Tlb::new(&core.tlb, &self.random));
        self.tlb_index.insert(key, self.tlbs.len() - 1);
        self.tlbs.len() - 1
    }

    fn add_prefetcher(
        &mut self,
        place: PuPlace,
        core: &CoreSpec,
        data: usize,
        before: NextLevel,
        llc: NextLevel,
    ) -> Option<usize> {
        let level = |next| match next {
            NextLevel::Level(level) => level,
            NextLevel::Memory => data,
        };
        let (before, llc) = (level(before), level(llc));
        let spec = core.prefetcher.as_ref()?;
        let key = match spec.per {
            PrefetchScope::Core => (0, place.core),
            PrefetchScope::L2 => (1, place.l2),
            PrefetchScope::Llc => (2, place.llc),
        };
        if let Some(&known) = self.prefetcher_index.get(&key) {
            return Some(known);
        }
        let (into, watches) = match spec.into.unwrap_or_default() {
            PrefetchInto::L1 => (data, data),
            PrefetchInto::L2 => (before, before),
            PrefetchInto::Llc => (llc, before),
        };
        self.prefetchers.push(LevelPrefetcher {
            streams: StreamTable::new(spec.streams.unwrap_or(16), spec.depth_lines),
            into,
            watches,
            most: spec.depth_lines as usize,
        });
        self.prefetcher_index
            .insert(key, self.prefetchers.len() - 1);
        Some(self.prefetchers.len() - 1)
    }

    /// LLCs of the threads' packages, where one domain keeps what another evicts.
    fn find_remote_llcs(&mut self, threads: &[ThreadMemoryPath]) -> Option<RemoteLlcs> {
        let reach: Femtos = from_ns(self.chip.spec().llc.remote_latency_ns?);
        let packages: Vec<_> = threads.iter().map(|thread| thread.link).collect();
        let all: BTreeMap<usize, usize> = self
            .chip
            .places()
            .iter()
            .map(|p| (p.llc, p.package))
            .collect();
        let near = all
            .into_iter()
            .filter(|(_, package)| packages.contains(package));
        let near = near.map(|(llc, _)| self.add_llc(llc));
        let llcs = near.filter_map(|next| match next {
            NextLevel::Level(level) => Some(level),
            NextLevel::Memory => None,
        });
        let llcs: Vec<usize> = llcs.collect();
        Some(RemoteLlcs {
            llcs,
            reach,
            turn: 0,
        })
    }
}

/// True if stores pass the L1D of a core.
pub(crate) fn passes_stores(core: &CoreSpec) -> bool {
    core.l1d.write.unwrap_or_default() == WritePolicy::Through
}
