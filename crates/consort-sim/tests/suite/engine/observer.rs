//! Observers are told everything, once.

use super::build::{finish, instances, machine};
use consort_core::ThreadId;
use consort_sim::engine::{Observer, PuUse, RunMode, RunSegment};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

#[derive(Clone, Debug)]
struct Seen {
    thread: ThreadId,
    pu: usize,
    from: u64,
    to: u64,
    doing: PuUse,
    instructions: f64,
}

struct Recorder(Rc<RefCell<Vec<Seen>>>);

impl Observer for Recorder {
    fn note_segment(&mut self, s: &RunSegment<'_>) {
        let rate = if s.doing == PuUse::Work {
            s.rates.ips
        } else {
            0.0
        };
        self.0.borrow_mut().push(Seen {
            thread: s.thread,
            pu: s.pu,
            from: s.from_ps,
            to: s.to_ps,
            doing: s.doing,
            instructions: rate * (s.to_ps - s.from_ps) as f64 / 1e12,
        });
    }
}

#[test]
fn segments_tile_the_time_of_every_pu_and_add_up_to_the_counts() {
    let work = instances(&[("mcf", 1), ("fft", 4), ("io-heavy", 1), ("gcc", 1)], 0.05);
    let mut m = machine("acmp-1+3", None, "linux", RunMode::Once, &work, 1_000_000);
    let seen = Rc::new(RefCell::new(Vec::new()));
    m.set_observer(Box::new(Recorder(Rc::clone(&seen))));
    finish(&mut m);
    let seen = seen.borrow();
    for doing in [PuUse::Kernel, PuUse::Overhead] {
        assert!(seen.iter().any(|s| s.doing == doing));
    }
    let mut free: BTreeMap<usize, u64> = BTreeMap::new();
    let mut sums: BTreeMap<ThreadId, (f64, f64)> = BTreeMap::new();
    for s in seen.iter() {
        assert!(s.from < s.to && *free.get(&s.pu).unwrap_or(&0) <= s.from);
        free.insert(s.pu, s.to);
        let sum = sums.entry(s.thread).or_default();
        sum.0 += (s.to - s.from) as f64 / 1e12;
        sum.1 += s.instructions;
    }
    for (id, (on_pu_s, instructions)) in sums {
        let counts = m.oracle().counts(id).unwrap();
        assert!((counts.on_pu_s / on_pu_s - 1.0).abs() < 1e-9);
        // Barriers taken together lose time inside segments, so there may be fewer.
        assert!(counts.instructions <= instructions * (1.0 + 1e-6));
    }
}
