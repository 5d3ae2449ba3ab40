//! Reads that turns and nudges make, counted by the kernel.

use super::support::{apart, first_two, has_two_pus, only, own_pus, part, reads, spawn, start};
use crate::skip::skipped;
use consort_linux::enact::ThreadWish;
use libtest_mimic::{Failed, Trial};

const NUDGES: u64 = 10;

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test(
            "turns::one_in_which_nothing_happens_reads_only_what_threads_do",
            quiet,
        ),
        Trial::test("turns::a_thread_that_is_held_is_nudged_for_less", nudged),
    ]
}

/// Returns true where the kernel counts reads; says so where it does not.
fn counts() -> bool {
    let counts = reads().is_some();
    if !counts {
        skipped("the kernel does not count reads (CONFIG_TASK_XACCT)");
    }
    counts
}

/// Threads of a script that sleeps, and the reads of the quietest turn about them.
fn of_quiet_turns(script: &str) -> Result<[u64; 2], Failed> {
    let dir = tempfile::tempdir()?;
    let words = [dir.path().as_os_str(), "sh".as_ref(), "-c".as_ref()];
    let words = [&words[..], &[script.as_ref()]].concat();
    let mut program = spawn(apart(&mut part("quiet", &words)));
    let line = program.line();
    let numbers = line.split_whitespace().map(str::parse);
    let numbers: Vec<u64> = numbers.collect::<Result<_, _>>()?;
    Ok([numbers[0], numbers[1]])
}

fn quiet() -> Result<(), Failed> {
    if !counts() {
        return Ok(());
    }
    let [one, of_one] = of_quiet_turns("exec sleep 300")?;
    let [more, of_more] = of_quiet_turns("sleep 300 & sleep 300 & wait")?;
    assert_eq!([one, more], [1, 3]);
    // How much is read of a thread depends on what this host counts. Nothing else is read.
    assert_eq!(of_more, more * of_one);
    Ok(())
}

/// Reads of so many nudges of a process's first thread, of which up to so many are held.
fn of_nudges(held: usize) -> Result<u64, Failed> {
    let dir = tempfile::tempdir()?;
    let program = spawn(&mut part("spin", &[]));
    let (mut enactor, thread) = (start(dir.path()), program.thread());
    enactor.keep_stat_files_open(held);
    enactor.adopt(thread, own_pus())?;
    let mut nudge = || {
        let wanted = ThreadWish::Nudge(only(first_two()[0]));
        assert_eq!(enactor.apply(&[(thread, wanted)]).nudged, [thread]);
    };
    nudge();
    let before = reads();
    (0..NUDGES).for_each(|_| nudge());
    let made = reads().zip(before).map(|(now, before)| now - before);
    enactor.close();
    Ok(made.unwrap_or_default())
}

fn nudged() -> Result<(), Failed> {
    if !has_two_pus() || !counts() {
        return Ok(());
    }
    let own = reads().zip(reads()).map(|(a, b)| b.abs_diff(a));
    let own = own.unwrap_or_default();
    // To find its CPU, on that CPU, and after, as a process may become another program at any time.
    // On a busy host the second of these may have to be repeated.
    let held = of_nudges(1)? - own;
    let looked_up = of_nudges(0)? - own;
    assert!(held >= 3 * NUDGES, "{held}");
    assert!(held < looked_up, "{held} of {looked_up}");
    Ok(())
}
