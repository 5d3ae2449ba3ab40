//! Variables that tell malleable programs how many threads to make.
//!
//! Only variables that the user has not set are set, and only for commands that join a group. The
//! count is that of the usable PUs, which a gang gives to each program: a smaller team would leave
//! cores idle, and the threads of a larger one would only take turns on them.
//!
//! | variable | who reads it | source |
//! |---|---|---|
//! | `OMP_NUM_THREADS` | OpenMP; OpenBLAS and oneMKL where their own variables are not set | OpenMP API 5.2, section 21.1.2; OpenBLAS README, "Setting the number of threads using environment variables"; oneMKL Developer Guide, "Setting the Number of Threads Using an OpenMP* Environment Variable" |
//! | `GOMAXPROCS` | Go programs | documentation of Go's package runtime, "Environment Variables" |
//! | `RAYON_NUM_THREADS` | Rust programs that use rayon | documentation of rayon's `ThreadPoolBuilder::num_threads` |
//!
//! oneTBB reads no such variable; it counts the PUs of the affinity mask when it starts.

use super::Host;
use std::env::var_os;

const VARIABLES: [&str; 3] = ["OMP_NUM_THREADS", "GOMAXPROCS", "RAYON_NUM_THREADS"];

/// The variables that the user has not set, with the number of usable PUs.
pub(super) fn team_sizes(host: &Host) -> Vec<(&'static str, String)> {
    let pus = host.discovery.topology.pus().len();
    unset_variables(pus, |name| var_os(name).is_some())
}

fn unset_variables(pus: usize, is_set: impl Fn(&str) -> bool) -> Vec<(&'static str, String)> {
    let free = VARIABLES.into_iter().filter(|name| !is_set(name));
    free.map(|name| (name, pus.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_has_set_stays_as_it_is() {
        let set = unset_variables(8, |name| name == "GOMAXPROCS");
        let eight = "8".to_owned();
        assert_eq!(
            set,
            [
                ("OMP_NUM_THREADS", eight.clone()),
                ("RAYON_NUM_THREADS", eight)
            ]
        );
    }
}
