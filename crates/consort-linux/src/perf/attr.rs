//! The attribute blocks of the sampling tier.
//!
//! Samples come from `PERF_COUNT_SW_CPU_CLOCK`: a timer that runs while the
//! thread is on a PU, so a sample every so many nanoseconds of CPU time. It
//! needs no PMU and, without the kernel's side, no privilege at paranoid 2.

use perf_event_open_sys::bindings as b;

/// Records that an event writes into its ring besides samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sideband {
    /// Samples only.
    None,
    /// Thread starts and ends, names, executable mappings.
    Tasks,
}

/// The threads that an event follows, and the moment from which it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FollowMode {
    /// The thread alone, at once.
    Thread,
    /// The thread and all that it will ever start, at once.
    Offspring,
    /// The thread and all that it will ever start, from its next `exec` on.
    OffspringFromExec,
    /// Whatever runs on the PU, from the moment on that the event is enabled.
    Everyone,
}

/// The fields that every sample carries, in the order in which the kernel writes them.
pub(crate) const SAMPLE_FIELDS: u64 =
    (b::PERF_SAMPLE_IP | b::PERF_SAMPLE_TID | b::PERF_SAMPLE_TIME | b::PERF_SAMPLE_CPU) as u64;

/// Registers in every sample, by the kernel's bits (`asm/perf_regs.h`). On `x86_64` they are the
/// general ones, rax to rsp and r8 to r15, from which addresses are computed. Elsewhere it is the
/// instruction pointer alone: with any register the kernel writes the mode that the thread ran in.
const REGISTERS: u64 = if cfg!(target_arch = "x86_64") {
    0xff_00ff
} else if cfg!(target_arch = "x86") {
    1 << 8
} else if cfg!(target_arch = "aarch64") {
    1 << 32
} else {
    0
};

/// A CPU-clock sampler of user-mode instruction pointers at `rate_hz` samples per second of CPU
/// time. The reader is woken when `wakeup_bytes` are waiting in the ring.
pub(crate) fn cpu_clock(
    rate_hz: u64,
    follow: FollowMode,
    sideband: Sideband,
    wakeup_bytes: u32,
) -> b::perf_event_attr {
    let mut attr = b::perf_event_attr {
        type_: b::PERF_TYPE_SOFTWARE,
        config: u64::from(b::PERF_COUNT_SW_CPU_CLOCK),
        sample_type: match REGISTERS {
            0 => SAMPLE_FIELDS,
            _ => SAMPLE_FIELDS | u64::from(b::PERF_SAMPLE_REGS_USER),
        },
        sample_regs_user: REGISTERS,
        clockid: nix::libc::CLOCK_MONOTONIC,
        ..Default::default()
    };
    attr.__bindgen_anon_1.sample_freq = rate_hz.max(1);
    attr.__bindgen_anon_2.wakeup_watermark = wakeup_bytes;
    attr.set_freq(1);
    attr.set_watermark(1);
    attr.set_use_clockid(1);
    attr.set_sample_id_all(1);
    // With the kernel's side, `perf_event_paranoid` 2 would refuse the event.
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    set_follow(&mut attr, follow);
    if sideband == Sideband::Tasks {
        attr.set_task(1);
        attr.set_comm(1);
        attr.set_comm_exec(1);
        attr.set_mmap(1);
        attr.set_mmap2(1);
    }
    attr
}

fn set_follow(attr: &mut b::perf_event_attr, follow: FollowMode) {
    let from_exec = follow == FollowMode::OffspringFromExec;
    let everyone = follow == FollowMode::Everyone;
    let inherits = matches!(
        follow,
        FollowMode::Offspring | FollowMode::OffspringFromExec
    );
    attr.set_inherit(u64::from(inherits));
    attr.set_disabled(u64::from(from_exec || everyone));
    attr.set_enable_on_exec(u64::from(from_exec));
    attr.set_exclude_idle(u64::from(everyone));
}
