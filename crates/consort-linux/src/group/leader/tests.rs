use super::*;
use crate::group::{
    GroupMember, GroupPlace, LeaderNews, MAX_LINE_BYTES, MemberMessage, OpenTerms, enter_group,
    try_enter_group,
};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

fn terms() -> GroupTerms {
    GroupTerms {
        leader: std::process::id(),
        run: "1-2-0".to_owned(),
        policy: "gang".to_owned(),
        interval_ms: 2_000,
        dry_run: false,
        profile: None,
        open: OpenTerms::default(),
    }
}

/// GroupTerms of a leader without demands.
fn open_terms() -> GroupTerms {
    GroupTerms {
        policy: "auto".to_owned(),
        open: OpenTerms {
            policy: true,
            interval: true,
        },
        ..terms()
    }
}

/// A folder of its own for each test.
struct Scene(tempfile::TempDir);

impl Scene {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn dirs(&self) -> [PathBuf; 1] {
        [self.0.path().to_owned()]
    }

    fn place(&self, demands: &Demands) -> Result<Option<GroupPlace>, GroupError> {
        try_enter_group(&self.dirs(), &"g".parse().unwrap(), demands)
    }

    fn leader(&self) -> Leader {
        self.leader_on(terms())
    }

    fn leader_on(&self, terms: GroupTerms) -> Leader {
        match self.place(&Demands::default()) {
            Ok(Some(GroupPlace::Leads(candidate))) => candidate.lead(terms).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn caller(&self) -> UnixStream {
        UnixStream::connect(self.0.path().join("group-g.socket")).unwrap()
    }
}

/// Lets a member enter while the leader attends.
fn entering(
    scene: &Scene,
    leader: &mut Leader,
    demands: &Demands,
) -> Result<GroupPlace, GroupError> {
    std::thread::scope(|scope| {
        let group = "g".parse().unwrap();
        let entering = scope.spawn(move || enter_group(&scene.dirs(), &group, demands));
        while !entering.is_finished() {
            leader.serve_members(Instant::now());
        }
        entering.join().unwrap()
    })
}

fn member(scene: &Scene, leader: &mut Leader) -> GroupMember {
    match entering(scene, leader, &Demands::default()) {
        Ok(GroupPlace::Follows(member)) => member,
        other => panic!("{other:?}"),
    }
}

/// Attends until there is something to do.
fn next(leader: &mut Leader) -> LeaderTask {
    loop {
        if let Some(task) = leader.serve_members(Instant::now()).pop() {
            return task;
        }
    }
}

fn joining(pid: u32) -> JoiningCommand {
    JoiningCommand {
        pid,
        start_ticks: 5,
        name: "x".to_owned(),
    }
}

/// Text that a caller reads until the leader hangs up or has nothing more to say.
fn read_text(leader: &mut Leader, caller: &mut UnixStream) -> String {
    caller
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut text = Vec::new();
    let mut piece = [0; MAX_LINE_BYTES];
    while text.last() != Some(&b'\n') {
        leader.serve_members(Instant::now());
        match caller.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(n) => text.extend_from_slice(&piece[..n]),
        }
    }
    String::from_utf8(text).unwrap()
}

#[test]
fn member_joins_hands_over_wakes_and_leaves() {
    let scene = Scene::new();
    let mut leader = scene.leader();
    let mut member = member(&scene, &mut leader);
    assert_eq!(*member.terms(), terms());
    std::thread::scope(|scope| {
        let handing = scope.spawn(|| member.hand_over(joining(77)));
        let LeaderTask::Manage {
            connection,
            peer,
            program,
        } = next(&mut leader)
        else {
            panic!("no program");
        };
        assert_eq!((peer, program), (std::process::id(), joining(77)));
        leader.answer(connection, 77, &LeaderMessage::Taken);
        assert!(handing.join().unwrap().unwrap());
    });
    assert_eq!(leader.most_programs(), 2);
    member.wake();
    assert_eq!(next(&mut leader), LeaderTask::Wake(77));
    drop(member);
    assert_eq!(next(&mut leader), LeaderTask::Release(77));
    assert_eq!(leader.connections.len(), 0);
}

#[test]
fn unmanageable_command_is_refused_with_reason() {
    let scene = Scene::new();
    let mut leader = scene.leader();
    let mut member = member(&scene, &mut leader);
    std::thread::scope(|scope| {
        let handing = scope.spawn(|| member.hand_over(joining(77)));
        let LeaderTask::Manage { connection, .. } = next(&mut leader) else {
            panic!("no program");
        };
        leader.answer(
            connection,
            77,
            &LeaderMessage::Refused("too old".to_owned()),
        );
        let error = handing.join().unwrap().unwrap_err();
        assert_eq!(error.to_string(), "group g: too old");
    });
    assert_eq!(leader.most_programs(), 1);
}

#[test]
fn other_terms_are_refused_naming_both_sides() {
    let scene = Scene::new();
    let mut leader = scene.leader();
    let mut refused = |demands: Demands| {
        let result = entering(&scene, &mut leader, &demands);
        result.unwrap_err().to_string()
    };
    let policy = refused(Demands {
        policy: Some("fair-com".to_owned()),
        ..Demands::default()
    });
    assert!(
        policy.contains("policy gang") && policy.contains("policy fair-com"),
        "{policy}"
    );
    let interval = refused(Demands {
        interval_ms: Some(10),
        ..Demands::default()
    });
    assert!(
        interval.contains("2000 ms") && interval.contains(" 10 ms"),
        "{interval}"
    );
    let profile = refused(Demands {
        profile: Some("/p.json".into()),
        ..Demands::default()
    });
    assert!(
        profile.contains("profile none") && profile.contains("profile /p.json"),
        "{profile}"
    );
    let dry = refused(Demands {
        dry_run: true,
        ..Demands::default()
    });
    assert!(
        dry.contains("--dry-run false") && dry.contains("--dry-run true"),
        "{dry}"
    );
}

#[test]
fn the_same_terms_are_welcome() {
    let scene = Scene::new();
    let mut leader = scene.leader();
    let demands = Demands {
        policy: Some("gang".to_owned()),
        interval_ms: Some(2_000),
        ..Demands::default()
    };
    assert!(entering(&scene, &mut leader, &demands).is_ok());
}

#[test]
fn leaving_leader_is_noticed_and_replaced() {
    let scene = Scene::new();
    let mut leader = scene.leader();
    let mut member = member(&scene, &mut leader);
    assert_eq!(member.poll_news(), LeaderNews::Nothing);
    drop(leader);
    assert_eq!(member.poll_news(), LeaderNews::Gone);
    scene.leader();
    assert_eq!(std::fs::read_dir(scene.0.path()).unwrap().count(), 0);
}

#[test]
fn socket_of_killed_leader_is_replaced() {
    let scene = Scene::new();
    drop(UnixListener::bind(scene.0.path().join("group-g.socket")).unwrap());
    let mut leader = scene.leader();
    member(&scene, &mut leader);
}

#[test]
fn nonsense_is_refused_and_disconnected() {
    let scene = Scene::new();
    let mut leader = scene.leader();
    let long = "x".repeat(3 * MAX_LINE_BYTES);
    let early = MemberMessage::Wake.to_line().unwrap();
    let said: [&[u8]; 5] = [
        b"GET / HTTP/1.0\r\n\r\n",
        b"\n",
        long.as_bytes(),
        b"{\"version\":9,\"message\":\"wake\"}\n",
        &early,
    ];
    for line in said {
        let mut caller = scene.caller();
        caller.write_all(line).unwrap();
        let answer = read_text(&mut leader, &mut caller);
        assert!(answer.contains("refused"), "{answer}");
        assert_eq!(leader.connections.len(), 0);
    }
    member(&scene, &mut leader);
}

#[test]
fn slow_caller_delays_no_other_and_is_disconnected() {
    let scene = Scene::new();
    let mut leader = scene.leader();
    let mut slow = scene.caller();
    slow.write_all(b"{\"versi").unwrap();
    leader.serve_members(Instant::now());
    member(&scene, &mut leader);
    let later = Instant::now() + Duration::from_secs(60);
    leader.serve_members(later);
    assert_eq!(read_text(&mut leader, &mut slow), "");
}

#[test]
fn caller_without_program_loses_its_place() {
    let scene = Scene::new();
    let mut leader = scene.leader();
    let idle = member(&scene, &mut leader);
    leader.serve_members(Instant::now());
    assert_eq!(leader.connections.len(), 1);
    leader.serve_members(Instant::now() + Duration::from_secs(60));
    assert_eq!(leader.connections.len(), 0);
    drop(idle);
}

#[test]
fn silent_member_with_running_command_stays() {
    let scene = Scene::new();
    let mut leader = scene.leader();
    let mut member = member(&scene, &mut leader);
    std::thread::scope(|scope| {
        let handing = scope.spawn(|| member.hand_over(joining(77)));
        let LeaderTask::Manage { connection, .. } = next(&mut leader) else {
            panic!("no program");
        };
        leader.answer(connection, 77, &LeaderMessage::Taken);
        assert!(handing.join().unwrap().unwrap());
    });
    leader.serve_members(Instant::now() + Duration::from_secs(6_000));
    assert_eq!(member.poll_news(), LeaderNews::Nothing);
}

/// Lets a member enter that asks for open terms, and answers it.
fn proposing(
    scene: &Scene,
    leader: &mut Leader,
    demands: &Demands,
    answer: impl Fn(&Demands) -> Result<GroupTerms, String>,
) -> Result<GroupPlace, GroupError> {
    std::thread::scope(|scope| {
        let group = "g".parse().unwrap();
        let entering = scope.spawn(move || enter_group(&scene.dirs(), &group, demands));
        while !entering.is_finished() {
            leader.serve_members(Instant::now());
            let answer = leader.proposal().map(&answer);
            answer
                .into_iter()
                .for_each(|a| leader.settle_terms(a, Instant::now()));
        }
        entering.join().unwrap()
    })
}

fn asking_for(policy: &str) -> Demands {
    Demands {
        policy: Some(policy.to_owned()),
        ..Demands::default()
    }
}

#[test]
fn open_terms_settle_once_for_all_members() {
    let scene = Scene::new();
    let mut leader = scene.leader_on(open_terms());
    let mut first = member(&scene, &mut leader);
    assert_eq!(first.terms().policy, "auto");
    let settle = |demands: &Demands| {
        assert_eq!(*demands, asking_for("gang"));
        Ok(terms())
    };
    let second = proposing(&scene, &mut leader, &asking_for("gang"), settle);
    let Ok(GroupPlace::Follows(second)) = second else {
        panic!("{second:?}");
    };
    assert_eq!(*second.terms(), terms());
    assert_eq!(first.poll_news(), LeaderNews::Terms);
    assert_eq!(*first.terms(), terms());
    let refused = entering(&scene, &mut leader, &asking_for("fair-com")).unwrap_err();
    assert!(refused.to_string().contains("policy gang"), "{refused}");
    assert!(entering(&scene, &mut leader, &asking_for("gang")).is_ok());
}

#[test]
fn refused_terms_stay_open() {
    let scene = Scene::new();
    let mut leader = scene.leader_on(open_terms());
    let refuse = |_: &Demands| Err("not here".to_owned());
    let refused = proposing(&scene, &mut leader, &asking_for("x"), refuse).unwrap_err();
    assert_eq!(refused.to_string(), "group g: not here");
    assert_eq!(*leader.terms(), open_terms());
    assert!(proposing(&scene, &mut leader, &asking_for("gang"), |_| Ok(terms())).is_ok());
}

#[test]
fn proposal_ends_with_its_caller() {
    let scene = Scene::new();
    let mut leader = scene.leader_on(open_terms());
    let mut caller = scene.caller();
    let hello = MemberMessage::Hello(asking_for("gang")).to_line().unwrap();
    caller.write_all(&hello).unwrap();
    while leader.proposal().is_none() {
        leader.serve_members(Instant::now());
    }
    let mut other = scene.caller();
    let hello = MemberMessage::Hello(asking_for("fair-com"))
        .to_line()
        .unwrap();
    other.write_all(&hello).unwrap();
    leader.serve_members(Instant::now());
    assert_eq!(leader.proposal(), Some(&asking_for("gang")));
    drop(caller);
    while leader.proposal() != Some(&asking_for("fair-com")) {
        leader.serve_members(Instant::now());
    }
}

#[test]
fn terms_before_answer_are_not_the_answer() {
    let scene = Scene::new();
    let mut leader = scene.leader_on(open_terms());
    let mut member = member(&scene, &mut leader);
    std::thread::scope(|scope| {
        let handing = scope.spawn(|| member.hand_over(joining(77)));
        let LeaderTask::Manage { connection, .. } = next(&mut leader) else {
            panic!("no program");
        };
        (leader.terms, leader.proposal) = (terms(), None);
        leader.send_terms();
        leader.answer(connection, 77, &LeaderMessage::Taken);
        assert!(handing.join().unwrap().unwrap());
    });
    assert_eq!(*member.terms(), terms());
}

#[test]
fn callers_beyond_limit_are_refused() {
    let scene = Scene::new();
    let mut leader = scene.leader();
    let mut callers: Vec<UnixStream> = (0..MAX_PROGRAMS)
        .map(|_| {
            let caller = scene.caller();
            leader.serve_members(Instant::now());
            caller
        })
        .collect();
    let answer = read_text(&mut leader, callers.last_mut().unwrap());
    assert!(answer.contains("64 programs"), "{answer}");
    callers.pop();
    callers.pop();
    leader.serve_members(Instant::now());
    member(&scene, &mut leader);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn arbitrary_bytes_lead_to_no_task(
        said in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..6),
    ) {
        let scene = Scene::new();
        let mut leader = scene.leader();
        let mut caller = scene.caller();
        for piece in said {
            // The leader may have hung up already.
            let _ = caller.write_all(&piece);
            prop_assert_eq!(leader.serve_members(Instant::now()), []);
        }
        drop(caller);
        prop_assert_eq!(leader.serve_members(Instant::now()), []);
        prop_assert_eq!(leader.most_programs(), 1);
    }
}
