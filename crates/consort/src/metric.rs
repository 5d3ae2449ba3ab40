//! The user's number that measures progress: where it is read, and a thread that reads it.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Most bytes that are read of a source.
const MOST_BYTES: u64 = 4 << 20;
/// Time within which a page of metrics has to answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Time between two readings of a source while a trial runs.
const PERIOD: Duration = Duration::from_millis(200);

/// Source of a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MetricSource {
    /// The last number in a file.
    File(PathBuf),
    /// The last number that a command prints, which a shell runs.
    Command(String),
    /// A sample of a page for Prometheus on this host.
    Prometheus(PrometheusSample),
    /// The number behind the last occurrence of a text in what the measured command prints; of whole
    /// runs only.
    Printed(String),
}

/// A sample of a page for Prometheus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrometheusSample {
    address: SocketAddr,
    host: String,
    page: String,
    /// Name with labels: this sample; without: the sum of all samples of this name.
    sample: String,
}

const FORMS: &str =
    "file:PATH, cmd:COMMAND, print:TEXT or prometheus:http://127.0.0.1:PORT/metrics#NAME";

impl FromStr for MetricSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, source) = text.split_once(':').unwrap_or((text, ""));
        if source.is_empty() {
            return Err(format!("expected {FORMS}"));
        }
        match kind {
            "file" => Ok(Self::File(source.into())),
            "cmd" => Ok(Self::Command(source.to_owned())),
            "print" => Ok(Self::Printed(source.to_owned())),
            "prometheus" => source.parse().map(Self::Prometheus),
            _ => Err(format!(
                "'{kind}' is not a kind of source; expected {FORMS}"
            )),
        }
    }
}

impl FromStr for PrometheusSample {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = "expected prometheus:http://127.0.0.1:PORT/metrics#NAME";
        let (url, sample) = text.split_once('#').ok_or(wanted)?;
        let url = url.strip_prefix("http://").unwrap_or(url);
        let (host, page) = url.split_once('/').unwrap_or((url, "metrics"));
        let mut known = host
            .to_socket_addrs()
            .map_err(|e| format!("{host}: {e}; {wanted}"))?;
        let address = known.find(|address| address.ip().is_loopback());
        Ok(Self {
            address: address.ok_or_else(|| {
                format!(
                    "{host} is not this host; only a loopback address such as 127.0.0.1 is read"
                )
            })?,
            host: host.to_owned(),
            page: format!("/{page}"),
            sample: sample.to_owned(),
        })
    }
}

impl fmt::Display for MetricSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Command(command) => write!(f, "output of '{command}'"),
            Self::Prometheus(page) => write!(f, "{} at {}", page.sample, page.address),
            Self::Printed(text) => write!(f, "number behind '{text}'"),
        }
    }
}

impl MetricSource {
    /// Reads the number. `printed` is the output of the measured command, if it has ended.
    ///
    /// # Errors
    /// The source cannot be read, or has no number; one sentence.
    pub(crate) fn read(&self, printed: Option<&str>) -> Result<f64, String> {
        match self {
            Self::File(path) => {
                let text = read_file(path).map_err(|e| format!("{self}: {e}"))?;
                last_number(&text).ok_or_else(|| format!("{self}: there is no number in it"))
            }
            Self::Command(command) => self.read_command(command),
            Self::Prometheus(page) => page.read().map_err(|why| format!("{self}: {why}")),
            Self::Printed(text) => {
                let behind =
                    printed.and_then(|printed| Some(printed.rsplit_once(text.as_str())?.1));
                let number =
                    behind.and_then(|behind| behind.split_whitespace().find_map(parse_number));
                number.ok_or_else(|| format!("{self}: the command printed none"))
            }
        }
    }

    fn read_command(&self, command: &str) -> Result<f64, String> {
        let ran = Command::new("/bin/sh")
            .args(["-c", command])
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("{self}: {e}"))?;
        if !ran.status.success() {
            let said = String::from_utf8_lossy(&ran.stderr);
            return Err(format!("{self}: {}: {}", ran.status, said.trim()));
        }
        let text = String::from_utf8_lossy(&ran.stdout);
        last_number(&text).ok_or_else(|| format!("{self}: it printed no number"))
    }
}

impl PrometheusSample {
    fn read(&self) -> Result<f64, String> {
        let text = self.fetch().map_err(|e| e.to_string())?;
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.lines().next().unwrap_or("");
        if !status.contains(" 200") {
            return Err(format!("the server answered '{status}'"));
        }
        sum_of_samples(body, &self.sample).ok_or_else(|| "there is no such sample".to_owned())
    }

