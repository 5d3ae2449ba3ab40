//! Ring buffers, perf records and stat lines of any bytes.

#![no_main]

use consort_linux::discovery::Stat;
use consort_linux::perf::record::PerfRecord;
use consort_linux::perf::walk;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (usize, &[u8])| {
    let (seam, bytes) = input;
    let (first, second) = bytes.split_at(seam % (bytes.len() + 1));
    let mut walked_bytes = 0;
    let walked = walk(first, second, |record| {
        walked_bytes += record.len();
        let _ = PerfRecord::parse(record);
    });
    assert_eq!(walked_bytes + walked.dropped_bytes, bytes.len());
    let _ = PerfRecord::parse(bytes);
    let _ = Stat::parse(bytes);
});
