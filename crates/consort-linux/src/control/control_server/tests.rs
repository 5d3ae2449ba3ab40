use super::*;
use crate::control::{AttachTargets, DaemonConnectionError, connect_daemon};
use crate::group::MAX_LINE_BYTES;
use proptest::prelude::*;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};

/// A folder with a desk whose clerk answers `status` alone.
fn desk() -> (tempfile::TempDir, ControlServer) {
    let folder = tempfile::tempdir().unwrap();
    let clerk = |_, request: &DaemonRequest| match request {
        DaemonRequest::Status => Some(Ok(json!({ "up": true }))),
        DaemonRequest::Reload => Some(Err("no".to_owned())),
        _ => None,
    };
    let path = folder.path().join("control.sock");
    let desk = ControlServer::open(SocketPlace::from_path(&path), false, Box::new(clerk)).unwrap();
    (folder, desk)
}

fn caller(desk: &ControlServer) -> UnixStream {
    let stream = UnixStream::connect(desk.path()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    stream
}

/// Lets the desk attend until the caller has a line.
fn line(desk: &mut ControlServer, caller: &mut UnixStream) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\n") {
        desk.serve_clients(Instant::now());
        match caller.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => text.push(byte[0]),
            Err(_) => {}
        }
    }
    String::from_utf8(text).unwrap()
}

#[test]
fn a_client_asks_and_is_answered_by_the_clerk_or_the_run() {
    let (_folder, mut desk) = desk();
    let path = desk.path().to_owned();
    std::thread::scope(|scope| {
        let client = scope.spawn(move || {
            let mut call = connect_daemon(Some(&path)).unwrap();
            let status = call.send_request(&DaemonRequest::Status).unwrap();
            let refused = call.send_request(&DaemonRequest::Reload).unwrap_err();
            let attached = call.send_request(&DaemonRequest::Attach(AttachTargets::default()));
            (status, refused.to_string(), attached.unwrap())
        });
        while !client.is_finished() {
            for asked in desk.serve_clients(Instant::now()) {
                assert_eq!(asked.peer.pid, std::process::id());
                assert_eq!(
                    asked.request,
                    DaemonRequest::Attach(AttachTargets::default())
                );
                desk.answer(asked.conversation, Ok(json!([])));
            }
        }
        let told = client.join().unwrap();
        assert_eq!(told, (json!({ "up": true }), "no".to_owned(), json!([])));
    });
}

#[test]
fn nonsense_is_answered_and_the_conversation_goes_on() {
    let (_folder, mut desk) = desk();
    let mut caller = caller(&desk);
    caller.write_all(b"rubbish\n{\"version\":9}\n").unwrap();
    assert!(line(&mut desk, &mut caller).contains("not a line of the control language"));
    assert!(line(&mut desk, &mut caller).contains("version 9"));
    caller
        .write_all(&DaemonRequest::Status.to_line().unwrap())
        .unwrap();
    assert!(line(&mut desk, &mut caller).contains("\"up\":true"));
}

#[test]
fn a_line_without_end_is_told_and_ends_the_conversation() {
    let (_folder, mut desk) = desk();
    let mut caller = caller(&desk);
    caller.write_all(&[b'x'; 2 * MAX_LINE_BYTES]).unwrap();
    assert!(line(&mut desk, &mut caller).contains("at most 4096 bytes"));
    assert_eq!(line(&mut desk, &mut caller), "");
    desk.serve_clients(Instant::now() + Duration::from_secs(2));
    assert!(desk.conversations.is_empty());
}

#[test]
fn a_user_has_only_so_many_conversations() {
    let (_folder, mut desk) = desk();
    let guests: Vec<UnixStream> = (0..=MOST_OF_USER).map(|_| caller(&desk)).collect();
    desk.serve_clients(Instant::now());
    let open = desk.conversations.values().filter(|c| !c.is_dismissed());
    assert_eq!(open.count(), MOST_OF_USER);
    let mut told = String::new();
    let mut last = guests.last().unwrap();
    // It asks although it was refused already, as clients do, and learns the reason.
    last.write_all(&DaemonRequest::Status.to_line().unwrap())
        .unwrap();
    BufReader::new(last).read_line(&mut told).unwrap();
    assert!(told.contains("the most that it allows one user"), "{told}");
    drop(guests);
    // The first time reads the request that was sent in vain.
    desk.serve_clients(Instant::now());
    desk.serve_clients(Instant::now());
    assert!(desk.conversations.is_empty());
}

