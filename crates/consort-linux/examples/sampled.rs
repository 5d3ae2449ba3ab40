//! Programs to be sampled, for the tests of the sampling tier.
//!
//! `sampled KIND MILLISECONDS`, of CPU time: a loop of known instructions (`fp`, `int`), both
//! in named threads (`both`), a program that executes another (`exec`), code
//! made and remade at run time (`jit`), the vDSO (`clock`), short threads
//! (`churn`), short processes (`forks`), or a thread that sleeps (`sleep`).

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect};
use nix::time::{ClockId, clock_gettime};
use std::arch::asm;
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::ptr::NonNull;
use std::thread;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let millis = args.get(2).and_then(|text| text.parse().ok());
    let (Some(kind), Some(millis)) = (args.get(1), millis) else {
        eprintln!("usage: sampled KIND MILLISECONDS");
        return ExitCode::from(2);
    };
    run(kind, Duration::from_millis(millis))
}

fn run(kind: &str, time: Duration) -> ExitCode {
    match kind {
        "fp" => repeat(time, fp),
        "int" => repeat(time, int),
        "both" => both(time),
        "exec" => return exec(time),
        "jit" => jit(time),
        "clock" => while_clock(time),
        "churn" => churn(time),
        "forks" => forks(time),
        "sleep" => thread::sleep(time),
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

/// Works for this much CPU time of the thread, however busy the host is.
fn repeat(time: Duration, mut work: impl FnMut()) {
    let start = cpu_time();
    while cpu_time() - start < time {
        work();
    }
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    now.expect("every thread has a clock").into()
}

/// Iterations between two looks at the clock; they take some milliseconds.
const ITERATIONS: u64 = 1_000_000;

/// Eight floating-point additions, a decrement and a branch per iteration.
#[cfg(target_arch = "x86_64")]
fn fp() {
    // SAFETY: only the named registers are touched.
    unsafe {
        asm!(
            "2:",
            "addsd xmm0, xmm4", "addsd xmm1, xmm4", "addsd xmm2, xmm4", "addsd xmm3, xmm4",
            "addsd xmm0, xmm4", "addsd xmm1, xmm4", "addsd xmm2, xmm4", "addsd xmm3, xmm4",
            "dec {n}", "jnz 2b",
            n = inout(reg) ITERATIONS => _, out("xmm0") _, out("xmm1") _, out("xmm2") _,
            out("xmm3") _, in("xmm4") 0.0f64, options(nomem, nostack)
        );
    }
}

/// Eight integer additions, a decrement and a branch per iteration.
#[cfg(target_arch = "x86_64")]
fn int() {
    // SAFETY: only the named registers are touched.
    unsafe {
        asm!(
            "2:",
            "add {a}, 3", "add {b}, 5", "add {c}, 7", "add {d}, 9",
            "add {a}, 3", "add {b}, 5", "add {c}, 7", "add {d}, 9",
            "dec {n}", "jnz 2b",
            n = inout(reg) ITERATIONS => _, a = out(reg) _, b = out(reg) _, c = out(reg) _,
            d = out(reg) _, options(nomem, nostack)
        );
    }
}

/// Eight floating-point additions, a decrement and a branch per iteration.
#[cfg(target_arch = "aarch64")]
fn fp() {
    // SAFETY: only the named registers are touched.
    unsafe {
        asm!(
            "2:",
            "fadd d0, d0, d4", "fadd d1, d1, d4", "fadd d2, d2, d4", "fadd d3, d3, d4",
            "fadd d0, d0, d4", "fadd d1, d1, d4", "fadd d2, d2, d4", "fadd d3, d3, d4",
            "subs {n}, {n}, 1", "b.ne 2b",
            n = inout(reg) ITERATIONS => _, out("v0") _, out("v1") _, out("v2") _, out("v3") _,
            in("d4") 0.0f64, options(nomem, nostack)
        );
    }
}

/// Eight integer additions, a decrement and a branch per iteration.
#[cfg(target_arch = "aarch64")]
fn int() {
    // SAFETY: only the named registers are touched.
    unsafe {
        asm!(
            "2:",
            "add {a}, {a}, 3", "add {b}, {b}, 5", "add {c}, {c}, 7", "add {d}, {d}, 9",
            "add {a}, {a}, 3", "add {b}, {b}, 5", "add {c}, {c}, 7", "add {d}, {d}, 9",
            "subs {n}, {n}, 1", "b.ne 2b",
            n = inout(reg) ITERATIONS => _, a = out(reg) _, b = out(reg) _, c = out(reg) _,
            d = out(reg) _, options(nomem, nostack)
        );
    }
}

fn both(time: Duration) {
    let spawn = |name: &str, work: fn()| {
        let thread = thread::Builder::new().name(name.into());
        thread.spawn(move || repeat(time, work)).expect("a thread")
    };
    let threads = [spawn("floating (1) x", fp), spawn("integer", int)];
    threads.into_iter().for_each(|t| t.join().expect("joined"));
}

/// Integer work for half of the time, then floating point in another program.
fn exec(time: Duration) -> ExitCode {
    repeat(time / 2, int);
    let rest = (time / 2).as_millis().to_string();
    let me = std::env::current_exe().expect("own path");
    eprintln!("{}", Command::new(me).args(["fp", &rest]).exec());
    ExitCode::FAILURE
}

/// Reads the clock through the vDSO, thousands of times between the checks of the loop around it.
fn while_clock(time: Duration) {
    repeat(time, || {
        for _ in 0..10_000 {
            std::hint::black_box(Instant::now());
        }
    });
}

/// Starts and joins two threads per millisecond that do a little work each.
fn churn(time: Duration) {
    let start = Instant::now();
    let threads = 2 * time.as_millis();
    for due in (0..threads).map(|n| Duration::from_micros(500 * n as u64)) {
        thread::sleep(due.saturating_sub(start.elapsed()));
        thread::spawn(|| std::hint::black_box(7))
            .join()
            .expect("joined");
    }
    println!("{threads}");
}

/// Runs the floating-point loop in one child after the other, 20 ms each.
fn forks(time: Duration) {
    let me = std::env::current_exe().expect("own path");
    for _ in 0..time.as_millis() / 20 {
        let child = Command::new(&me).args(["fp", "20"]).status();
        assert!(child.expect("a child").success());
    }
}

/// Runs generated code that adds floating-point numbers for half of the time,
/// then rewrites it in place to add integers.
fn jit(time: Duration) {
    let page = Page::new();
    for code in [FP, INT] {
        page.write(code);
        repeat(time / 2, || page.call());
    }
}

/// mov ecx, 100000; 4 x addsd; dec ecx; jnz; ret.
#[cfg(target_arch = "x86_64")]
const FP: &[u8] = &[
    0xb9, 0xa0, 0x86, 0x01, 0x00, 0xf2, 0x0f, 0x58, 0xc4, 0xf2, 0x0f, 0x58, 0xcc, 0xf2, 0x0f, 0x58,
    0xd4, 0xf2, 0x0f, 0x58, 0xdc, 0xff, 0xc9, 0x75, 0xec, 0xc3,
];
/// mov ecx, 100000; 4 x add eax, 1 in a long form; dec ecx; jnz; ret.
#[cfg(target_arch = "x86_64")]
const INT: &[u8] = &[
    0xb9, 0xa0, 0x86, 0x01, 0x00, 0x66, 0x83, 0xc0, 0x01, 0x66, 0x83, 0xc0, 0x01, 0x66, 0x83, 0xc0,
    0x01, 0x66, 0x83, 0xc0, 0x01, 0xff, 0xc9, 0x75, 0xec, 0xc3,
];

/// mov w1, #0x8000; 4 x fadd d0, d0, d1; subs w1, w1, #1; b.ne; ret.
#[cfg(target_arch = "aarch64")]
const FP: &[u8] = &[
    0x01, 0x00, 0x90, 0x52, 0x00, 0x28, 0x61, 0x1e, 0x00, 0x28, 0x61, 0x1e, 0x00, 0x28, 0x61, 0x1e,
    0x00, 0x28, 0x61, 0x1e, 0x21, 0x04, 0x00, 0x71, 0x61, 0xff, 0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6,
];
/// mov w1, #0x8000; 4 x add w0, w0, #1; subs w1, w1, #1; b.ne; ret.
#[cfg(target_arch = "aarch64")]
const INT: &[u8] = &[
    0x01, 0x00, 0x90, 0x52, 0x00, 0x04, 0x00, 0x11, 0x00, 0x04, 0x00, 0x11, 0x00, 0x04, 0x00, 0x11,
    0x00, 0x04, 0x00, 0x11, 0x21, 0x04, 0x00, 0x71, 0x61, 0xff, 0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6,
];

const PAGE_BYTES: usize = 65_536;

/// A page that is either writable or executable, never both.
struct Page(NonNull<c_void>);

impl Page {
    fn new() -> Self {
        let len = NonZeroUsize::new(PAGE_BYTES).expect("not zero");
        let prot = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choosing touches nothing of ours.
        let page = unsafe { mmap_anonymous(None, len, prot, MapFlags::MAP_PRIVATE) };
        Self(page.expect("a page"))
    }

    fn write(&self, code: &[u8]) {
        assert!(code.len() <= PAGE_BYTES);
        self.protect(ProtFlags::PROT_READ | ProtFlags::PROT_WRITE);
        // SAFETY: the page is ours, writable now, and long enough.
        unsafe { self.0.as_ptr().copy_from(code.as_ptr().cast(), code.len()) };
        #[cfg(target_arch = "aarch64")]
        self.synchronise();
        self.protect(ProtFlags::PROT_READ | ProtFlags::PROT_EXEC);
    }

    /// Makes the new code visible to instruction fetches (Arm Architecture Reference Manual,
    /// "Concurrent modification and execution of instructions").
    #[cfg(target_arch = "aarch64")]
    fn synchronise(&self) {
        // SAFETY: cache maintenance of our own page, whose code fits into one line.
        unsafe {
            std::arch::asm!(
                "dc cvau, {p}", "dsb ish", "ic ivau, {p}", "dsb ish", "isb",
                p = in(reg) self.0.as_ptr()
            );
        }
    }

    fn call(&self) {
        // SAFETY: the page holds one of the functions above, which follow the C convention, and
        // the instruction stream was synchronised after writing it.
        let function: extern "C" fn() = unsafe { std::mem::transmute(self.0.as_ptr()) };
        function();
    }

    fn protect(&self, prot: ProtFlags) {
        // SAFETY: the page is ours, and nothing runs from it while its protection changes.
        unsafe { mprotect(self.0, PAGE_BYTES, prot) }.expect("protection");
    }
}
