use super::{Damage, Trace, TraceError, TraceInfo, TraceRecorder, TraceSampling};
use crate::{Access, Branch, BranchKind, Fusion, Op, OpKind, Register};
use proptest::prelude::*;

fn register() -> impl Strategy<Value = Option<Register>> {
    prop::option::of(any::<u8>().prop_map(Register::from_index))
}

fn data() -> impl Strategy<Value = Option<Access>> {
    let access = (any::<u64>(), any::<u16>(), any::<bool>());
    prop::option::of(access.prop_map(|(address, bytes, is_vector)| Access {
        address,
        bytes,
        is_vector,
    }))
}

fn branch() -> impl Strategy<Value = Option<Branch>> {
    let turn = prop::sample::select(vec![
        BranchKind::Conditional,
        BranchKind::Jump,
        BranchKind::Call,
        BranchKind::Return,
        BranchKind::IndirectJump,
        BranchKind::IndirectCall,
    ]);
    let branch = (turn, any::<bool>(), 0_u64..40);
    prop::option::weighted(
        0.2,
        branch.prop_map(|(turn, taken, target)| Branch {
            turn,
            taken,
            target,
        }),
    )
}

fn op() -> impl Strategy<Value = Op> {
    (
        (
            0_u64..40,
            0_u8..16,
            any::<bool>(),
            0_usize..OpKind::ALL.len(),
            0_usize..Fusion::ALL.len(),
        ),
        prop::array::uniform4(register()),
        prop::array::uniform2(register()),
        data(),
        branch(),
    )
        .prop_map(
            |((address, length, first, kind, fusion), sources, targets, data, branch)| Op {
                address,
                length,
                first,
                kind: OpKind::ALL[kind],
                sources,
                targets,
                data,
                branch,
                fusion: Fusion::ALL[fusion],
            },
        )
}

fn record(ops: &[(usize, Op)]) -> Trace {
    let mut recorder = TraceRecorder::new();
    for (thread, op) in ops {
        recorder.push(*thread, op);
    }
    recorder.finish(TraceInfo {
        program: "example".to_owned(),
        executed: 7,
        skipped: 3,
        sampling: Some(TraceSampling {
            every: 10,
            window: 2,
            warm: 1,
        }),
    })
}

/// A loop over an array: a load, an addition, a branch back.
fn array_loop(rounds: u64) -> Vec<(usize, Op)> {
    let mut ops = Vec::new();
    for round in 0..rounds {
        let mut load = Op::new(OpKind::Load, 0x1000);
        load.data = Some(Access {
            address: 0x8000 + 8 * round,
            bytes: 8,
            is_vector: false,
        });
        let mut back = Op::new(OpKind::Branch, 0x1008);
        let taken = round + 1 < rounds;
        back.branch = Some(Branch {
            turn: BranchKind::Conditional,
            taken,
            target: if taken { 0x1000 } else { 0x100c },
        });
        ops.extend([(0, load), (0, Op::new(OpKind::Integer, 0x1004)), (0, back)]);
    }
    ops
}

proptest! {
    #[test]
    fn what_was_pushed_comes_back(
        ops in prop::collection::vec((0_usize..3, op()), 0..700),
        again in 0_usize..3,
    ) {
        let repeated: Vec<_> = (0..=again).flat_map(|_| ops.clone()).collect();
        let trace = Trace::from_bytes(&record(&repeated).to_bytes()).unwrap();
        for thread in 0..3 {
            let pushed = repeated.iter().filter(|(of, _)| *of == thread).map(|(_, op)| *op);
            prop_assert!(trace.thread_ops(thread).eq(pushed));
        }
        prop_assert_eq!(trace.instructions(), repeated.iter().filter(|(_, op)| op.first).count() as u64);
    }

    #[test]
    fn damage_is_told_and_never_panics(
        at in any::<prop::sample::Index>(),
        with in 1_u8..=255,
        cut in any::<prop::sample::Index>(),
    ) {
        let whole = record(&array_loop(100)).to_bytes();
        let mut bytes = whole.clone();
        let at = at.index(bytes.len());
        bytes[at] ^= with;
        if let Ok(trace) = Trace::from_bytes(&bytes) {
            prop_assert_eq!(trace.ops().count() as u64, trace.threads()[0].operations);
        }
        prop_assert!(Trace::from_bytes(&whole[..cut.index(whole.len())]).is_err());
    }
}

#[test]
fn a_regular_loop_takes_next_to_nothing() {
    let bytes = record(&array_loop(100_000)).to_bytes();
    assert!(bytes.len() < 1500, "{}", bytes.len());
}

#[test]
fn what_is_told_of_it_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("example.trace");
    let trace = record(&array_loop(3));
    trace.save(&path).unwrap();
    assert_eq!(Trace::open(&path).unwrap(), trace);
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "nothing but the trace is left");
}

#[test]
fn an_iterator_starts_again_from_the_beginning() {
    let trace = record(&array_loop(3));
    assert_eq!(trace.ops().next(), trace.ops().next());
    assert_eq!(trace.thread_ops(1).next(), None);
}

/// Layout 1 is layout 2 without the kinds and parts that this loop does not have.
#[test]
fn first_layout_is_read() {
    let mut bytes = record(&array_loop(3)).to_bytes();
    assert_eq!(bytes[14], 2);
    bytes[14] = 1;
    let read = Trace::from_bytes(&bytes).unwrap();
    assert!(read.ops().eq(array_loop(3).into_iter().map(|(_, op)| op)));
}

#[test]
fn errors_name_the_file_and_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.trace");
    let said = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Trace::open(&path).unwrap_err().to_string()
    };
    let whole = record(&array_loop(3)).to_bytes();
    assert!(said(b"no trace").contains("x.trace is no trace"));
    assert!(said(&whole[..whole.len() - 1]).contains("is damaged: it ends early"));
    assert!(said(&[&whole[..], b"x"].concat()).contains("something behind its end"));
    let mut newer = whole.clone();
    newer[14] = 9;
    assert!(said(&newer).contains("has layout 9; this version reads layouts 1 to 2"));
    let missing = Trace::open(&folder.path().join("none")).unwrap_err();
    assert!(matches!(missing, TraceError::File { .. }));
    assert_eq!(Trace::from_bytes(b""), Err(Damage::Value));
}
