//! Class and estimate that the sampling tier gives of one program, for `tests/truth/stalls.py`.
//!
//! `stalls SECONDS CMD ARGS...` runs the command, samples it until it has had SECONDS of CPU time
//! or to its end, and prints class and estimate of the thread that ran most, as JSON.

use consort_core::{PuSet, Sample, ThreadTraits, classify};
use consort_linux::discovery::ProcessTimes;
use consort_linux::sampling::{
    ProfiledThread, SampleProfiler, Sampler, SamplerConfig, sample_cost_ns,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let seconds = args.first().and_then(|text| text.parse::<f64>().ok());
    let (Some(seconds), Some(command)) = (seconds, args.get(1..).filter(|c| !c.is_empty())) else {
        eprintln!("usage: stalls SECONDS CMD ARGS...");
        return ExitCode::from(2);
    };
    let mut child = held(command);
    // As often as Consort samples on this host.
    let cost_ns = sample_cost_ns(Path::new("/")).unwrap_or(0);
    let config = SamplerConfig::default().for_cost(cost_ns);
    let sampler = Sampler::attach_launch(child.id(), &online(), config);
    let most = match sampler {
        Ok(sampler) => follow(&mut child, sampler, (seconds * 1e9) as u64),
        Err(error) => {
            println!("skipped: {error}");
            return ExitCode::SUCCESS;
        }
    };
    // It may have ended.
    let _ = child.kill();
    let _ = child.wait();
    println!("{}", described(&most.expect("the program ran")));
    ExitCode::SUCCESS
}

/// Starts a child that executes the command on request.
fn held(command: &[String]) -> Child {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "read go; exec \"$0\" \"$@\" </dev/null"]);
    shell
        .args(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    shell.spawn().expect("a shell")
}

fn online() -> PuSet {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online");
    online
        .unwrap_or_default()
        .trim()
        .parse()
        .unwrap_or_default()
}

/// Follows the programs until they have had `limit_ns` of CPU time; returns the thread that ran
/// most.
fn follow(child: &mut Child, mut sampler: Sampler, limit_ns: u64) -> Option<ProfiledThread> {
    let mut times = ProcessTimes::new(Path::new("/"));
    let mut profiler = SampleProfiler::new(Path::new("/"));
    let mut totals = BTreeMap::new();
    let mut gate = child.stdin.take()?;
    gate.write_all(b"go\n").ok()?;
    loop {
        std::thread::sleep(Duration::from_millis(250));
        let over = child.try_wait().ok()?.is_some();
        let batch = match over {
            true => sampler.drain_all(),
            false => sampler.drain(),
        };
        profiler.apply(&batch);
        totals.extend(profiler.end_interval().into_iter().map(|t| (t.tid, t)));
        times.read(&BTreeSet::from([child.id()]));
        if over || times.total_ns(0) > limit_ns {
            break;
        }
    }
    totals
        .into_values()
        .max_by_key(|t| t.total.counts.sampled_ns)
}

fn described(thread: &ProfiledThread) -> serde_json::Value {
    let mut sample = Sample::default();
    thread.total.fill(&mut sample, 1);
    let stall = thread.total.estimate.map(|e| e.memory_stall_share);
    let traits = ThreadTraits {
        wanted_share: 1.0,
        mix: sample.mix,
        memory_stall: stall,
    };
    serde_json::json!({
        "class": classify(traits),
        "memory_stall": stall,
        "memory_limit": sample.memory_limit,
        "fp_usage": thread.total.estimate.map(|e| e.fp_usage()),
        "estimate": thread.total.estimate,
    })
}
