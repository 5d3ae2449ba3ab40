//! Measures how the Linux kernel places spinning threads on four cores of two ways, and how it
//! evens out those that remain when others end.
//!
//! `linux-placements measure GUESTS REPETITIONS` boots guests and prints the counts as TOML;
//! `linux-placements ends CORES WAYS GUESTS REPETITIONS` does so for ends on any machine.
//! `linux-placements inside REPETITIONS THREADS,... AFTER_MS,...` and
//! `linux-placements inside-ends REPETITIONS PROCESSES AFTER_MS,... SEED` are what runs in a guest.

use consort_vmtest::spread::{
    EndsExtent, EndsMeasurement, Measurement, MeasurementExtent, document, ends_document,
    measure_ends_inside, measure_inside,
};
use consort_vmtest::{GuestTools, GuestTopology};
use std::error::Error;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

const THREADS: [usize; 4] = [2, 4, 6, 8];
/// Moments of looks after the last start, ms: right after it, on the way, and when hardly anything
/// moves any more.
const AFTER_MS: [u64; 3] = [0, 100, 300];
/// Moments of looks after the ends, every one four times the last, to about a second, ms.
const AFTER_END_MS: [u64; 6] = [0, 4, 16, 64, 256, 1000];
const USAGE: &str = "usage: linux-placements measure GUESTS REPETITIONS
       linux-placements ends CORES WAYS GUESTS REPETITIONS";
/// Time for one guest, of the host: it hangs if it takes longer.
const LIMIT: Duration = Duration::from_secs(3600);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["measure", guests, repetitions] => measure(guests, repetitions),
        ["inside", repetitions, threads, after_ms] => run_inside(repetitions, threads, after_ms),
        ["ends", cores, ways, guests, repetitions] => print_ends(cores, ways, guests, repetitions),
        ["inside-ends", repetitions, processes, after_ms, seed] => {
            run_inside_ends(repetitions, processes, after_ms, seed)
        }
        _ => Err(USAGE.into()),
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
    let extent = MeasurementExtent {
        guests: guests.parse()?,
        repetitions: repetitions.parse()?,
        threads: THREADS.to_vec(),
        after_ms: AFTER_MS.to_vec(),
        limit: LIMIT,
    };
    let host = GuestTools::find()?;
    let measurement = Measurement::take(&host, &std::env::current_exe()?, extent)?;
    print!("{}", document(&measurement, &host)?);
    Ok(())
}

fn print_ends(
    cores: &str,
    ways: &str,
    guests: &str,
    repetitions: &str,
) -> Result<(), Box<dyn Error>> {
    let extent = EndsExtent {
        topology: GuestTopology::smt(cores.parse()?, ways.parse()?),
        guests: guests.parse()?,
        repetitions: repetitions.parse()?,
        after_ms: AFTER_END_MS.to_vec(),
        limit: LIMIT,
    };
    let host = GuestTools::find()?;
    let ends = EndsMeasurement::take(&host, &std::env::current_exe()?, extent)?;
    print!("{}", ends_document(&ends, &host)?);
    Ok(())
}

fn run_inside_ends(
    repetitions: &str,
    processes: &str,
    after_ms: &str,
    seed: &str,
) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let (processes, after_ms, seed) = (processes.parse()?, list(after_ms)?, seed.parse()?);
    measure_ends_inside(repetitions.parse()?, processes, &after_ms, seed, &mut out)?;
    Ok(())
}

fn run_inside(repetitions: &str, threads: &str, after_ms: &str) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let (threads, after_ms) = (list(threads)?, list(after_ms)?);
    measure_inside(repetitions.parse()?, &threads, &after_ms, &mut out)?;
    Ok(())
}

fn list<T: FromStr>(words: &str) -> Result<Vec<T>, T::Err> {
    words.split(',').map(str::parse).collect()
}
