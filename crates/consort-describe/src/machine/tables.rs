//! Complete tables of a core's structures: what its file says, and defaults for the rest.
//!
//! Defaults follow from keys that every file has, so that a file without the optional keys
//! describes a plausible core. They are proportions of the window that chips of many makers
//! share, not figures of a chip.

use super::detail::{
    BufferSharing, BufferSpec, DispatchGroupSpec, FetchPolicy, FusionPair, OpCacheSpec, PortScope,
    PortSpec, QueueSpec, RegistersSpec, WorkKind, WorkSpec,
};
use super::{CoreSpec, PipelineSpec, RobSharing, Scope, UnitSpec};

/// Window of a core without a reorder buffer: beyond what anything in flight reaches.
const UNLIMITED: u32 = 512;
/// Cycles of an integer multiplication and division where no file says them (common to the
/// cores of Fog's instruction tables).
const MULTIPLY_CYCLES: u32 = 3;
const DIVIDE_CYCLES: u32 = 24;
/// Floating-point division over addition, in latency and in occupancy of its port.
const FP_DIVIDE_LATENCIES: u32 = 4;
const FP_DIVIDE_INTERVAL: u32 = 8;

/// Structures of a core, complete.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreTables {
    /// Window from dispatch to commit, operations or, where there is `group`, groups.
    pub window: BufferSpec,
    /// Groups, where operations are dispatched and committed in groups.
    pub group: Option<DispatchGroupSpec>,
    /// Issue queues.
    pub issue: Vec<QueueSpec>,
    /// Loads from dispatch to commit.
    pub load_queue: BufferSpec,
    /// Stores from dispatch until they are written.
    pub store_queue: BufferSpec,
    /// Integer registers.
    pub int_registers: RegistersSpec,
    /// Floating-point and vector registers.
    pub vector_registers: RegistersSpec,
    /// Share of each shared buffer, 0 to 1, that a thread may hold while others run.
    pub balance_share: f64,
    /// Lines from behind the L2 that a thread may wait for without being held back while others
    /// run.
    pub balance_misses: Option<u32>,
    /// Threads on the core from which on each half serves half of them.
    pub halves_from: u32,
    /// Issue ports.
    pub ports: Vec<PortSpec>,
    /// Latency and interval by [`WorkKind::index`].
    pub times: [WorkSpec; WorkKind::COUNT],
    /// Front end.
    pub front: FrontTables,
}

/// Front end of a core, complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontTables {
    /// Bytes of aligned code per cycle.
    pub fetch_bytes: u32,
    /// Operations fetched per cycle.
    pub fetch_width: u32,
    /// Policy for choosing the thread that fetches next.
    pub fetch_policy: FetchPolicy,
    /// Threads that can fetch in one cycle.
    pub fetch_threads: u32,
    /// Operations that wait for dispatch, per thread.
    pub buffer_ops: u32,
    /// Threads that can dispatch in one cycle.
    pub dispatch_threads: u32,
    /// True if a thread's operations of a cycle are dispatched together or not at all.
    pub whole_groups: bool,
    /// Operations dispatched per cycle.
    pub dispatch_width: u32,
    /// Operations committed per cycle.
    pub commit_width: u32,
    /// Cycles from a mispredicted branch's result to what follows it in execution.
    pub refill_cycles: u32,
    /// Of these, cycles from dispatch to issue.
    pub issue_delay: u32,
    /// Cache of decoded instructions.
    pub op_cache: Option<OpCacheSpec>,
    /// True for pairs of operations that count as one, by [`FusionPair::index`].
    pub fuses: [bool; FusionPair::ALL.len()],
}

