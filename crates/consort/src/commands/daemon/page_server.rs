//! A server of one page over HTTP, for clients that may be hostile.
//!
//! Any user of the host can connect to a loopback port. So connections are few and short: when all
//! places are taken, the one that was open longest makes room for a new one, and each has deadlines.
//! A client that sends its request at once is thus answered however many others keep silent. One
//! thread serves all of them without blocking, and one page per connection is enough for Prometheus.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Most connections at a time.
const MOST: usize = 32;

/// Descriptors of this process per connection: the others are for managing.
const DESCRIPTORS_PER_CONNECTION: u64 = 16;

/// Longest request with its header, bytes.
const MOST_BYTES: usize = 8 << 10;

/// Longest time for a request to arrive, and again for its answer to be taken.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time that a client gets to close after its answer: a reset, which the kernel sends if unread bytes
/// are left at the close, could destroy the answer.
const FAREWELL: Duration = Duration::from_secs(1);

/// Pause after a connection could not be accepted: the listener stays readable, and an error for
/// lack of descriptors or memory passes.
const PAUSE: Duration = Duration::from_millis(200);

/// Most connections that are accepted, or pieces that are read of one, at a time.
const MOST_AT_A_TIME: usize = 16;

/// A server of one page.
pub(super) struct PageServer {
    listener: TcpListener,
    most: usize,
    connections: Vec<PageClient>,
    /// End of the pause after an error of accepting.
    paused_until: Option<Instant>,
    /// True once such an error was logged.
    has_warned: bool,
}

impl PageServer {
    /// Listens at an address.
    pub(super) fn listen(at: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
        let room = limit / DESCRIPTORS_PER_CONNECTION;
        Ok(Self {
            listener,
            most: usize::try_from(room).map_or(MOST, |room| room.clamp(1, MOST)),
            connections: Vec::new(),
            paused_until: None,
            has_warned: false,
        })
    }

    /// Serves a page at a path until the process ends. `page` returns it as it is now.
    pub(super) fn serve(&mut self, path: &str, kind: &str, page: impl Fn() -> String) {
        let answer = |request: &[u8]| answer_to(request, path, kind, &page);
        loop {
            self.wait();
            self.serve_ready(Instant::now(), answer);
        }
    }

    /// Waits until a descriptor is ready or a deadline may have passed.
    fn wait(&self) {
        let is_paused = self.paused_until.is_some_and(|end| Instant::now() < end);
        let listener = (!is_paused).then(|| PollFd::new(self.listener.as_fd(), PollFlags::POLLIN));
        let peers = self.connections.iter().map(|client| {
            let awaited = match client.stage {
                ExchangeStage::Reads(_) | ExchangeStage::Ends => PollFlags::POLLIN,
                ExchangeStage::Writes(_) => PollFlags::POLLOUT,
            };
            PollFd::new(client.stream.as_fd(), awaited)
        });
        let mut fds: Vec<PollFd<'_>> = listener.into_iter().chain(peers).collect();
        let is_idle = self.connections.is_empty() && !is_paused;
        let limit = match is_idle {
            true => PollTimeout::NONE,
            false => PollTimeout::from(200u8),
        };
        if let Err(error) = poll(&mut fds, limit)
            && error != nix::errno::Errno::EINTR
        {
            // The kernel is short of memory; without a pause this would spin.
            std::thread::sleep(PAUSE);
        }
    }

    /// Accepts, reads and writes as much as is possible now.
    fn serve_ready(&mut self, now: Instant, answer: impl Fn(&[u8]) -> Option<Vec<u8>>) {
        self.accept(now);
        self.connections.retain_mut(|c| c.advance(now, &answer));
    }

