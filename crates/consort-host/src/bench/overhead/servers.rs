//! Servers with the clients that measure them, if they are installed.

use super::{LoadCost, OverheadLoad};
use crate::crew::process::BenchProcess;
use consort_experiment::bench::BenchError;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// User that a database is run as, since it refuses to be run as root.
const NOBODY: u32 = 65_534;
/// Longest time that a server may take to listen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that runs.
pub(super) struct LoadServer {
    load: OverheadLoad,
    process: BenchProcess,
    folder: PathBuf,
    port: u16,
}

/// A program that a load needs and that is not installed.
pub(super) fn missing_program(load: OverheadLoad) -> Option<&'static str> {
    let needs: &[&'static str] = match load {
        OverheadLoad::Pgbench => &["initdb", "postgres", "pgbench"],
        OverheadLoad::Redis => &["redis-server", "redis-benchmark"],
        OverheadLoad::Nginx => &["nginx", "wrk"],
        _ => &[],
    };
    needs.iter().copied().find(|name| program(name).is_none())
}

/// Path of a program, also where Debian keeps those of databases.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let databases = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let databases = databases.map(|version| version.path().join("bin"));
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let mut found = folders.chain(databases).map(|folder| folder.join(name));
    found.find(|path| path.exists())
}

fn command(name: &str) -> Result<Command, BenchError> {
    let path = program(name).ok_or_else(|| BenchError::Live(format!("{name} is not installed")))?;
    let mut command = Command::new(path);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ok(command)
}

fn live_error(error: &impl ToString) -> BenchError {
    BenchError::Live(error.to_string())
}

fn run_to_end(command: &mut Command) -> Result<String, BenchError> {
    let output = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| live_error(&error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let reason = complaint.trim().replace('\n', "; ");
    let program = Path::new(command.get_program()).display();
    Err(live_error(&format!("{program} failed: {reason}")))
}

impl LoadServer {
    /// Starts the server of a load; `None` if the load has no server.
    pub(super) fn start(load: OverheadLoad, folder: &Path) -> Result<Option<Self>, BenchError> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.map_err(|error| live_error(&error))?.port();
        let words = port.to_string();
        let command = match load {
            OverheadLoad::Pgbench => database_command(folder, &words)?,
            OverheadLoad::Redis => {
                let mut command = command("redis-server")?;
                command.args([
                    "--port",
                    &words,
                    "--save",
                    "",
                    "--bind",
                    "127.0.0.1",
                    "--dir",
                ]);
                command.arg(folder);
                command
            }
            OverheadLoad::Nginx => web_command(folder, port)?,
            _ => return Ok(None),
        };
        let server = Self {
            load,
            process: BenchProcess::start(command)?,
            folder: folder.to_owned(),
            port,
        };
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > end {
                return Err(live_error(&format!("{} does not listen", load.name())));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        if load == OverheadLoad::Pgbench {
            server.fill_database(end)?;
        }
        Ok(Some(server))
    }

    /// Fills the database; one that listens may still refuse clients, because it is starting up.
    fn fill_database(&self, end: Instant) -> Result<(), BenchError> {
        loop {
            match run_to_end(self.pgbench()?.args(["-i", "-q", "-s", "5", "postgres"])) {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() > end => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Sends it requests for some time, with its own client.
    pub(super) fn run_client(&mut self, time: Duration) -> Result<LoadCost, BenchError> {
        let seconds = (time.as_secs_f64().ceil() as u64).to_string();
        match self.load {
            OverheadLoad::Pgbench => self.run_pgbench(&seconds),
            OverheadLoad::Redis => self.run_redis_benchmark(time),
            _ => self.run_wrk(&seconds),
        }
    }

    fn pgbench(&self) -> Result<Command, BenchError> {
        let mut command = command("pgbench")?;
        let port = self.port.to_string();
        command.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &port]);
        Ok(command)
    }

    fn run_pgbench(&self, seconds: &str) -> Result<LoadCost, BenchError> {
        let logs = tempfile::tempdir_in(&self.folder).map_err(|error| live_error(&error))?;
        let mut client = self.pgbench()?;
        client.args(["-c", "4", "-j", "2", "-l", "-T", seconds, "postgres"]);
        let output = run_to_end(client.current_dir(logs.path()))?;
        let mut times = Vec::new();
        for file in fs::read_dir(logs.path())
            .map_err(|error| live_error(&error))?
            .flatten()
        {
            let text = fs::read_to_string(file.path()).map_err(|error| live_error(&error))?;
            let time = |line: &str| line.split(' ').nth(2)?.parse::<f64>().ok();
            times.extend(text.lines().filter_map(time));
        }
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied();
        Ok(LoadCost {
            cost: 1.0 / number_after(&output, "tps = ")?,
            median_us: at(0.5).unwrap_or(0.0),
            p99_us: at(0.99).unwrap_or(0.0),
        })
    }

    fn run_redis_benchmark(&self, time: Duration) -> Result<LoadCost, BenchError> {
        let requests = (time.as_secs_f64() * 40_000.0) as u64;
        let (port, requests) = (self.port.to_string(), requests.to_string());
        let mut client = command("redis-benchmark")?;
        client.args([
            "-p", &port, "-t", "get", "-c", "20", "-n", &requests, "--csv",
        ]);
        let output = run_to_end(&mut client)?;
        // test, rps, then latencies in ms: average, least, median, 95th and 99th percentile, most.
        let last = output.lines().last().unwrap_or_default();
        let field = |n: usize| -> Result<f64, BenchError> {
            let text = last.split(',').nth(n).unwrap_or_default();
            text.trim_matches('"')
                .parse()
                .map_err(|_| live_error(&"redis-benchmark has another format"))
        };
        Ok(LoadCost {
            cost: 1.0 / field(1)?,
            median_us: 1e3 * field(4)?,
            p99_us: 1e3 * field(6)?,
        })
    }

    fn run_wrk(&self, seconds: &str) -> Result<LoadCost, BenchError> {
        let url = format!("http://127.0.0.1:{}/", self.port);
        let time = format!("{seconds}s");
        let mut client = command("wrk")?;
        client.args(["-t", "2", "-c", "16", "-d", &time, "--latency", &url]);
        let output = run_to_end(&mut client)?;
        Ok(LoadCost {
            cost: 1.0 / number_after(&output, "Requests/sec:")?,
            median_us: time_after(&output, "50%").unwrap_or(0.0),
            p99_us: time_after(&output, "99%").unwrap_or(0.0),
        })
    }
}

/// A command that serves a new database.
fn database_command(folder: &Path, port: &str) -> Result<Command, BenchError> {
    let data = folder.join("data");
    fs::create_dir(&data).map_err(|error| live_error(&error))?;
    let is_root = nix::unistd::Uid::effective().is_root();
    if is_root {
        chown(&data, Some(NOBODY), Some(NOBODY)).map_err(|error| live_error(&error))?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))
            .map_err(|error| live_error(&error))?;
    }
    let own = |mut command: Command| {
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    };
    let mut made = own(command("initdb")?);
    run_to_end(
        made.args(["-A", "trust", "-U", "postgres", "--no-sync", "-D"])
            .arg(&data),
    )?;
    let mut server = own(command("postgres")?);
    server
        .arg("-D")
        .arg(&data)
        .args(["-F", "-p", port, "-c", "listen_addresses=127.0.0.1"]);
    server.arg("-k").arg(&data);
    Ok(server)
}