impl CoreTables {
    /// The tables of a core.
    pub fn new(core: &CoreSpec) -> Self {
        let window = window(core);
        let buffers = core.buffers.clone().unwrap_or_default();
        let rob = core.rob_entries.unwrap_or(UNLIMITED);
        let part = |share: u32| BufferSpec {
            entries: (rob / share).max(8),
            sharing: window.sharing,
            reserve: 0,
        };
        let enough = RegistersSpec {
            entries: rob,
            architected: 0,
            sharing: BufferSharing::Private,
        };
        Self {
            group: buffers.group,
            issue: with_usual(issue(buffers.issue, part(3)), |queue| &mut queue.holds),
            load_queue: buffers.load_queue.unwrap_or(part(3)),
            store_queue: buffers.store_queue.unwrap_or(part(4)),
            int_registers: buffers.int_registers.unwrap_or(enough),
            vector_registers: buffers.vector_registers.unwrap_or(enough),
            balance_share: buffers
                .balance_percent
                .map_or(1.0, |p| f64::from(p) / 100.0),
            balance_misses: buffers.balance_misses,
            halves_from: core.halves_from_ways.unwrap_or(2),
            ports: with_usual(ports(core), |port| &mut port.takes),
            times: times(core),
            front: front(core),
            window: buffers.group.map_or(window, |group| BufferSpec {
                entries: group.entries,
                ..window
            }),
        }
    }

    /// The tables with `threads` threads on the core: halves that do not bind yet are shared.
    pub fn with_threads(mut self, threads: u32) -> Self {
        if threads >= self.halves_from {
            return self;
        }
        let registers = [&mut self.int_registers, &mut self.vector_registers];
        let queues = [
            &mut self.window,
            &mut self.load_queue,
            &mut self.store_queue,
        ];
        let sharings = self.issue.iter_mut().map(|queue| &mut queue.sharing);
        let sharings = sharings.chain(registers.map(|file| &mut file.sharing));
        let sharings = sharings.chain(queues.map(|queue| &mut queue.sharing));
        let cache = self.front.op_cache.iter_mut();
        for sharing in sharings.chain(cache.map(|cache| &mut cache.sharing)) {
            *sharing = sharing.unless_halves();
        }
        for port in &mut self.ports {
            port.per = port.per.unless_halves();
        }
        self
    }
}

impl BufferSharing {
    /// Returns the sharing while halves do not bind.
    pub fn unless_halves(self) -> Self {
        match self {
            Self::Halved => Self::Shared,
            other => other,
        }
    }
}

impl PortScope {
    fn unless_halves(self) -> Self {
        match self {
            Self::Half => Self::Core,
            other => other,
        }
    }
}

impl CoreTables {
    /// The reorder buffer or group table if a thread dispatches groups of `width` operations: an
    /// entry of the table holds as many groups of one thread as fit its slots.
    pub fn window_in_mode(&self, width: u32) -> BufferSpec {
        let fit = self.group.map_or(1, |group| group.slots / width.max(1));
        BufferSpec {
            entries: self.window.entries.saturating_mul(fit.max(1)),
            ..self.window
        }
    }
}

fn window(core: &CoreSpec) -> BufferSpec {
    let sharing = match core.rob_sharing {
        RobSharing::Shared => BufferSharing::Shared,
        RobSharing::Partitioned => BufferSharing::Partitioned,
        RobSharing::Halved => BufferSharing::Halved,
        RobSharing::Private => BufferSharing::Private,
    };
    let entries = core.rob_entries.unwrap_or(UNLIMITED);
    let sharing = match core.pipeline {
        PipelineSpec::OutOfOrder => sharing,
        PipelineSpec::InOrder => BufferSharing::Private,
    };
    BufferSpec {
        entries,
        sharing,
        reserve: 0,
    }
}

fn issue(queues: Vec<QueueSpec>, one: BufferSpec) -> Vec<QueueSpec> {
    if !queues.is_empty() {
        return queues;
    }
    vec![QueueSpec {
        holds: WorkKind::ALL[..WorkKind::StoreData.index()].to_vec(),
        entries: one.entries,
        sharing: one.sharing,
        reserve: one.reserve,
    }]
}

/// The queues or ports with the work added that none of them names and they treat as its usual
/// work.
fn with_usual<T>(mut places: Vec<T>, works: fn(&mut T) -> &mut Vec<WorkKind>) -> Vec<T> {
    for work in WorkKind::ALL {
        let is_named = places.iter_mut().any(|place| works(place).contains(&work));
        if !is_named && work != work.usual() {
            let usual = places.iter_mut().map(works);
            let usual = usual.filter(|works| works.contains(&work.usual()));
            usual.for_each(|works| works.push(work));
        }
    }
    places
}