/// Lets users take part in conversations that this process cannot hold as them.
fn talk_as(desk: &mut ControlServer, uid: u32) -> UnixStream {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (peer, now) = (Peer { uid, pid: 0 }, Instant::now());
    let mut guest = ClientConnection::new(ours, peer, now).unwrap();
    if let Some(why) = desk.refusal(peer) {
        guest.dismiss(why, now);
    }
    desk.conversations.insert(desk.next, guest);
    desk.next += 1;
    theirs
}

#[test]
fn root_has_places_although_others_take_all_of_theirs() {
    let (_folder, mut desk) = desk();
    let (all, others, of_user) = (MOST, MOST - RESERVED, MOST_OF_USER);
    desk.places = ConnectionLimits {
        all,
        others,
        of_user,
    };
    let own = nix::unistd::geteuid().as_raw();
    let crowd: Vec<UnixStream> = (0..4 * MOST_OF_USER)
        .map(|n| talk_as(&mut desk, own + 1 + (n / MOST_OF_USER) as u32))
        .collect();
    let open = desk.conversations.values().filter(|c| !c.is_dismissed());
    assert_eq!(open.count(), MOST - RESERVED);
    let mut root = caller(&desk);
    root.write_all(&DaemonRequest::Status.to_line().unwrap())
        .unwrap();
    assert!(line(&mut desk, &mut root).contains("\"up\":true"));
    // Those that were refused keep few descriptors until they leave.
    let dismissed = desk.conversations.values().filter(|c| c.is_dismissed());
    assert!(dismissed.count() <= MOST_DISMISSED);
    desk.serve_clients(Instant::now() + Duration::from_secs(2));
    assert!(desk.conversations.values().all(|c| !c.is_dismissed()));
    drop(crowd);
}

#[test]
fn few_descriptors_mean_fewer_conversations_and_some_for_root() {
    let expect = |all, others, of_user| ConnectionLimits {
        all,
        others,
        of_user,
    };
    assert_eq!(ConnectionLimits::for_descriptors(1_024), expect(64, 48, 16));
    assert_eq!(ConnectionLimits::for_descriptors(128), expect(16, 12, 4));
    assert_eq!(ConnectionLimits::for_descriptors(16), expect(4, 3, 1));
}

#[test]
fn silent_conversation_ends_with_the_reason() {
    let (_folder, mut desk) = desk();
    let (mut silent, mut slow) = (caller(&desk), caller(&desk));
    let begun = Instant::now();
    desk.serve_clients(begun);
    // A line that is never whole is silence, too.
    slow.write_all(b"{").unwrap();
    desk.serve_clients(begun + SILENCE - Duration::from_secs(1));
    assert_eq!(desk.conversations.len(), 2);
    desk.serve_clients(begun + SILENCE + Duration::from_secs(1));
    for peer in [&mut silent, &mut slow] {
        peer.write_all(b"\n").unwrap();
        assert!(line(&mut desk, peer).contains("was silent for 30 s"));
        assert_eq!(line(&mut desk, peer), "");
    }
}

#[test]
fn requests_sent_ahead_are_answered_together_within_the_rate() {
    let (_folder, mut desk) = desk();
    let mut caller = caller(&desk);
    let requests = DaemonRequest::Status.to_line().unwrap().repeat(300);
    caller.write_all(&requests).unwrap();
    let begun = Instant::now();
    let mut answers = Vec::new();
    let (mut turns, mut piece) = (0, [0; 65_536]);
    let lines = |answers: &[u8]| answers.iter().filter(|&&b| b == b'\n').count();
    while lines(&answers) < REQUESTS_PER_S as usize {
        turns += 1;
        desk.serve_clients(begun);
        let n = caller.read(&mut piece).unwrap_or(0);
        answers.extend_from_slice(&piece[..n]);
    }
    // At one answer per turn it would take as many turns as answers.
    assert!(turns < 50, "{turns}");
    desk.serve_clients(begun);
    assert!(caller.read(&mut piece).is_err(), "the rate is exceeded");
    desk.serve_clients(begun + Duration::from_secs(1));
    assert!(caller.read(&mut piece).unwrap() > 0);
}