    fn accept(&mut self, now: Instant) {
        if self.paused_until.is_some_and(|end| now < end) {
            return;
        }
        self.paused_until = None;
        for _ in 0..MOST_AT_A_TIME {
            match self.listener.accept() {
                Ok((stream, _)) if stream.set_nonblocking(true).is_ok() => {
                    if self.connections.len() >= self.most {
                        // The first is the one that was open longest.
                        self.connections.remove(0);
                    }
                    self.connections.push(PageClient {
                        stream,
                        stage: ExchangeStage::Reads(Vec::new()),
                        until: now + PATIENCE,
                    });
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The client has gone again, or a signal came.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::ConnectionAborted | ErrorKind::Interrupted
                    ) => {}
                Err(error) => {
                    self.paused_until = Some(now + PAUSE);
                    if !std::mem::replace(&mut self.has_warned, true) {
                        tracing::warn!("metrics: a connection could not be accepted: {error}");
                    }
                    return;
                }
            }
        }
    }
}

/// One client.
struct PageClient {
    stream: TcpStream,
    stage: ExchangeStage,
    /// Time at which the stage ends, whatever the client does.
    until: Instant,
}

/// Progress of a connection.
enum ExchangeStage {
    /// The request is read; its bytes so far.
    Reads(Vec<u8>),
    /// The answer is written; its remaining bytes.
    Writes(Vec<u8>),
    /// The client may close.
    Ends,
}

impl PageClient {
    /// Advances as far as is possible without waiting; returns false if the connection is over.
    fn advance(&mut self, now: Instant, answer: impl Fn(&[u8]) -> Option<Vec<u8>>) -> bool {
        if now >= self.until {
            return false;
        }
        let is_open = match &mut self.stage {
            ExchangeStage::Reads(request) => {
                let read = read_into(&mut self.stream, request);
                match answer(request) {
                    Some(answer) => {
                        (self.stage, self.until) = (ExchangeStage::Writes(answer), now + PATIENCE);
                        true
                    }
                    None => read.unwrap_or(false),
                }
            }
            ExchangeStage::Writes(_) => true,
            ExchangeStage::Ends => read_into(&mut self.stream, &mut Vec::new()).unwrap_or(false),
        };
        let ExchangeStage::Writes(left) = &mut self.stage else {
            return is_open;
        };
        match write_from(&mut self.stream, left) {
            Ok(true) => {
                // It fails only if the client has gone.
                let _ = self.stream.shutdown(Shutdown::Write);
                (self.stage, self.until) = (ExchangeStage::Ends, now + FAREWELL);
                true
            }
            written => written.is_ok(),
        }
    }
}

