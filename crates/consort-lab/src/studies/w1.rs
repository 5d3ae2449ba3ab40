//! W1: what copies on a core share, in words.

use crate::frame::Frame;
use crate::study::Frames;

/// The product whose copies share units.
const PROGRAM: &str = "matmul-fp";

/// Mean over the runs of a case.
fn mean(frame: &Frame, case: &str, measure: &str) -> f64 {
    let case = frame.cases.iter().position(|known| known.key == case);
    let both = case.zip(frame.policy_index(PROGRAM));
    let values = both.map_or(&[][..], |(case, policy)| {
        frame.run_values(case, policy, measure)
    });
    values.iter().sum::<f64>() / values.len() as f64
}

/// Notes on what copies on a module of Bulldozer and on a core of POWER7 share.
pub(super) fn sharing(frames: &Frames) -> Vec<String> {
    let frame = frames.get("places");
    frame.map_or_else(Vec::new, |frame| {
        vec![of_the_module(frame), of_the_core(frame)]
    })
}

fn of_the_module(frame: &Frame) -> String {
    let of = |copies, measure| mean(frame, &format!("bulldozer-6282se/smt2/{copies}"), measure);
    let ratio = of(2, "cycles_g") / of(1, "cycles_g");
    format!(
        "Bulldozer: two copies on a module take {ratio:.2} times the cycles of one, because \
         they take turns at its four decode slots. Usage hardly falls, from {:.3} to {:.3}: \
         an operation is in the FPU for five cycles, so even at half the rate the FPU is \
         seldom empty. The event tells whether a thread uses the FPU, not how much.",
        of(1, "fpu_usage"),
        of(2, "fpu_usage"),
    )
}

fn of_the_core(frame: &Frame) -> String {
    let of = |copies, measure| mean(frame, &format!("power7/smt4/{copies}"), measure);
    let each = [1, 2, 4].map(|copies| of(copies, "fpu_usage"));
    let all = [1, 2, 4].map(|copies| f64::from(copies) * of(copies, "ipc"));
    format!(
        "POWER7: with one, two and four copies on a core a copy's usage is {:.3}, {:.3} and \
         {:.3}, while all copies together complete {:.2}, {:.2} and {:.2} instructions per \
         cycle. What they share, two load/store units first, is nearly used up by one copy, \
         so this usage tells a thread's rate as much as its nature.",
        each[0], each[1], each[2], all[0], all[1], all[2],
    )
}
