//! `consort`: the command line. It is a library, which is compiled in parallel with what it uses; a
//! program waits until all of that is done.

use std::process::ExitCode;

fn main() -> ExitCode {
    consort::main()
}
