use super::*;
use crate::control::{AttachTargets, DaemonConnectionError, connect_daemon};
use crate::protocol::MAX_LINE_BYTES;
use proptest::prelude::*;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

fn server() -> (tempfile::TempDir, ControlServer) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let server = ControlServer::open(SocketPlace::from_path(&path), false).unwrap();
    (folder, server)
}

/// Serves clients, of whom `status` and `reload` alone are answered; returns the other requests.
fn serve(server: &mut ControlServer, now: Instant) -> Vec<(u64, Peer, DaemonRequest)> {
    let mut accepted = Vec::new();
    server.serve_clients(now, |connection, peer, request| match request {
        DaemonRequest::Status => Some(Ok(json!({ "up": true }))),
        DaemonRequest::Reload => Some(Err("no".to_owned())),
        other => {
            accepted.push((connection, peer, other));
            None
        }
    });
    accepted
}

fn caller(server: &ControlServer) -> UnixStream {
    let stream = UnixStream::connect(server.path()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    stream
}

/// Serves until the caller has a line.
fn line(server: &mut ControlServer, caller: &mut UnixStream) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\n") {
        serve(server, Instant::now());
        match caller.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => text.push(byte[0]),
            Err(_) => {}
        }
    }
    String::from_utf8(text).unwrap()
}

fn status_line() -> Vec<u8> {
    DaemonRequest::Status.to_line().unwrap()
}

#[test]
fn requests_are_answered_at_once_or_later() {
    let (_folder, mut server) = server();
    let path = server.path().to_owned();
    std::thread::scope(|scope| {
        let client = scope.spawn(move || {
            let mut daemon = connect_daemon(Some(&path)).unwrap();
            let status = daemon.send_request(&DaemonRequest::Status).unwrap();
            let refused = daemon.send_request(&DaemonRequest::Reload).unwrap_err();
            let attach = DaemonRequest::Attach(AttachTargets::default());
            let attached = daemon.send_request(&attach).unwrap();
            (status, refused.to_string(), attached)
        });
        while !client.is_finished() {
            for (connection, peer, request) in serve(&mut server, Instant::now()) {
                assert_eq!(peer.pid, std::process::id());
                assert_eq!(request, DaemonRequest::Attach(AttachTargets::default()));
                server.answer(connection, Ok(json!([])));
            }
        }
        let answers = client.join().unwrap();
        assert_eq!(answers, (json!({ "up": true }), "no".to_owned(), json!([])));
    });
}

#[test]
fn connection_survives_faulty_lines() {
    let (_folder, mut server) = server();
    let mut caller = caller(&server);
    caller.write_all(b"rubbish\n{\"version\":9}\n").unwrap();
    assert!(line(&mut server, &mut caller).contains("not a line of the control language"));
    assert!(line(&mut server, &mut caller).contains("version 9"));
    caller.write_all(&status_line()).unwrap();
    assert!(line(&mut server, &mut caller).contains("\"up\":true"));
}

#[test]
fn endless_line_is_refused_and_disconnected() {
    let (_folder, mut server) = server();
    let mut caller = caller(&server);
    caller.write_all(&[b'x'; 2 * MAX_LINE_BYTES]).unwrap();
    assert!(line(&mut server, &mut caller).contains("at most 4096 bytes"));
    assert_eq!(line(&mut server, &mut caller), "");
    serve(&mut server, Instant::now() + Duration::from_secs(2));
    assert!(server.connections.is_empty());
}

#[test]
fn connections_of_one_user_are_limited() {
    let (_folder, mut server) = server();
    let clients: Vec<UnixStream> = (0..=MAX_OF_USER).map(|_| caller(&server)).collect();
    serve(&mut server, Instant::now());
    let open = server.connections.values().filter(|c| !c.is_dismissed());
    assert_eq!(open.count(), MAX_OF_USER);
    let mut answer = String::new();
    let mut last = clients.last().unwrap();
    // Clients send a request although they were refused already, and read the reason.
    last.write_all(&status_line()).unwrap();
    BufReader::new(last).read_line(&mut answer).unwrap();
    assert!(
        answer.contains("the most that it allows one user"),
        "{answer}"
    );
    drop(clients);
    // The first time reads the request that was sent in vain.
    serve(&mut server, Instant::now());
    serve(&mut server, Instant::now());
    assert!(server.connections.is_empty());
}

/// A connection of a user that this process cannot become.
fn connect_as(server: &mut ControlServer, uid: u32) -> UnixStream {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (peer, now) = (Peer { uid, pid: 0 }, Instant::now());
    let mut client = ClientConnection::new(ours, peer, now).unwrap();
    if let Some(why) = server.refusal(peer) {
        client.dismiss(why, now);
    }
    server.connections.insert(server.next, client);
    server.next += 1;
    theirs
}

