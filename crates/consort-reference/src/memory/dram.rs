//! Memory of a node: channels with a bus each, banks, open rows.

use super::level::LineRequest;
use crate::time::{Femtos, from_ns};
use consort_sim::machine::MemorySpec;
use consort_sim::machine::detail::DramSpec;

/// Writes that wait before they go before reads.
const WRITES_HELD: usize = 32;

/// Timing of memory whose file says nothing of rows: they make no difference.
const PLAIN: DramSpec = DramSpec {
    banks: 16,
    row_kib: 8.0,
    row_hit_saves_ns: 0.0,
    bank_cycle_ns: 0.0,
};

/// The controllers of a node.
#[derive(Debug)]
pub(crate) struct Dram {
    channels: Vec<Channel>,
    lines_per_row: u64,
    timing: DramTiming,
}

#[derive(Clone, Copy, Debug)]
struct DramTiming {
    /// Of an access that must open its row.
    latency: Femtos,
    /// Time that an open row saves.
    saved: Femtos,
    /// Of a bank between two rows.
    bank: Femtos,
    /// Of the bus per line.
    line: Femtos,
}

#[derive(Clone, Debug, Default)]
struct Channel {
    free: Femtos,
    reads: Vec<DramRequest>,
    writes: Vec<DramRequest>,
    banks: Vec<Bank>,
    /// True where an event is due that looks at pending requests.
    awake: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bank {
    row: Option<u64>,
    free: Femtos,
}

#[derive(Clone, Copy, Debug)]
struct DramRequest {
    request: LineRequest,
    bank: usize,
    row: u64,
}

/// Outcome of a look at a channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelService {
    /// The request whose data is there, and when.
    pub(crate) answered: Option<(LineRequest, Femtos)>,
    /// Time of the next look.
    pub(crate) again: Option<Femtos>,
}

impl Dram {
    /// The memory of a node; `hop` is what its distance from the cores that use it adds.
    pub(crate) fn new(spec: &MemorySpec) -> Self {
        let dram = spec.dram.unwrap_or(PLAIN);
        let line_ns = f64::from(spec.line_bytes) / spec.bandwidth_gb_s;
        let channel = Channel {
            banks: vec![Bank::default(); dram.banks.max(1) as usize],
            ..Channel::default()
        };
        Self {
            channels: vec![channel; spec.controllers_per_node.max(1) as usize],
            lines_per_row: ((dram.row_kib * 1024.0) as u64 / u64::from(spec.line_bytes)).max(1),
            timing: DramTiming {
                latency: from_ns(spec.latency_ns),
                saved: from_ns(dram.row_hit_saves_ns),
                bank: from_ns(dram.bank_cycle_ns),
                line: from_ns(line_ns),
            },
        }
    }

    /// Takes a request. Returns the channel to look at, if no event is due for it.
    pub(crate) fn take(&mut self, request: LineRequest) -> Option<usize> {
        let (index, pending) = self.locate(request);
        let channel = &mut self.channels[index];
        if request.write_back {
            channel.writes.push(pending);
        } else {
            channel.reads.push(pending);
        }
        let sleeping = !channel.awake;
        channel.awake = true;
        sleeping.then_some(index)
    }

    /// Looks at a channel: serves what comes next, if the bus and a bank are free.
    pub(crate) fn serve(&mut self, channel: usize, now: Femtos) -> ChannelService {
        let served = self.channels[channel].serve(now, self.timing);
        self.channels[channel].awake = served.again.is_some();
        served
    }

    /// Lines lie in channels in turn; of those in one, a row's worth in one bank.
    fn locate(&self, request: LineRequest) -> (usize, DramRequest) {
        let channels = self.channels.len() as u64;
        let (channel, within) = (request.line % channels, request.line / channels);
        let row = within / self.lines_per_row;
        let banks = self.channels[0].banks.len() as u64;
        // Rows that are a power of two apart go to different banks.
        let bank = (row ^ (row / banks) ^ (row / banks / banks)) % banks;
        let pending = DramRequest {
            request,
            bank: bank as usize,
            row,
        };
        (channel as usize, pending)
    }
}

impl Channel {
    fn serve(&mut self, now: Femtos, timing: DramTiming) -> ChannelService {
        if self.free > now {
            return self.channel_service(None);
        }
        let first = self.writes.len() >= WRITES_HELD;
        let turn = [first, !first];
        let next = turn.map(|write| self.pick_next(write, now).map(|at| (write, at)));
        let Some((write, at)) = next.into_iter().flatten().next() else {
            return self.channel_service(None);
        };
        let queue = if write {
            &mut self.writes
        } else {
            &mut self.reads
        };
        let pending = queue.remove(at);
        let bank = &mut self.banks[pending.bank];
        let hit = bank.row == Some(pending.row);
        if !hit {
            *bank = Bank {
                row: Some(pending.row),
                free: now + timing.bank,
            };
        }
        self.free = now + timing.line;
        let saved = if hit { timing.saved } else { 0 };
        let data = now + timing.latency.saturating_sub(saved).max(timing.line);
        self.channel_service((!write).then_some((pending.request, data)))
    }

    /// Open rows first, then the oldest (FR-FCFS: Rixner et al., ISCA 2000).
    fn pick_next(&self, write: bool, now: Femtos) -> Option<usize> {
        let queue = if write { &self.writes } else { &self.reads };
        let open = |p: &DramRequest| self.banks[p.bank].row == Some(p.row);
        let idle = |p: &DramRequest| self.banks[p.bank].free <= now;
        let hit = queue.iter().position(open);
        hit.or_else(|| queue.iter().position(idle))
    }

    fn channel_service(&self, answered: Option<(LineRequest, Femtos)>) -> ChannelService {
        let pending = self.reads.iter().chain(&self.writes);
        let ready = pending.map(|p| {
            let bank = self.banks[p.bank];
            let open = bank.row == Some(p.row);
            if open {
                self.free
            } else {
                bank.free.max(self.free)
            }
        });
        ChannelService {
            answered,
            again: ready.min(),
        }
    }
}
