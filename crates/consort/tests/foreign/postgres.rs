//! A database server with its clients: many processes, one of which daemonises.

use super::common::{skipped, warnings};
use super::compiled::have;
use super::side_by_side::{managed, threads};
use std::os::unix::fs::chown;
use std::process::Command;

/// Makes a database, starts the server, measures, stops it.
const SCRIPT: &str = r#"
set -e
initdb -A trust -U bench -D "$1/data" --no-sync >"$1/log"
pg_ctl -D "$1/data" -s -w -l "$1/log" \
    -o "-c listen_addresses= -c unix_socket_directories=$1 -c fsync=off" start
pgbench -q -i -s 1 -h "$1" -U bench postgres >"$1/log" 2>&1
pgbench -c 4 -j 2 -T 2 -h "$1" -U bench postgres
pg_ctl -D "$1/data" -s -w -m fast stop
"#;

#[test]
fn a_database_server_and_its_benchmark_run() {
    if !["initdb", "pg_ctl", "pgbench"].into_iter().all(have) {
        return;
    }
    let folder = super::common::folder();
    let script = ["sh", "-c", SCRIPT, "sh"];
    let mut bench = Command::new(script[0]);
    if nix::unistd::geteuid().is_root() {
        // The server refuses to run as root.
        if !have("setpriv") {
            return skipped("pgbench: the server wants an ordinary user");
        }
        chown(folder.path(), Some(65_534), Some(65_534)).unwrap();
        bench = Command::new("setpriv");
        bench.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
        bench.arg(script[0]);
    }
    bench.args(&script[1..]).arg(folder.path()).current_dir("/");
    let run = managed(&bench);
    let said = String::from_utf8_lossy(&run.output.stdout);
    assert!(run.output.status.success(), "{:?}", run.output);
    assert!(said.contains("number of failed transactions: 0"), "{said}");
    let servers = threads(&run.report)
        .iter()
        .filter(|t| t["name"] == "postgres");
    assert!(servers.count() > 4, "{:#}", run.report);
    assert_eq!(warnings(&run.report), [""; 0]);
}
