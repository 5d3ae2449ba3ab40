//! A prefetcher that follows streams of lines.

/// Lines per region that a stream does not leave by itself: a page of 4 KiB of 64-byte lines.
const REGION: u64 = 64;

/// Streams of one prefetcher, the most recently used last.
#[derive(Clone, Debug)]
pub(crate) struct StreamTable {
    streams: Vec<AccessStream>,
    most: usize,
    /// Distance ahead of the last access at which it fetches, lines.
    ahead: u64,
}

#[derive(Clone, Copy, Debug)]
struct AccessStream {
    thread: usize,
    last: u64,
    /// The farthest line that was requested.
    requested: u64,
    up: bool,
    sure: bool,
}

impl StreamTable {
    /// A prefetcher that follows `most` streams and fetches up to `ahead` lines before their use.
    pub(crate) fn new(most: u32, ahead: u32) -> Self {
        Self {
            streams: Vec::new(),
            most: most.max(1) as usize,
            ahead: u64::from(ahead.max(1)),
        }
    }

    /// Notes an access of a thread; the lines to fetch, two at most, as an access brings one.
    pub(crate) fn note_access(&mut self, thread: usize, line: u64) -> Vec<u64> {
        let near = |s: &AccessStream| s.thread == thread && s.last.abs_diff(line) <= 2;
        let Some(at) = self.streams.iter().position(near) else {
            self.begin(thread, line);
            return Vec::new();
        };
        let mut stream = self.streams.remove(at);
        let lines = stream.follow(line, self.ahead);
        self.streams.push(stream);
        lines
    }

    fn begin(&mut self, thread: usize, line: u64) {
        if self.streams.len() >= self.most {
            self.streams.remove(0);
        }
        self.streams.push(AccessStream {
            thread,
            last: line,
            requested: line,
            up: true,
            sure: false,
        });
    }
}

impl AccessStream {
    fn follow(&mut self, line: u64, ahead: u64) -> Vec<u64> {
        if line == self.last {
            return Vec::new();
        }
        let up = line > self.last;
        if !self.sure || up != self.up {
            self.requested = line;
        }
        self.sure = true;
        self.up = up;
        self.last = line;
        let mut lines = Vec::new();
        while lines.len() < 2 && self.requested.abs_diff(line) < ahead {
            let next = if up {
                self.requested.checked_add(1)
            } else {
                self.requested.checked_sub(1)
            };
            let Some(next) = next else { break };
            // A page's physical neighbour is another page's: the next region takes an access there.
            if next / REGION > line / REGION + 1 {
                break;
            }
            self.requested = next;
            lines.push(next);
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_known_by_its_second_line_and_followed_both_ways() {
        let mut streams = StreamTable::new(2, 4);
        assert!(streams.note_access(0, 1000).is_empty());
        assert_eq!(streams.note_access(0, 1001), [1002, 1003]);
        assert_eq!(streams.note_access(0, 1002), [1004, 1005]);
        assert_eq!(streams.note_access(0, 1003), [1006, 1007]);
        assert_eq!(streams.note_access(0, 1004), [1008]);
        assert!(streams.note_access(1, 1005).is_empty());
        assert_eq!(streams.note_access(1, 1004), [1003, 1002]);
    }

    #[test]
    fn what_goes_nowhere_fetches_nothing() {
        let mut streams = StreamTable::new(16, 8);
        let random = (0..100u64).map(|i| i * i * 977 % 100_000);
        assert_eq!(
            random.flat_map(|line| streams.note_access(0, line)).count(),
            0
        );
    }
}