#[test]
fn places_stay_reserved_for_root() {
    let (_folder, mut server) = server();
    server.limits = ConnectionLimits {
        all: MAX_CONNECTIONS,
        others: MAX_CONNECTIONS - RESERVED,
        of_user: MAX_OF_USER,
    };
    let own = nix::unistd::geteuid().as_raw();
    let crowd: Vec<UnixStream> = (0..4 * MAX_OF_USER)
        .map(|n| connect_as(&mut server, own + 1 + (n / MAX_OF_USER) as u32))
        .collect();
    let open = server.connections.values().filter(|c| !c.is_dismissed());
    assert_eq!(open.count(), MAX_CONNECTIONS - RESERVED);
    let mut root = caller(&server);
    root.write_all(&status_line()).unwrap();
    assert!(line(&mut server, &mut root).contains("\"up\":true"));
    // The ones that were refused keep few descriptors until they leave.
    let dismissed = server.connections.values().filter(|c| c.is_dismissed());
    assert!(dismissed.count() <= MAX_DISMISSED);
    serve(&mut server, Instant::now() + Duration::from_secs(2));
    assert!(server.connections.values().all(|c| !c.is_dismissed()));
    drop(crowd);
}

#[test]
fn few_descriptors_mean_fewer_connections() {
    let expect = |all, others, of_user| ConnectionLimits {
        all,
        others,
        of_user,
    };
    let limits = ConnectionLimits::for_descriptors;
    assert_eq!(limits(1_024), expect(64, 48, 16));
    assert_eq!(limits(128), expect(16, 12, 4));
    assert_eq!(limits(16), expect(4, 3, 1));
}

#[test]
fn silent_connection_ends_with_reason() {
    let (_folder, mut server) = server();
    let (mut silent, mut slow) = (caller(&server), caller(&server));
    let begun = Instant::now();
    serve(&mut server, begun);
    // A line that is never complete is silence, too.
    slow.write_all(b"{").unwrap();
    serve(&mut server, begun + MAX_SILENCE - Duration::from_secs(1));
    assert_eq!(server.connections.len(), 2);
    serve(&mut server, begun + MAX_SILENCE + Duration::from_secs(1));
    for peer in [&mut silent, &mut slow] {
        peer.write_all(b"\n").unwrap();
        assert!(line(&mut server, peer).contains("was silent for 30 s"));
        assert_eq!(line(&mut server, peer), "");
    }
}

#[test]
fn pipelined_requests_are_answered_within_rate() {
    let (_folder, mut server) = server();
    let mut caller = caller(&server);
    caller.write_all(&status_line().repeat(300)).unwrap();
    let begun = Instant::now();
    let mut answers = Vec::new();
    let (mut turns, mut piece) = (0, [0; 65_536]);
    let lines = |answers: &[u8]| answers.iter().filter(|&&b| b == b'\n').count();
    while lines(&answers) < REQUESTS_PER_S as usize {
        turns += 1;
        serve(&mut server, begun);
        let n = caller.read(&mut piece).unwrap_or(0);
        answers.extend_from_slice(&piece[..n]);
    }
    // At one answer per turn it would take as many turns as answers.
    assert!(turns < 50, "{turns}");
    serve(&mut server, begun);
    assert!(caller.read(&mut piece).is_err(), "the rate is exceeded");
    serve(&mut server, begun + Duration::from_secs(1));
    assert!(caller.read(&mut piece).unwrap() > 0);
}

#[test]
fn peer_that_does_not_read_is_disconnected() {
    let (_folder, mut server) = server();
    let mut caller = caller(&server);
    let explain = DaemonRequest::Explain { tid: 1 };
    caller.write_all(&explain.to_line().unwrap()).unwrap();
    let connection = loop {
        if let Some((connection, ..)) = serve(&mut server, Instant::now()).pop() {
            break connection;
        }
    };
    server.answer(connection, Ok(json!("x".repeat(4 << 20))));
    serve(&mut server, Instant::now());
    assert_eq!(server.connections.len(), 1);
    serve(&mut server, Instant::now() + Duration::from_secs(60));
    assert!(server.connections.is_empty());
}

#[test]
fn dropped_server_removes_its_socket() {
    let (folder, server) = server();
    drop(server);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn missing_daemon_is_reported_with_places() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let error = connect_daemon(Some(&path)).unwrap_err();
    assert!(matches!(error, DaemonConnectionError::NoDaemon { .. }));
    assert!(error.to_string().contains("control.sock"), "{error}");
}

#[test]
fn long_requests_count_as_several() {
    let now = Instant::now();
    let mut budget = RequestBudget::full(now);
    assert!(budget.take_request(now));
    budget.charge(Duration::from_millis(100));
    assert!(!budget.take_request(now), "it has taken the time of 400");
    assert!(!budget.is_full(now + Duration::from_secs(1)));
    assert!(!budget.take_request(now + Duration::from_secs(1)));
    assert!(budget.take_request(now + Duration::from_secs(2)));
}

proptest! {
    #[test]
    fn budget_is_never_exceeded(gaps_ms in prop::collection::vec(0u64..20, 1..2_000)) {
        let begun = Instant::now();
        let mut budget = RequestBudget::full(begun);
        let (mut now, mut taken) = (begun, 0);
        for gap in gaps_ms {
            now += Duration::from_millis(gap);
            taken += u32::from(budget.take_request(now));
        }
        let most = f64::from(REQUESTS_PER_S) * (1.0 + (now - begun).as_secs_f64());
        prop_assert!(f64::from(taken) <= most + 1.0);
    }

    #[test]
    fn server_survives_arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let (_folder, mut server) = server();
        let mut caller = caller(&server);
        caller.write_all(&bytes).unwrap();
        drop(caller);
        for _ in 0..80 {
            serve(&mut server, Instant::now());
        }
        prop_assert!(server.connections.is_empty());
    }
}