/// Reads the bytes that have arrived, up to the longest request; returns false at the end of the stream.
fn read_into(stream: &mut TcpStream, request: &mut Vec<u8>) -> io::Result<bool> {
    let mut piece = [0; 1 << 10];
    for _ in 0..MOST_AT_A_TIME {
        match stream.read(&mut piece) {
            Ok(0) => return Ok(false),
            Ok(n) => request.extend_from_slice(&piece[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => break,
            Err(e) => return Err(e),
        }
        if request.len() > MOST_BYTES {
            break;
        }
    }
    Ok(true)
}

/// Writes as much as the kernel takes; returns true if nothing is left.
fn write_from(stream: &mut TcpStream, left: &mut Vec<u8>) -> io::Result<bool> {
    while !left.is_empty() {
        match stream.write(left) {
            Ok(n) => drop(left.drain(..n)),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}

/// Returns the answer to a request, its head included; `None` while the request is not whole.
fn answer_to(request: &[u8], path: &str, kind: &str, page: impl Fn() -> String) -> Option<Vec<u8>> {
    let text = "text/plain; charset=utf-8";
    let is_whole = request.windows(4).any(|four| four == b"\r\n\r\n")
        || request.windows(2).any(|two| two == b"\n\n");
    if !is_whole && request.len() <= MOST_BYTES {
        return None;
    }
    let first = request.split(|&byte| byte == b'\n').next();
    let first = std::str::from_utf8(first.unwrap_or_default()).unwrap_or_default();
    let mut words = first.split_ascii_whitespace();
    let (method, target) = (words.next(), words.next().unwrap_or_default());
    let requested = target.split('?').next().unwrap_or_default();
    let is_http = words
        .next()
        .is_some_and(|version| version.starts_with("HTTP/1."));
    let (status, kind, body) = match method {
        _ if !is_whole => {
            let body = format!("a request has at most {MOST_BYTES} bytes\n");
            ("431 Request Header Fields Too Large", text, body)
        }
        _ if !is_http => ("400 Bad Request", text, "see HTTP/1.1\n".to_owned()),
        Some("GET" | "HEAD") if requested == path => ("200 OK", kind, page()),
        Some("GET" | "HEAD") => ("404 Not Found", text, format!("see {path}\n")),
        _ => ("405 Method Not Allowed", text, "use GET\n".to_owned()),
    };
    let length = body.len();
    let body = match method {
        Some("HEAD") => String::new(),
        _ => body,
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    );
    Some(answer.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn server() -> (PageServer, SocketAddr) {
        let server = PageServer::listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let at = server.listener.local_addr().unwrap();
        (server, at)
    }

    fn turn(server: &mut PageServer, now: Instant) {
        let page = || "page\n".to_owned();
        server.serve_ready(now, |request| answer_to(request, "/page", "text/x", page));
    }

    fn reported(request: &str) -> String {
        let page = || "page\n".to_owned();
        let answer = answer_to(request.as_bytes(), "/page", "text/x", page);
        String::from_utf8(answer.unwrap_or_default()).unwrap()
    }

    /// Has the server turn until the client has the whole answer.
    fn fetch(server: &mut PageServer, client: &mut TcpStream) -> String {
        client
            .set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        let mut reported = Vec::new();
        let mut piece = [0; 4_096];
        loop {
            turn(server, Instant::now());
            match client.read(&mut piece) {
                Ok(0) => return String::from_utf8(reported).unwrap(),
                Ok(n) => reported.extend_from_slice(&piece[..n]),
                Err(_) => {}
            }
        }
    }

    #[test]
    fn requests_are_answered_by_path_and_method() {
        let page = reported("GET /page?x=1 HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/x\r\n"));
        assert!(page.ends_with("\r\n\r\npage\n"), "{page}");
        let head = reported("HEAD /page HTTP/1.0\n\n");
        assert!(head.contains("Content-Length: 5") && head.ends_with("\r\n\r\n"));
        assert!(reported("GET / HTTP/1.1\r\n\r\n").ends_with("see /page\n"));
        assert!(reported("POST /page HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        assert!(reported("rubbish\r\n\r\n").starts_with("HTTP/1.1 400"));
        assert_eq!(reported("GET /page HTTP/1.1\r\nHost"), "");
        assert!(reported(&"x".repeat(MOST_BYTES + 1)).starts_with("HTTP/1.1 431"));
    }

    #[test]
    fn silent_clients_do_not_keep_others_out() {
        let (mut server, at) = server();
        let mut silent: Vec<TcpStream> = Vec::new();
        for _ in 0..4 * MOST {
            silent.push(TcpStream::connect(at).unwrap());
            turn(&mut server, Instant::now());
        }
        assert!(server.connections.len() <= MOST);
        let mut client = TcpStream::connect(at).unwrap();
        client.write_all(b"GET /page HTTP/1.1\r\n\r\n").unwrap();
        assert!(fetch(&mut server, &mut client).ends_with("page\n"));
        turn(&mut server, Instant::now() + 2 * PATIENCE);
        assert!(server.connections.is_empty());
    }

    #[test]
    fn failed_accept_is_passing() {
        let (mut server, at) = server();
        server.paused_until = Some(Instant::now() + Duration::from_secs(3_600));
        let mut client = TcpStream::connect(at).unwrap();
        client.write_all(b"GET /page HTTP/1.1\r\n\r\n").unwrap();
        turn(&mut server, Instant::now());
        assert!(server.connections.is_empty());
        server.paused_until = Some(Instant::now());
        assert!(fetch(&mut server, &mut client).ends_with("page\n"));
    }

    proptest! {
        #[test]
        fn any_request_is_answered_or_incomplete(request in prop::collection::vec(any::<u8>(), 0..200)) {
            let answer = answer_to(&request, "/page", "text/x", String::new);
            prop_assert!(answer.is_none_or(|answer| answer.starts_with(b"HTTP/1.1 ")));
        }
    }
}