/// Ports as the file lists them, or one per functional unit.
fn ports(core: &CoreSpec) -> Vec<PortSpec> {
    if !core.ports.is_empty() {
        return core.ports.clone();
    }
    let units = &core.units;
    let mut int = vec![WorkKind::Integer, WorkKind::Multiply, WorkKind::Divide];
    let mut fp = vec![
        WorkKind::FpAdd,
        WorkKind::FpMultiply,
        WorkKind::FpFused,
        WorkKind::FpDivide,
        WorkKind::VectorMove,
    ];
    let mut ports = vec![port(
        &units.load_store,
        vec![WorkKind::Load, WorkKind::Store],
    )];
    match &units.branch {
        Some(branch) => ports.push(port(branch, vec![WorkKind::Branch])),
        None => int.push(WorkKind::Branch),
    }
    match &units.vector {
        Some(vector) => ports.push(port(vector, vec![WorkKind::Vector])),
        None => fp.push(WorkKind::Vector),
    }
    ports.extend([port(&units.int, int), port(&units.fp, fp)]);
    ports
}

fn port(unit: &UnitSpec, takes: Vec<WorkKind>) -> PortSpec {
    PortSpec {
        takes,
        count: unit.count,
        per: match unit.per {
            Scope::Pu => PortScope::Pu,
            Scope::Core => PortScope::Core,
        },
    }
}

fn times(core: &CoreSpec) -> [WorkSpec; WorkKind::COUNT] {
    WorkKind::ALL.map(|work| {
        let said = |work| core.operations.get(&work).copied();
        let usual = || said(work.usual()).unwrap_or_else(|| default_time(core, work.usual()));
        said(work).unwrap_or_else(usual)
    })
}

fn default_time(core: &CoreSpec, work: WorkKind) -> WorkSpec {
    let units = &core.units;
    let unit = match work {
        WorkKind::Integer | WorkKind::Multiply | WorkKind::Divide | WorkKind::Other => &units.int,
        WorkKind::Branch => units.branch.as_ref().unwrap_or(&units.int),
        WorkKind::Vector | WorkKind::VectorMove => units.vector.as_ref().unwrap_or(&units.fp),
        WorkKind::FpAdd | WorkKind::FpMultiply | WorkKind::FpFused | WorkKind::FpDivide => {
            &units.fp
        }
        _ => &units.load_store,
    };
    let latency = unit.latency_cycles.round() as u32;
    let interval = (unit.interval_cycles.round() as u32).max(1);
    let (latency_cycles, interval_cycles) = match work {
        WorkKind::Multiply => (latency.max(MULTIPLY_CYCLES), interval),
        WorkKind::Divide => (latency.max(DIVIDE_CYCLES), interval.max(DIVIDE_CYCLES)),
        WorkKind::FpDivide => (
            latency * FP_DIVIDE_LATENCIES,
            interval.max(FP_DIVIDE_INTERVAL),
        ),
        WorkKind::Load => (core.l1d.latency_cycles.round() as u32, interval),
        WorkKind::Store | WorkKind::StoreData | WorkKind::VectorLoad | WorkKind::VectorStore => {
            (1, interval)
        }
        _ => (latency, interval),
    };
    WorkSpec {
        latency_cycles,
        interval_cycles,
    }
}

fn front(core: &CoreSpec) -> FrontTables {
    let said = core.front_end.clone().unwrap_or_default();
    let width = (core.dispatch_width.round() as u32).max(1);
    let refill_cycles = (core.pipeline_depth_cycles.round() as u32).max(1);
    let buffers = core.buffers.as_ref();
    let delay = buffers.and_then(|buffers| buffers.issue_delay_cycles);
    let bytes = (4 * width).next_power_of_two().max(16);
    FrontTables {
        fetch_bytes: said.fetch_bytes.unwrap_or(bytes),
        fetch_width: said.fetch_width.unwrap_or(width),
        fetch_policy: said.fetch_policy,
        fetch_threads: said.fetch_threads.unwrap_or(1),
        buffer_ops: said.buffer_ops.unwrap_or(4 * width),
        dispatch_threads: said.dispatch_threads.unwrap_or(u32::MAX),
        whole_groups: said.whole_groups || buffers.is_some_and(|buffers| buffers.group.is_some()),
        dispatch_width: width,
        commit_width: said.commit_width.unwrap_or(width),
        refill_cycles,
        issue_delay: delay.unwrap_or(1).clamp(1, refill_cycles),
        op_cache: said.op_cache,
        fuses: FusionPair::ALL.map(|pair| said.fusion.contains(&pair)),
    }
}