#[test]
fn who_does_not_read_is_hung_up_on() {
    let (_folder, mut desk) = desk();
    let mut caller = caller(&desk);
    desk.serve_clients(Instant::now());
    let id = *desk.conversations.keys().next().unwrap();
    let large = "x".repeat(4 << 20);
    caller
        .write_all(&DaemonRequest::Explain { tid: 1 }.to_line().unwrap())
        .unwrap();
    while desk.serve_clients(Instant::now()).is_empty() {}
    desk.answer(id, Ok(json!(large)));
    desk.serve_clients(Instant::now());
    assert_eq!(desk.conversations.len(), 1);
    desk.serve_clients(Instant::now() + Duration::from_secs(60));
    assert!(desk.conversations.is_empty());
}

#[test]
fn a_second_daemon_is_refused_and_a_dead_one_s_socket_replaced() {
    let (folder, desk) = desk();
    let path = desk.path().to_owned();
    let again = || ControlServer::open(SocketPlace::from_path(&path), false, Box::new(|_, _| None));
    let error = again().err().unwrap().to_string();
    let expect = format!("a daemon runs already, process {}", std::process::id());
    assert!(error.starts_with(&expect), "{error}");
    drop(desk);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    drop(UnixListener::bind(&path).unwrap());
    again().unwrap();
}

#[test]
fn only_sockets_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path| {
        ControlServer::open(SocketPlace::from_path(path), false, Box::new(|_, _| None))
    };
    let file = folder.path().join("important.txt");
    std::fs::write(&file, "important").unwrap();
    let error = open(&file).err().unwrap().to_string();
    assert!(error.contains("is not a socket"), "{error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "important");
    // A link to a socket is none: what it names belongs to someone else.
    let (socket, link) = (folder.path().join("socket"), folder.path().join("link"));
    drop(UnixListener::bind(&socket).unwrap());
    std::os::unix::fs::symlink(&socket, &link).unwrap();
    assert!(open(&link).is_err());
    assert!(link.is_symlink() && socket.exists());
    std::fs::remove_file(&socket).unwrap();
    for path in [&link, &folder.path().to_owned()] {
        let error = open(path).err().unwrap().to_string();
        assert!(error.contains("is not a socket"), "{error}");
    }
    assert!(link.is_symlink() && !socket.exists());
}

#[test]
fn without_a_daemon_the_places_that_were_tried_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let error = connect_daemon(Some(&path)).unwrap_err();
    assert!(matches!(error, DaemonConnectionError::NoDaemon { .. }));
    assert!(error.to_string().contains("control.sock"), "{error}");
}

#[test]
fn long_requests_count_as_several() {
    let now = Instant::now();
    let mut budget = RequestBudget {
        requests: f64::from(REQUESTS_PER_S),
        at: now,
    };
    assert!(budget.take_request(now));
    budget.charge(Duration::from_millis(100));
    assert!(!budget.take_request(now), "it has taken the time of 400");
    assert!(!budget.is_full(now + Duration::from_secs(1)));
    assert!(!budget.take_request(now + Duration::from_secs(1)));
    assert!(budget.take_request(now + Duration::from_secs(2)));
}

proptest! {
    #[test]
    fn a_budget_is_never_exceeded(gaps_ms in prop::collection::vec(0u64..20, 1..2_000)) {
        let begun = Instant::now();
        let mut budget = RequestBudget { requests: f64::from(REQUESTS_PER_S), at: begun };
        let (mut now, mut taken) = (begun, 0);
        for gap in gaps_ms {
            now += Duration::from_millis(gap);
            taken += u32::from(budget.take_request(now));
        }
        let most = f64::from(REQUESTS_PER_S) * (1.0 + (now - begun).as_secs_f64());
        prop_assert!(f64::from(taken) <= most + 1.0);
    }

    #[test]
    fn whatever_is_sent_the_desk_goes_on(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let (_folder, mut desk) = desk();
        let mut caller = caller(&desk);
        caller.write_all(&bytes).unwrap();
        drop(caller);
        for _ in 0..80 {
            desk.serve_clients(Instant::now());
        }
        prop_assert!(desk.conversations.is_empty());
    }
}
