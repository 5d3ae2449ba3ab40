//! Plans of blocks: what is the same each time one is executed, so that only addresses are left to
//! tell.

use consort_ops::{Branch, Kind, Op};

use super::lane::{Word, outcome};
use super::sink::Run;
use crate::measure::{Mix, Sort, Touch, Turning, line_of};

/// Plan of a block of which every operation is executed once, in order.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    mix: Mix,
    lines: Vec<(u64, u64)>,
    uses: Vec<Use>,
    branch: Option<(Op, Branch)>,
}

/// An access to data as the emulator tells of it, but for its address.
#[derive(Debug, Clone, Copy)]
struct Use {
    /// What [`Word::form`] has to be.
    form: u64,
    bytes: u16,
    sort: Sort,
}

impl Plan {
    /// The plan of instructions with these operations; none where it takes their execution to know
    /// which there are.
    pub(super) fn of<'a>(instructions: impl Iterator<Item = &'a [Op]>) -> Option<Self> {
        let mut plan = Self {
            mix: Mix::default(),
            lines: Vec::new(),
            uses: Vec::new(),
            branch: None,
        };
        let all = instructions.enumerate();
        let fits = |(number, ops): (usize, &[Op])| ops.iter().all(|op| plan.add(number, op));
        { all }.all(fits).then_some(plan)
    }

    /// Adds an operation of the instruction with this number. Returns false where that cannot be.
    fn add(&mut self, number: usize, op: &Op) -> bool {
        // Behind a branch there is nothing, or it would not be known where it went.
        let fits = self.branch.is_none() && self.add_use(number, op);
        self.branch = op.branch.map(|branch| (*op, branch));
        self.mix.op(&Op {
            branch: None,
            ..*op
        });
        if op.first {
            self.add_instruction(op.address);
        }
        fits
    }

    fn add_instruction(&mut self, address: u64) {
        let line = |&(address, _): &(u64, u64)| line_of(address);
        match self.lines.last_mut() {
            Some(last) if line(last) == line_of(address) => last.1 += 1,
            _ => self.lines.push((address, 1)),
        }
    }

    /// Adds the access of an operation, if it has one. Returns false where the emulator may tell of
    /// it in pieces.
    fn add_use(&mut self, number: usize, op: &Op) -> bool {
        let Some(data) = op.data else { return true };
        let Touch { sort, bytes, .. } = Touch::data(op.kind, data);
        let form = Word::form_of(number, u64::from(bytes), op.kind == Kind::Store);
        self.uses.extend(form.map(|form| Use { form, bytes, sort }));
        form.is_some()
    }

    /// The run in which the emulator told of these accesses, with execution going on at `next`, if
    /// known; none where they are not those that were to be expected. `touches` is room for them.
    #[inline]
    pub(super) fn run<'a>(
        &'a self,
        words: &[u64],
        next: Option<u64>,
        touches: &'a mut Vec<Touch>,
    ) -> Option<Run<'a>> {
        if words.len() != self.uses.len() {
            return None;
        }
        touches.clear();
        let mut is_other = false;
        touches.extend(words.iter().zip(&self.uses).map(|(&word, expected)| {
            is_other |= Word::form(word) != expected.form;
            Touch {
                address: Word::address(word),
                bytes: expected.bytes,
                sort: expected.sort,
            }
        }));
        let turning = self.branch.as_ref().map(|(op, branch)| Turning {
            at: op.address,
            length: op.length,
            branch: outcome(op, *branch, next),
        });
        (!is_other).then_some(Run {
            mix: &self.mix,
            lines: &self.lines,
            touches,
            turning,
        })
    }
}
