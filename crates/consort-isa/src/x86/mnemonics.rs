//! Classes of x86 instructions, as far as mnemonics determine them.
//!
//! The rules use the regular spelling of the mnemonics (an operation, then the element type). They
//! are evaluated once for all mnemonics of the decoder and looked up afterwards.

use std::sync::LazyLock;

use iced_x86::Mnemonic;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MnemonicKind {
    /// Floating-point arithmetic.
    Fp,
    /// A load, a store or a move between registers, as the operands say.
    Move,
    /// System, fence, no-operation.
    System,
    /// Left to the operands.
    Operands,
}

/// Operations on elements that are arithmetic when the elements are floating-point numbers.
const FP_OPERATIONS: &[&str] = &[
    "add", "sub", "mul", "div", "sqrt", "rsqrt", "rcp", "min", "max", "cmp", "com", "ucom",
    "round", "rndscale", "dp", "hadd", "hsub", "fm", "fnm", "fcm", "fcmadd", "getexp", "getmant",
    "fixupimm", "range", "reduce", "scalef", "fpclass", "exp2",
];

/// Element types that are floating-point numbers.
const FP_ELEMENTS: &[&str] = &["ps", "pd", "ss", "sd", "ph", "sh", "bf16", "sx"];

/// Prefixes of mnemonics that are arithmetic whatever the element type.
const FP_PREFIXES: &[&str] = &["cvt", "pf", "pi2f"];

/// x87 instructions that only move data.
const X87_MOVES: &[&str] = &["fld", "fst", "fstp", "fxch"];

/// x87 instructions that manage the unit.
const X87_SYSTEM: &[&str] = &[
    "fldcw",
    "fnstcw",
    "fstcw",
    "fnstsw",
    "fstsw",
    "fninit",
    "finit",
    "fnclex",
    "fclex",
    "fldenv",
    "fnstenv",
    "fstenv",
    "fnsave",
    "fsave",
    "frstor",
    "fnop",
    "ffree",
    "ffreep",
    "fincstp",
    "fdecstp",
    "fwait",
    "wait",
    "femms",
    "emms",
    "fxsave",
    "fxsave64",
    "fxrstor",
    "fxrstor64",
];

/// Prefixes of mnemonics that move data.
const MOVE_PREFIXES: &[&str] = &[
    "mov",
    "kmov",
    "push",
    "pop",
    "prefetch",
    "lddqu",
    "lods",
    "stos",
    "maskmov",
    "pmaskmov",
    "gather",
    "pgather",
    "scatter",
    "pscatter",
    "broadcast",
    "pbroadcast",
    "xlat",
    "leave",
    "enter",
    "expand",
    "pexpand",
    "compress",
    "pcompress",
    "lahf",
    "sahf",
];

/// Mnemonics of the system.
const SYSTEM: &[&str] = &[
    "int", "int1", "int3", "into", "hlt", "lsl", "lar", "verr", "verw", "str", "sldt", "smsw",
    "cld", "std", "wait", "xtest", "xbegin", "xend", "xabort", "ud0", "ud1", "ud2",
];

/// Prefixes of mnemonics of the system.
const SYSTEM_PREFIXES: &[&str] = &[
    "nop",
    "endbr",
    "pause",
    "lfence",
    "mfence",
    "sfence",
    "cpuid",
    "rdtsc",
    "rdpmc",
    "rdrand",
    "rdseed",
    "rdpid",
    "rdfsbase",
    "rdgsbase",
    "wrfsbase",
    "wrgsbase",
    "rdpkru",
    "wrpkru",
    "rdssp",
    "incssp",
    "xsave",
    "xrstor",
    "xgetbv",
    "xsetbv",
    "ldmxcsr",
    "stmxcsr",
    "vldmxcsr",
    "vstmxcsr",
    "clflush",
    "clwb",
    "cldemote",
    "clzero",
    "syscall",
    "sysenter",
    "serialize",
    "monitor",
    "mwait",
    "umonitor",
    "umwait",
    "tpause",
    "reserved",
    "enqcmd",
    "ldtilecfg",
    "sttilecfg",
    "tilerelease",
    "tilezero",
    "sgdt",
    "sidt",
    "vmcall",
    "vmmcall",
];

static KINDS: LazyLock<Vec<MnemonicKind>> = LazyLock::new(|| {
    Mnemonic::values()
        .map(|mnemonic| kind_of_name(&format!("{mnemonic:?}").to_ascii_lowercase()))
        .collect()
});

pub(crate) fn kind(mnemonic: Mnemonic) -> MnemonicKind {
    KINDS
        .get(mnemonic as usize)
        .copied()
        .unwrap_or(MnemonicKind::Operands)
}

/// True for an instruction that requests data without reading it.
pub(crate) fn is_prefetch(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{
        Prefetch, Prefetchit0, Prefetchit1, Prefetchnta, Prefetcht0, Prefetcht1, Prefetcht2,
        Prefetchw, Prefetchwt1,
    };
    matches!(
        mnemonic,
        Prefetch
            | Prefetchit0
            | Prefetchit1
            | Prefetchnta
            | Prefetcht0
            | Prefetcht1
            | Prefetcht2
            | Prefetchw
            | Prefetchwt1
    )
}

fn kind_of_name(name: &str) -> MnemonicKind {
    let system = [X87_SYSTEM, SYSTEM]
        .iter()
        .any(|names| names.contains(&name));
    if system || starts_with_any(name, SYSTEM_PREFIXES) {
        return MnemonicKind::System;
    }
    if X87_MOVES.contains(&name) {
        return MnemonicKind::Move;
    }
    // VEX and EVEX forms carry a leading v.
    let operation = name.strip_prefix('v').unwrap_or(name);
    if is_fp(operation) {
        MnemonicKind::Fp
    } else if starts_with_any(operation, MOVE_PREFIXES) {
        MnemonicKind::Move
    } else {
        MnemonicKind::Operands
    }
}

fn is_fp(operation: &str) -> bool {
    let by_element = starts_with_any(operation, FP_OPERATIONS)
        && FP_ELEMENTS
            .iter()
            .any(|element| operation.ends_with(element));
    // Arithmetic on complex half-precision numbers ends in the part that it works on.
    let is_complex = starts_with_any(operation, &["fmulc", "fcmulc", "fmaddc", "fcmaddc"]);
    by_element || starts_with_any(operation, FP_PREFIXES) || is_complex
}

fn starts_with_any(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(kind: MnemonicKind, within: fn(&str) -> bool) -> Vec<String> {
        Mnemonic::values()
            .map(|mnemonic| format!("{mnemonic:?}").to_ascii_lowercase())
            .filter(|name| within(name) && kind_of_name(name) == kind)
            .collect()
    }

    #[test]
    fn integer_simd_is_not_floating_point() {
        let wrong = names_of(MnemonicKind::Fp, |name| {
            let name = name.strip_prefix('v').unwrap_or(name);
            name.starts_with('p') && !name.starts_with("pf") && !name.starts_with("pi2f")
        });
        assert_eq!(wrong, Vec::<String>::new());
    }

    #[test]
    fn general_arithmetic_is_not_system() {
        for name in ["inc", "insertps", "stc", "shlx", "lzcnt", "xor"] {
            assert_ne!(kind_of_name(name), MnemonicKind::System, "{name}");
        }
    }

    #[test]
    fn every_fused_multiply_add_is_floating_point() {
        let wrong = names_of(MnemonicKind::Operands, |name| {
            name.starts_with("vfm") || name.starts_with("vfnm")
        });
        assert_eq!(wrong, Vec::<String>::new());
    }
}