    fn fetch(&self) -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&self.address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        // In one piece, because a server may answer and close before the last of several.
        let request = format!(
            "GET {} HTTP/1.0\r\nHost: {}\r\nAccept: text/plain\r\n\r\n",
            self.page, self.host
        );
        stream.write_all(request.as_bytes())?;
        let mut text = Vec::new();
        stream.take(MOST_BYTES).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// Value of the sample of this name and labels, or the sum of all of this name.
fn sum_of_samples(page: &str, wanted: &str) -> Option<f64> {
    let values = page.lines().filter_map(|line| {
        let end = line
            .rfind('}')
            .map_or_else(|| line.find(' '), |brace| Some(brace + 1))?;
        let (sample, value) = line.split_at(end);
        let name = sample.split('{').next()?;
        let is_wanted = sample == wanted || name == wanted;
        let value = value.split_whitespace().next()?.parse::<f64>().ok()?;
        is_wanted.then_some(value)
    });
    values.reduce(|sum, value| sum + value)
}

fn read_file(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last word that is a number, with or without a unit or a sign of punctuation behind it.
fn last_number(text: &str) -> Option<f64> {
    text.split_whitespace().rev().find_map(parse_number)
}

fn parse_number(word: &str) -> Option<f64> {
    let word = word.trim_matches(|c: char| !c.is_ascii_digit() && !"+-.".contains(c));
    word.parse().ok().filter(|number: &f64| number.is_finite())
}

/// A thread that reads a source again and again.
pub(crate) struct MetricSampler {
    shared: Arc<SharedReadings>,
}

#[derive(Default)]
struct SharedReadings {
    ended: AtomicBool,
    readings: Mutex<Readings>,
}

#[derive(Default)]
struct Readings {
    new: Vec<(f64, Instant)>,
    error: Option<String>,
}

impl MetricSampler {
    /// Reads the source from now on.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(source: MetricSource) -> io::Result<Self> {
        let shared = Arc::new(SharedReadings::default());
        let of_thread = shared.clone();
        thread::Builder::new()
            .name("metric".to_owned())
            .spawn(move || {
                while !of_thread.ended.load(Ordering::Relaxed) {
                    let read = source.read(None);
                    let now = Instant::now();
                    let mut readings = of_thread
                        .readings
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner);
                    match read {
                        Ok(value) => readings.new.push((value, now)),
                        Err(why) => readings.error = Some(why),
                    }
                    drop(readings);
                    thread::sleep(PERIOD);
                }
            })?;
        Ok(Self { shared })
    }

    /// The readings since the last call.
    pub(crate) fn take(&self) -> Vec<(f64, Instant)> {
        let mut readings = self
            .shared
            .readings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut readings.new)
    }

    /// The last failure, if there was one.
    pub(crate) fn error(&self) -> Option<String> {
        let readings = self
            .shared
            .readings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        readings.error.clone()
    }
}

impl Drop for MetricSampler {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn sources_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("done");
        std::fs::write(&path, "jobs 12\nrate: 3.5/s\n").unwrap();
        let read = |text: &str, printed| text.parse::<MetricSource>().unwrap().read(printed);
        assert_eq!(read(&format!("file:{}", path.display()), None), Ok(3.5));
        assert_eq!(read("cmd:echo 1 2e3", None), Ok(2000.0));
        let printed = "tps = 99.0\ntps = 101.25 (without connecting)";
        assert_eq!(read("print:tps =", Some(printed)), Ok(101.25));
        assert!(
            read("print:qps =", Some(printed))
                .unwrap_err()
                .contains("printed none")
        );
        assert!(
            read("cmd:exit 3", None)
                .unwrap_err()
                .contains("exit status: 3")
        );
        assert!(
            read("file:/nonexistent", None)
                .unwrap_err()
                .contains("No such file")
        );
    }

    #[test]
    fn pages_for_prometheus_are_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            for _ in 0..2 {
                let (mut client, _) = listener.accept().unwrap();
                let _ = client.read(&mut [0; 512]).unwrap();
                let page =
                    "# HELP a_total b\na_total{q=\"x } y\"} 2\na_total{q=\"z\"} 40 123\nb 7\n";
                write!(client, "HTTP/1.0 200 OK\r\n\r\n{page}").unwrap();
            }
        });
        let read = |name: &str| {
            let text = format!("prometheus:http://{address}/metrics#{name}");
            text.parse::<MetricSource>().unwrap().read(None)
        };
        assert_eq!(read("a_total"), Ok(42.0));
        assert_eq!(read("a_total{q=\"z\"}"), Ok(40.0));
        server.join().unwrap();
    }

    #[test]
    fn wrong_sources_are_refused() {
        for (text, why) in [
            ("file", "expected file:PATH"),
            ("web:x", "'web' is not a kind of source"),
            ("prometheus:http://127.0.0.1:1/metrics", "#NAME"),
            ("prometheus:http://192.0.2.1:80/metrics#x", "not this host"),
        ] {
            let error = text.parse::<MetricSource>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
