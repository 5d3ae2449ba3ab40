//! Cost of a nudge, and of looking at threads that are in place.
//!
//! Starts threads in another process, some of them busy, takes them in, and prints the time per
//! thread of looking at all of them, of nudging all of them, and of pinning all of them anew, as the
//! median of many rounds, us of wall-clock time of the caller.
//!
//! Usage: `nudging_cost [THREADS]...`, by default 100 and 1000.

use consort_core::{PuSet, ThreadId};
use consort_linux::enact::{
    EnactConfig, Enactor, ThreadWish, current_mask, guardian_main, identify,
};
use std::error::Error;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 51;
const GUARDIAN: &str = "guardian";
const CROWD: &str = "crowd";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut args = std::env::args().skip(1).peekable();
    match args.peek().map(String::as_str) {
        Some(GUARDIAN) => return Ok(guardian_main(std::env::args_os().skip(2))),
        Some(CROWD) => crowd(args.nth(1).ok_or("how many?")?.parse()?),
        _ => {}
    }
    let requested: Vec<usize> = args.map(|n| n.parse()).collect::<Result<_, _>>()?;
    let sizes = if requested.is_empty() {
        vec![100, 1000]
    } else {
        requested
    };
    println!("threads  look us  nudge us  pin us");
    for size in sizes {
        measure(size)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts `threads` threads, as many of them busy as there are CPUs, until the process is killed.
fn crowd(threads: usize) -> ! {
    let pus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    for number in 1..threads {
        std::thread::spawn(move || {
            let busy = number <= pus;
            loop {
                if busy {
                    std::hint::spin_loop();
                } else {
                    std::thread::park();
                }
            }
        });
    }
    loop {
        std::thread::park();
    }
}

struct Crowd(Child);

impl Drop for Crowd {
    fn drop(&mut self) {
        // Fails only when it is dead already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn measure(size: usize) -> Result<(), Box<dyn Error>> {
    let mut command = Command::new("/proc/self/exe");
    let crowd = Crowd(
        command
            .args([CROWD, &size.to_string()])
            .stdin(Stdio::null())
            .spawn()?,
    );
    let pid = crowd.0.id();
    let folder = tempfile::tempdir()?;
    let mut enactor = Enactor::start(&EnactConfig {
        guardian_args: vec![GUARDIAN.into()],
        runtime_dirs: vec![folder.path().to_owned()],
        changes_nothing: false,
    })?;
    let threads = all_threads(pid, size)?;
    let own = current_mask(threads[0])?;
    for &thread in &threads {
        enactor.adopt(thread, own.clone())?;
    }
    let places: Vec<PuSet> = own.iter().map(PuSet::from).collect();
    let mut round = 0;
    let mut time = |wanted: &dyn Fn(&PuSet) -> ThreadWish| {
        let mut taken: Vec<f64> = Vec::new();
        for _ in 0..ROUNDS {
            round += 1;
            let place = wanted(&places[round % places.len()]);
            let plan: Vec<_> = threads.iter().map(|&t| (t, place.clone())).collect();
            let begun = Instant::now();
            enactor.apply(&plan);
            taken.push(begun.elapsed().as_secs_f64() * 1e6 / size as f64);
        }
        taken.sort_by(f64::total_cmp);
        taken[ROUNDS / 2]
    };
    let look = time(&|_| ThreadWish::Unrestricted);
    let nudge = time(&|place| ThreadWish::Nudge(place.clone()));
    let pin = time(&|place| ThreadWish::Only(place.clone()));
    println!("{size:7}  {look:7.2}  {nudge:8.2}  {pin:6.2}");
    enactor.close();
    Ok(())
}

/// Waits until all threads are there.
fn all_threads(pid: u32, size: usize) -> Result<Vec<ThreadId>, Box<dyn Error>> {
    loop {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))?;
        let tids = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
        let threads: Vec<ThreadId> = tids
            .filter_map(|tid| identify("/".as_ref(), pid, tid))
            .collect();
        if threads.len() >= size {
            return Ok(threads);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
