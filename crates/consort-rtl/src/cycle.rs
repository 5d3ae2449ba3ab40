//! Inputs and outputs of a chip's units.

use crate::bus::{bytes, put_port, take_port};
use crate::unit_parameters::UnitParameters;

/// The privilege level of user code.
pub(crate) const USER: u8 = 3;

/// Inputs of one cycle, and the number of cycles in which nothing may follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CycleInputs {
    /// Cycles at most, this one included.
    pub(crate) most_cycles: u32,
    /// True where the quantum ends.
    pub(crate) tick: bool,
    /// Privilege level by core.
    pub(crate) cpl: Vec<u8>,
    /// Cores that have nothing to run.
    pub(crate) idle: Vec<bool>,
    /// Instructions committed by core.
    pub(crate) inst: Vec<u32>,
    /// Ticks of the timer, ns.
    pub(crate) time: u32,
    /// Call-downs by core: false where the thread stalls, true where it goes on.
    pub(crate) call: Vec<Option<bool>>,
    /// Cores whose thread is switched out.
    pub(crate) save: Vec<bool>,
    /// Threads that are switched in by core, with their sums.
    pub(crate) restore: Vec<Option<(u32, u64)>>,
    /// Groups whose exchange is done.
    pub(crate) ack: Vec<bool>,
}

impl CycleInputs {
    /// A cycle in which nothing is asked.
    pub(crate) fn quiet_cycle(setting: &UnitParameters) -> Self {
        let n = setting.cores;
        Self {
            most_cycles: 1,
            tick: false,
            cpl: vec![USER; n],
            idle: vec![false; n],
            inst: vec![0; n],
            time: 0,
            call: vec![None; n],
            save: vec![false; n],
            restore: vec![None; n],
            ack: vec![false; setting.groups],
        }
    }

    pub(crate) fn in_kernel(&self, core: usize) -> bool {
        self.cpl[core] != USER
    }

    pub(crate) fn to_frame(&self) -> Vec<u8> {
        let mut frame = self.most_cycles.to_le_bytes().to_vec();
        let flag = |on: bool| u64::from(on);
        put_port(&mut frame, 1, [flag(self.tick)].into_iter());
        put_port(&mut frame, 2, self.cpl.iter().map(|&c| u64::from(c)));
        put_port(&mut frame, 1, self.idle.iter().map(|&on| flag(on)));
        put_port(&mut frame, 32, self.inst.iter().map(|&i| u64::from(i)));
        put_port(&mut frame, 32, [u64::from(self.time)].into_iter());
        let (call, restore) = (&self.call, &self.restore);
        put_port(&mut frame, 1, call.iter().map(|c| flag(c.is_some())));
        put_port(&mut frame, 1, call.iter().map(|c| flag(*c == Some(true))));
        put_port(&mut frame, 1, self.save.iter().map(|&on| flag(on)));
        put_port(&mut frame, 1, restore.iter().map(|r| flag(r.is_some())));
        put_port(
            &mut frame,
            64,
            restore.iter().map(|r| r.map_or(0, |(_, sum)| sum)),
        );
        put_port(&mut frame, 1, self.ack.iter().map(|&on| flag(on)));
        frame
    }
}

/// Outputs after the last cycle of a request, by group but for `ready` and the lines of cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CycleOutputs {
    /// Cycles that went by.
    pub(crate) cycles: u32,
    /// True where the quantum ended, for the counters, in the last of the cycles.
    pub(crate) taken: Vec<bool>,
    /// True where an exchange was decided in the last of the cycles.
    pub(crate) decided: Vec<bool>,
    /// Cores whose call-downs were heard in the last of the cycles.
    pub(crate) ready: Vec<bool>,
    /// Cores whose call-downs are heard in the next cycle.
    pub(crate) ready_next: Vec<bool>,
    /// Exchanges under way after the last of the cycles: the small and the large core's.
    pub(crate) asks: Vec<Option<(usize, usize)>>,
    /// Long-term sums by core.
    pub(crate) sums: Vec<u64>,
    /// Cores that are to save their thread's registers.
    pub(crate) saves: Vec<bool>,
    /// Cores that are to load the other's.
    pub(crate) loads: Vec<bool>,
}

impl CycleOutputs {
    fn id_bits(setting: &UnitParameters) -> usize {
        (setting.cores - 1).ilog2() as usize + 1
    }

    /// Length of a frame.
    pub(crate) fn bytes(setting: &UnitParameters) -> usize {
        let (n, g) = (setting.cores, setting.groups);
        let ids = bytes(g * Self::id_bits(setting));
        4 + 3 * bytes(g) + 4 * bytes(n) + 2 * ids + bytes(64 * n)
    }

    pub(crate) fn read(setting: &UnitParameters, frame: &[u8]) -> Self {
        let (n, g) = (setting.cores, setting.groups);
        let mut rest = frame;
        let cycles = take_port(&mut rest, 32, 1)[0] as u32;
        let mut flags = |count| -> Vec<bool> {
            let bits = take_port(&mut rest, 1, count);
            bits.iter().map(|&bit| bit == 1).collect()
        };
        let (taken, decided, ready, ready_next) = (flags(g), flags(g), flags(n), flags(n));
        let requested = flags(g);
        let small = take_port(&mut rest, Self::id_bits(setting), g);
        let large = take_port(&mut rest, Self::id_bits(setting), g);
        let ask = |(i, &on): (usize, &bool)| on.then_some((small[i] as usize, large[i] as usize));
        let sums = take_port(&mut rest, 64, n);
        let mut flags = |count| -> Vec<bool> {
            let bits = take_port(&mut rest, 1, count);
            bits.iter().map(|&bit| bit == 1).collect()
        };
        Self {
            cycles,
            taken,
            decided,
            ready,
            ready_next,
            asks: requested.iter().enumerate().map(ask).collect(),
            sums,
            saves: flags(n),
            loads: flags(n),
        }
    }
}
