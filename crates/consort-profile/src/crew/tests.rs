//! Tests that measurements are the same with threads and without, and of batches.

use std::path::Path;

use consort_ops::trace::{Trace, TraceSampling};
use consort_ops::{Op, OpKind};

use super::{BYTES, MeterCrew, SharedBatch};
use crate::recorder::{
    AtomicUpdate, ExecutionSink, RecordedPart, RecordingStage, SystemCall, WindowChoice,
};
use crate::{ProgramFileHeader, ProgramProfiler};

fn trace(program: &str) -> Trace {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces");
    Trace::open(&Path::new(folder).join(program).with_extension("trace")).unwrap()
}

/// A profile as a file, with all figures behind it.
fn text(mut profiler: ProgramProfiler) -> String {
    let profile = profiler.finish_profile();
    let reported = ProgramFileHeader {
        name: "it",
        command: "it",
        executed: 1,
        end: None,
    };
    let file = profile.to_program_file(&reported);
    format!("{file}{:?}{:?}", profile.intervals, profile.threads)
}

/// Profiles that `run` makes of a program, without threads and with them.
fn both(extent: RecordedPart, run: impl Fn(&mut ProgramProfiler)) -> [String; 2] {
    [false, true].map(|is_apart| {
        let mut profiler =
            ProgramProfiler::with_crew(MeterCrew::with_workers(is_apart), extent, false);
        run(&mut profiler);
        text(profiler)
    })
}

#[test]
fn whole_run_is_measured_alike_with_workers() {
    let trace = trace("gzip");
    // Several times, so that there are intervals, and operations whose values are not followed.
    let times = 1 + 3_000_000 / trace.instructions();
    let [alone, apart] = both(RecordedPart::default(), |profiler| {
        for _ in 0..times {
            trace.ops().for_each(|op| profiler.record_op(0, &op));
        }
    });
    assert!(alone.contains("ilp"), "{alone}");
    assert_eq!(alone, apart);
}

#[test]
fn samples_are_measured_alike_with_workers() {
    let trace = trace("sqlite3");
    let sampling = TraceSampling {
        every: 300_000,
        warm: 100_000,
        window: 100_000,
    };
    let extent = RecordedPart {
        windows: WindowChoice::Fixed(sampling),
        ..RecordedPart::default()
    };
    let [alone, apart] = both(extent, |profiler| {
        for (number, stage) in (0..).zip([RecordingStage::Warm, RecordingStage::Window].repeat(4)) {
            profiler.enter_stage(0, stage, number);
            let ops = trace.ops().take(100_000);
            ops.for_each(|op| profiler.record_op(0, &op));
        }
    });
    assert_eq!(alone, apart);
}

/// Runs two threads in turns of a few operations; one of them ends early.
fn two_threads(profiler: &mut ProgramProfiler, traces: &[Trace; 2]) {
    let mut threads = [traces[0].ops(), traces[1].ops()];
    profiler.record_thread_count(0, 2);
    for turn in 0..400 {
        let thread = turn % 2;
        let ops = threads[thread].by_ref().take(1000 + turn);
        ops.for_each(|op| profiler.record_op(thread, &op));
        let atomic = AtomicUpdate {
            word: 0x8000,
            code: 0x1000,
            compares: turn % 4 < 2,
        };
        profiler.record_atomic(thread, atomic);
        if turn == 301 {
            let exit = SystemCall {
                number: 60,
                ..SystemCall::default()
            };
            profiler.record_system_call(1, &exit);
        }
    }
}

#[test]
fn several_threads_are_measured_alike_with_workers() {
    let traces = ["xz", "sort"].map(trace);
    let [alone, apart] = both(RecordedPart::default(), |profiler| {
        two_threads(profiler, &traces);
    });
    assert_eq!(alone, apart);
}

#[test]
fn dropped_crew_ends_without_panic() {
    let mut crew = MeterCrew::with_workers(true);
    crew.set_counting(0, true);
    (0..100_000).for_each(|at| crew.add_op(0, &Op::new(OpKind::Integer, at)));
}

#[test]
fn batch_is_reused_after_reading() {
    let mut batch = SharedBatch::default();
    assert!(batch.take_batch().is_none());
    let mut places = Vec::new();
    for round in 0..10_u64 {
        while !batch.push(round) {}
        let sent = batch.take_batch().unwrap();
        assert_eq!(sent.len() * 8, BYTES);
        assert!(sent.iter().all(|number| *number == round));
        places.push(sent.as_ptr());
    }
    places.sort_unstable();
    places.dedup();
    assert_eq!((places.len(), batch.sent.len()), (2, 1));
}

#[test]
fn slice_is_added_only_if_it_fits() {
    let mut batch = SharedBatch::<u64>::default();
    let most = batch.open.capacity();
    while batch.extend(&[1, 2, 3]) {}
    assert!((most - 3..most).contains(&batch.open.len()));
    assert!(batch.extend(&[]));
}

#[test]
fn batch_in_use_is_not_reused() {
    let mut batch = SharedBatch::default();
    let send = |batch: &mut SharedBatch<u64>, number| {
        batch.push(number);
        batch.take_batch().unwrap()
    };
    let held: Vec<_> = (0..5).map(|number| send(&mut batch, number)).collect();
    assert!(held.iter().map(|sent| sent[0]).eq(0..5));
    drop(held);
    (0..5).for_each(|number| drop(send(&mut batch, number)));
    assert!(batch.sent.len() <= 5);
}
