//! Compares the hardware units with their policies for as many quanta as one likes.

use clap::Parser;
use consort_rtl::{
    PolicyRecording, RtlModel, UnitParameters, UnitPolicy, find_verilator, replay,
    run_random_quanta,
};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

/// Compares the units with their policies, random quanta first, then recorded ones.
#[derive(Debug, Parser)]
struct Arguments {
    /// Random quanta for each setting.
    #[arg(long, default_value_t = 1_000_000)]
    quanta: u64,
    /// Seed of the stimuli.
    #[arg(long, default_value_t = 21)]
    seed: u64,
    /// Cores of chips with one group.
    #[arg(long, value_delimiter = ',', default_values_t = [2, 4, 8, 16, 32])]
    cores: Vec<usize>,
    /// Policies, all by default.
    #[arg(long, value_delimiter = ',')]
    policies: Vec<UnitPolicy>,
    /// Random quanta for each of the other options and layouts.
    #[arg(long, default_value_t = 20_000)]
    variants: u64,
    /// Quanta of each recorded run of A4, A6 and A12; 0 leaves them out.
    #[arg(long, default_value_t = 2_000)]
    recorded: usize,
    /// Folder in which models are built.
    #[arg(long)]
    folder: PathBuf,
}

/// Programs of A4, A6 and A12 on one large and three small cores, by threads.
const RUNS: [(&str, &[(&str, u32)]); 7] = [
    ("A4", &[("gcc", 1), ("gcc", 1), ("gcc", 1), ("gcc", 1)]),
    (
        "A4",
        &[
            ("mcf", 1),
            ("mcf", 1),
            ("mcf", 1),
            ("mcf", 1),
            ("mcf", 1),
            ("mcf", 1),
            ("mcf", 1),
            ("mcf", 1),
        ],
    ),
    ("A6", &[("ocean.cont", 4)]),
    ("A6", &[("radiosity", 8)]),
    ("A6", &[("water.nsq", 16)]),
    ("A12", &[("gcc", 1), ("mcf", 1), ("hmmer", 1), ("lbm", 1)]),
    (
        "A12",
        &[("povray", 1), ("milc", 1), ("astar", 1), ("sjeng", 1)],
    ),
];

/// The other options, and the layouts of the many-core machines.
fn variants(policy: UnitPolicy) -> Vec<UnitParameters> {
    let with = |cores, groups, regions, queue| UnitParameters {
        groups,
        regions,
        queue,
        ..UnitParameters::new(policy, cores)
    };
    let mut all = vec![
        with(4, 1, true, false),
        with(5, 1, true, false),
        with(8, 2, true, true),
        with(8, 2, false, true),
        with(16, 4, true, false),
        with(32, 8, true, true),
    ];
    if policy == UnitPolicy::Tcs {
        for (lagging, immediate) in [(true, false), (false, true), (true, true)] {
            all.push(UnitParameters {
                lagging,
                immediate,
                ..UnitParameters::new(policy, 4)
            });
        }
    }
    all
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Err(reason) = find_verilator() {
        println!("skipped: {reason}");
        return ExitCode::SUCCESS;
    }
    match run_comparisons(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cosim: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_comparisons(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let all = [UnitPolicy::Hrrs, UnitPolicy::Kuths, UnitPolicy::Tcs];
    let requested = &arguments.policies;
    for policy in all
        .into_iter()
        .filter(|p| requested.is_empty() || requested.contains(p))
    {
        for &cores in &arguments.cores {
            compare_random(
                &UnitParameters::new(policy, cores),
                arguments.quanta,
                arguments,
            )?;
        }
        for setting in variants(policy).iter().filter(|_| arguments.variants > 0) {
            compare_random(setting, arguments.variants, arguments)?;
        }
        if arguments.recorded > 0 {
            compare_recorded(policy, arguments)?;
        }
    }
    Ok(())
}

fn compare_random(
    setting: &UnitParameters,
    quanta: u64,
    arguments: &Arguments,
) -> Result<(), Box<dyn Error>> {
    let mut model = RtlModel::build(setting, &arguments.folder, None)?;
    let summary = run_random_quanta(setting, &mut model, quanta, arguments.seed)?;
    println!("{setting}: {summary}");
    Ok(())
}

fn compare_recorded(policy: UnitPolicy, arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let setting = UnitParameters::new(policy, 4);
    for (study, programs) in RUNS {
        let recorded = setting.policy_text();
        let recording =
            PolicyRecording::record_run("acmp-1+3", &recorded, programs, arguments.recorded)?;
        let mut model = RtlModel::build(&setting, &arguments.folder, None)?;
        let (summary, alike) = replay(&setting, &mut model, &recording)?;
        let (program, intervals) = (programs[0].0, recording.intervals());
        println!(
            "{setting}, {study} with {program}: {summary}; the large core as recorded in {alike} \
             of {intervals} intervals"
        );
    }
    Ok(())
}
