//! Measures how the Linux kernel places spinning threads on four cores of two ways.
//!
//! `linux-placements measure GUESTS REPETITIONS` boots guests and prints the counts as TOML.
//! `linux-placements inside REPETITIONS THREADS,... AFTER_MS,...` is what runs in a guest.

use consort_vmtest::Host;
use consort_vmtest::spread::{Extent, Measurement, document, measure_inside};
use std::error::Error;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

const THREADS: [usize; 4] = [2, 4, 6, 8];
/// Right after the last start, on the way, and when hardly anything moves any more.
const AFTER_MS: [u64; 3] = [0, 100, 300];
/// Time for one guest, of the host: it hangs if it takes longer.
const LIMIT: Duration = Duration::from_secs(3600);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["measure", guests, repetitions] => measure(guests, repetitions),
        ["inside", repetitions, threads, after_ms] => inside(repetitions, threads, after_ms),
        _ => Err("usage: linux-placements measure GUESTS REPETITIONS".into()),
    };
    result.map_or_else(
        |error| {
            eprintln!("linux-placements: {error}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

fn measure(guests: &str, repetitions: &str) -> Result<(), Box<dyn Error>> {
    let extent = Extent {
        guests: guests.parse()?,
        repetitions: repetitions.parse()?,
        threads: THREADS.to_vec(),
        after_ms: AFTER_MS.to_vec(),
        limit: LIMIT,
    };
    let host = Host::find()?;
    let measurement = Measurement::take(&host, &std::env::current_exe()?, extent)?;
    print!("{}", document(&measurement, &host)?);
    Ok(())
}

fn inside(repetitions: &str, threads: &str, after_ms: &str) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let (threads, after_ms) = (list(threads)?, list(after_ms)?);
    measure_inside(repetitions.parse()?, &threads, &after_ms, &mut out)?;
    Ok(())
}

fn list<T: FromStr>(words: &str) -> Result<Vec<T>, T::Err> {
    words.split(',').map(str::parse).collect()
}