/// A command that serves a short page.
fn web_command(folder: &Path, port: u16) -> Result<Command, BenchError> {
    let at = folder.display();
    let text = format!(
        "daemon off; worker_processes 2; pid {at}/pid; error_log /dev/null;\n\
         events {{}}\nhttp {{ access_log off; client_body_temp_path {at}/body;\n\
         proxy_temp_path {at}/proxy; fastcgi_temp_path {at}/fastcgi; uwsgi_temp_path {at}/uwsgi;\n\
         scgi_temp_path {at}/scgi;\n\
         server {{ listen 127.0.0.1:{port}; location / {{ return 200 \"hello\"; }} }} }}\n"
    );
    let file = folder.join("nginx.conf");
    fs::write(&file, text).map_err(|error| live_error(&error))?;
    let mut server = command("nginx")?;
    server.arg("-c").arg(file);
    Ok(server)
}

fn number_after(text: &str, what: &str) -> Result<f64, BenchError> {
    let rest = text.split(what).nth(1).unwrap_or_default().trim_start();
    let number = rest
        .split(|c: char| !(c.is_ascii_digit() || c == '.'))
        .next();
    let number = number.and_then(|number| number.parse().ok());
    number.ok_or_else(|| live_error(&format!("no '{what}' in what a client printed")))
}

/// A time as `wrk` prints it, us.
fn time_after(text: &str, what: &str) -> Option<f64> {
    let word = text.split(what).nth(1)?.split_whitespace().next()?;
    let scale = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    let (unit, factor) = scale.into_iter().find(|(unit, _)| word.ends_with(unit))?;
    Some(word.strip_suffix(unit)?.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_output_is_read() {
        assert_eq!(
            number_after("tps = 1234.5 (without", "tps = ").unwrap(),
            1234.5
        );
        let reported = "  Latency Distribution\n     50%  213.00us\n     99%    2.51ms\n";
        assert_eq!(time_after(reported, "50%"), Some(213.0));
        assert_eq!(time_after(reported, "99%"), Some(2510.0));
        assert!(number_after("nothing", "tps = ").is_err());
    }
}
