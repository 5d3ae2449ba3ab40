//! Random load and misbehaviour, in so many rounds; `CONSORT_SOAK_ROUNDS` makes it longer.

use super::common::{own_mask, wait_for};
use super::cpuset::Cpuset;
use super::{Daemon, Spinner, has_choice, masks_of, wait_for_mask};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::Command;

/// Rounds where nobody asks for more.
const ROUNDS: usize = 120;
/// Daemons one after another at least; each but the last is killed.
const LIVES: usize = 3;
/// Rounds that one daemon lives for at most.
const LIFE: usize = 3_000;
/// Spinners at a time.
const MOST: usize = 6;
const ARGS: [&str; 2] = ["--policy", "spread:active=0"];

/// The daemon, what runs beside it, and chance.
struct Soak {
    daemon: Daemon,
    spinners: Vec<Spinner>,
    cpuset: Option<Cpuset>,
    chance: Pcg64,
}

impl Soak {
    fn begin() -> Self {
        Self {
            daemon: Daemon::with("", &ARGS),
            spinners: Vec::new(),
            cpuset: Cpuset::make("consort-soak"),
            chance: Pcg64::seed_from_u64(1),
        }
    }

    fn any(&mut self) -> Option<String> {
        let count = self.spinners.len();
        let at = (count > 0).then(|| self.chance.random_range(0..count))?;
        Some(self.spinners[at].id())
    }

    fn round(&mut self) {
        match self.chance.random_range(0..9) {
            0 if self.spinners.len() < MOST => self.spin(),
            1 => drop(self.spinners.pop()),
            2 | 3 => {
                if let Some(id) = self.any() {
                    self.daemon.ask(&["attach", &id]);
                }
            }
            4 => {
                if let Some(id) = self.any() {
                    self.daemon.ask(&["detach", &id]);
                }
            }
            5 => self.storm(),
            6 => self.talk_nonsense(),
            7 => self.resize(),
            _ => self.reload(),
        }
        assert!(self.daemon.ask(&["status"]).status.success());
    }

    /// One more program, in the cpuset.
    fn spin(&mut self) {
        let spinner = Spinner::start();
        if let Some(cpuset) = &self.cpuset {
            cpuset.take(&spinner);
        }
        self.spinners.push(spinner);
    }

    /// Takes all CPUs but one away below managed threads, or gives them back.
    fn resize(&mut self) {
        let to = self.chance.random_range(0..3);
        match &self.cpuset {
            Some(cpuset) if to < 2 => cpuset.shrink(to),
            Some(cpuset) => cpuset.grow(),
            None => (),
        }
    }

    /// Kills the daemon over programs that it has placed, and starts the next.
    fn die(&mut self, own: &str) {
        if let Some(cpuset) = &self.cpuset {
            cpuset.grow();
        }
        (0..MOST).for_each(|_| self.spin());
        for spinner in &self.spinners {
            self.daemon.ask(&["attach", &spinner.id()]);
        }
        wait_for("a placement", || {
            let masks = self.spinners.iter().flat_map(|s| masks_of(s.pid()));
            masks.into_iter().any(|mask| mask != own).then_some(())
        });
        self.daemon.kill();
        for spinner in &self.spinners {
            wait_for_mask(spinner.pid(), |mask| mask == own);
        }
        // With a broken configuration it would refuse to start.
        self.daemon.configure("");
        self.daemon.start_again(&ARGS);
    }

    /// Processes that come and go faster than they can be looked at, below one that is attached.
    fn storm(&mut self) {
        let script = "sleep 0.1; for i in $(seq 200); do true & done; wait";
        let mut storm = Command::new("sh").args(["-c", script]).spawn().unwrap();
        self.daemon.ask(&["attach", &storm.id().to_string()]);
        assert!(storm.wait().unwrap().success());
    }

    fn talk_nonsense(&mut self) {
        let mut stream = UnixStream::connect(self.daemon.socket()).unwrap();
        let bytes: Vec<u8> = (0..500).map(|_| self.chance.random()).collect();
        // A daemon that hangs up on it is right.
        let _ = stream.write_all(&bytes);
    }

    fn reload(&mut self) {
        let texts = [
            "",
            "[daemon]\npolicy = 7\n",
            "[[exclude]]\ncgroup = \"x\"\n",
            "[",
        ];
        let text = texts[self.chance.random_range(0..texts.len())];
        self.daemon.configure(text);
        self.daemon.ask(&["config", "reload"]);
    }

    /// Size of the daemon when nothing is attached.
    fn size_at_rest(&mut self) -> Size {
        self.spinners.clear();
        wait_for("the daemon to notice", || {
            let threads = self.daemon.status()["threads"].as_array().unwrap().len();
            (threads == 0).then_some(())
        });
        Size::of(self.daemon.child.id())
    }
}

/// Descriptors and memory that a process holds.
struct Size {
    descriptors: usize,
    resident_kib: u64,
    /// The part of it that no file backs: a leak shows here, code that is run late does not.
    anonymous_kib: u64,
}

impl Size {
    fn of(pid: u32) -> Self {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let kib = |key: &str| {
            let line = status.lines().find_map(|l| l.strip_prefix(key)).unwrap();
            let figure = line.split_whitespace().next().unwrap();
            figure.parse().unwrap()
        };
        Self {
            descriptors: std::fs::read_dir(format!("/proc/{pid}/fd"))
                .unwrap()
                .count(),
            resident_kib: kib("VmRSS:"),
            anonymous_kib: kib("RssAnon:"),
        }
    }

    fn assert_not_above(&self, before: &Self) {
        let descriptors = self.descriptors <= before.descriptors + 4;
        let memory = self.anonymous_kib <= before.anonymous_kib + 2_048;
        assert!(descriptors && memory, "{self}, before {before}");
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} descriptors, {} KiB resident, {} of them anonymous",
            self.descriptors, self.resident_kib, self.anonymous_kib
        )
    }
}

#[test]
fn nothing_grows_and_nothing_is_left_changed() {
    if !has_choice() {
        return;
    }
    let rounds = std::env::var("CONSORT_SOAK_ROUNDS");
    let rounds = rounds.map_or(ROUNDS, |text| text.parse().unwrap());
    let lives = LIVES.max(rounds / LIFE);
    let own = own_mask();
    let mut soak = Soak::begin();
    (0..rounds / lives / 2).for_each(|_| soak.round());
    let before = soak.size_at_rest();
    println!("at first: {before}");
    for life in 1..=lives {
        (0..rounds / lives).for_each(|_| soak.round());
        let after = soak.size_at_rest();
        println!("life {life} of {lives}: {after}");
        after.assert_not_above(&before);
        if life < lives {
            soak.die(&own);
        }
    }
    let spinner = Spinner::start();
    soak.daemon.ask(&["attach", &spinner.id()]);
    wait_for_mask(spinner.pid(), |mask| mask != own);
    soak.daemon.signal("-TERM");
    assert_eq!(soak.daemon.child.wait().unwrap().code(), Some(0));
    assert_eq!(masks_of(spinner.pid()), [own]);
    let journals = soak.daemon.folder.path().join("consort");
    assert_eq!(std::fs::read_dir(journals).unwrap().count(), 0);
}
