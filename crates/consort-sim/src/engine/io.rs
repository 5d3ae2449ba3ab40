//! Input and output: after how many instructions a thread blocks, and for how long.
//!
//! Operations are evenly spaced in instructions, the first at a random point of the spacing; the
//! time blocked is exponential. Where operations are closer than [`CLOSEST_INSTR`], k of them are
//! taken together: the time blocked is then the sum of k exponentials, by the central limit
//! theorem k·mean + √k·mean·n with n standard normal.

use super::draw::RandomStream;
use crate::program::IoSpec;

/// Least instructions between two blockings: about 50 µs on the cores of today.
const CLOSEST_INSTR: f64 = 1e5;

/// One thread's input and output.
#[derive(Clone, Debug)]
pub(crate) struct Io {
    draw: RandomStream,
    spacing: f64,
    together: f64,
    mean_s: f64,
    /// Instructions until the thread blocks.
    pub(crate) left: f64,
}

impl Io {
    /// The operations of a thread.
    pub(crate) fn new(spec: Option<IoSpec>, mut draw: RandomStream) -> Self {
        let single = match spec {
            Some(io) if io.per_ginstr > 0.0 => 1e9 / io.per_ginstr,
            _ => f64::INFINITY,
        };
        let together = libm::ceil(CLOSEST_INSTR / single).max(1.0);
        let spacing = single * together;
        Self {
            left: spacing * draw.uniform(),
            spacing,
            together,
            mean_s: spec.map_or(0.0, |io| io.blocked_us * 1e-6),
            draw,
        }
    }

    /// Begins the operation that is due: the time that it blocks, s.
    pub(crate) fn begin_operation(&mut self) -> f64 {
        self.left = self.spacing;
        if self.together > 1.0 {
            let spread = self.together.sqrt() * self.draw.normal();
            return (self.mean_s * (self.together + spread)).max(0.0);
        }
        self.draw.exponential(self.mean_s)
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw::Purpose;
    use super::*;

    /// Share of time blocked at 10^9 instructions per second is rate times length either way.
    #[test]
    fn blocked_time_per_instruction_is_as_described_however_close() {
        for per_ginstr in [100.0, 1e6] {
            let spec = IoSpec {
                per_ginstr,
                blocked_us: 50.0,
            };
            let mut io = Io::new(Some(spec), RandomStream::new(1, Purpose::Io, 0, 0));
            io.begin_operation();
            let n = 4000;
            let blocked: f64 = (0..n).map(|_| io.begin_operation()).sum();
            let instructions = io.left * f64::from(n);
            let expected = instructions * 1e-9 * per_ginstr * 50e-6;
            assert!((blocked / expected - 1.0).abs() < 0.05, "{per_ginstr}");
            assert!(io.left >= CLOSEST_INSTR);
        }
    }
}
