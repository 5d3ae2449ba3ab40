use super::*;
use crate::control::{Attachment, CallError, call};
use crate::group::MAX_LINE_BYTES;
use proptest::prelude::*;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};

/// A folder with a desk whose clerk answers `status` alone.
fn desk() -> (tempfile::TempDir, Desk) {
    let folder = tempfile::tempdir().unwrap();
    let clerk = |_, request: &Request| match request {
        Request::Status => Some(Ok(json!({ "up": true }))),
        Request::Reload => Some(Err("no".to_owned())),
        _ => None,
    };
    let path = folder.path().join("control.sock");
    let desk = Desk::open(&path, false, Box::new(clerk)).unwrap();
    (folder, desk)
}

fn caller(desk: &Desk) -> UnixStream {
    let stream = UnixStream::connect(desk.path()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    stream
}

/// Lets the desk attend until the caller has a line.
fn line(desk: &mut Desk, caller: &mut UnixStream) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\n") {
        desk.attend(Instant::now());
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
            let mut call = call(Some(&path)).unwrap();
            let status = call.ask(&Request::Status).unwrap();
            let refused = call.ask(&Request::Reload).unwrap_err();
            let attached = call.ask(&Request::Attach(Attachment::default()));
            (status, refused.to_string(), attached.unwrap())
        });
        while !client.is_finished() {
            for asked in desk.attend(Instant::now()) {
                assert_eq!(asked.peer.pid, std::process::id());
                assert_eq!(asked.request, Request::Attach(Attachment::default()));
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
    caller.write_all(&Request::Status.line().unwrap()).unwrap();
    assert!(line(&mut desk, &mut caller).contains("\"up\":true"));
}

#[test]
fn a_line_without_end_is_told_and_ends_the_conversation() {
    let (_folder, mut desk) = desk();
    let mut caller = caller(&desk);
    caller.write_all(&[b'x'; 2 * MAX_LINE_BYTES]).unwrap();
    assert!(line(&mut desk, &mut caller).contains("at most 4096 bytes"));
    assert_eq!(line(&mut desk, &mut caller), "");
    desk.attend(Instant::now());
    assert!(desk.conversations.is_empty());
}

#[test]
fn a_user_has_only_so_many_conversations() {
    let (_folder, mut desk) = desk();
    let guests: Vec<UnixStream> = (0..=MOST_OF_USER).map(|_| caller(&desk)).collect();
    desk.attend(Instant::now());
    assert_eq!(desk.conversations.len(), MOST_OF_USER);
    let mut told = String::new();
    let last = guests.last().unwrap();
    BufReader::new(last).read_line(&mut told).unwrap();
    assert!(told.contains("try again later"), "{told}");
    drop(guests);
    desk.attend(Instant::now());
    assert!(desk.conversations.is_empty());
}

#[test]
fn who_does_not_read_is_hung_up_on() {
    let (_folder, mut desk) = desk();
    let mut caller = caller(&desk);
    desk.attend(Instant::now());
    let id = *desk.conversations.keys().next().unwrap();
    let large = "x".repeat(4 << 20);
    caller
        .write_all(&Request::Explain { tid: 1 }.line().unwrap())
        .unwrap();
    while desk.attend(Instant::now()).is_empty() {}
    desk.answer(id, Ok(json!(large)));
    desk.attend(Instant::now());
    assert_eq!(desk.conversations.len(), 1);
    desk.attend(Instant::now() + Duration::from_secs(60));
    assert!(desk.conversations.is_empty());
}

#[test]
fn a_second_daemon_is_refused_and_a_dead_one_s_socket_replaced() {
    let (folder, desk) = desk();
    let path = desk.path().to_owned();
    let again = || Desk::open(&path, false, Box::new(|_, _| None));
    let error = again().err().unwrap().to_string();
    let expect = format!("a daemon runs already, process {}", std::process::id());
    assert!(error.starts_with(&expect), "{error}");
    drop(desk);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    drop(UnixListener::bind(&path).unwrap());
    again().unwrap();
}

#[test]
fn without_a_daemon_the_places_that_were_tried_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let error = call(Some(&path)).unwrap_err();
    assert!(matches!(error, CallError::NoDaemon { .. }));
    assert!(error.to_string().contains("control.sock"), "{error}");
}

proptest! {
    #[test]
    fn a_budget_is_never_exceeded(gaps_ms in prop::collection::vec(0u64..20, 1..2_000)) {
        let begun = Instant::now();
        let mut budget = Budget { requests: f64::from(REQUESTS_PER_S), at: begun };
        let (mut now, mut taken) = (begun, 0);
        for gap in gaps_ms {
            now += Duration::from_millis(gap);
            taken += u32::from(budget.takes(now));
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
            desk.attend(Instant::now());
        }
        prop_assert!(desk.conversations.is_empty());
    }
}
