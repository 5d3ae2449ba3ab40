//! The parts that this program plays for its own tests.

mod busy;
mod live;
mod owner;
mod pauser;
mod quiet;
mod runner;

use std::ffi::OsString;
use std::process::ExitCode;

/// Beginning of the first argument of a part; no test filter begins so.
pub const PREFIX: &str = "part:";

/// Plays the part that the arguments ask for, if any.
pub fn play() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    let part = args.next()?.into_string().ok()?;
    let part = part.strip_prefix(PREFIX)?.to_owned();
    let args: Vec<OsString> = args.collect();
    Some(match part.as_str() {
        "guardian" => consort_linux::enact::guardian_main(args),
        "busy" => busy::busy(&args),
        "pin" => busy::pin_and_sleep(&args),
        "exec" => busy::exec_from_thread(),
        "fds" => busy::list_descriptors(&args),
        "owner" => owner::owner(&args),
        "nudger" => owner::nudger(&args),
        "spin" => busy::spin(),
        "pauser" => pauser::pauser(&args),
        "short" => owner::short(&args),
        "full" => owner::full(&args),
        "live" => live::live(&args, false),
        "live-dry" => live::live(&args, true),
        "quiet" => quiet::quiet(&args),
        "run" => runner::run(&args),
        "hold" => runner::hold(&args),
        other => panic!("no such part: {other}"),
    })
}
