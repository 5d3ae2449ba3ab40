//! Random load and misbehaviour, in so many rounds; `CONSORT_SOAK_ROUNDS` makes it longer.

use super::common::{own_mask, wait_for};
use super::{Daemon, Spinner, has_choice, masks_of};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::Command;

/// Rounds where nobody asks for more.
const ROUNDS: usize = 120;
/// Spinners at a time.
const MOST: usize = 6;

/// The daemon, what runs beside it, and chance.
struct Soak {
    daemon: Daemon,
    spinners: Vec<Spinner>,
    chance: Pcg64,
}

impl Soak {
    fn begin() -> Self {
        Self {
            daemon: Daemon::with("", &["--policy", "spread"]),
            spinners: Vec::new(),
            chance: Pcg64::seed_from_u64(1),
        }
    }

    fn any(&mut self) -> Option<String> {
        let count = self.spinners.len();
        let at = (count > 0).then(|| self.chance.random_range(0..count))?;
        Some(self.spinners[at].id())
    }

    fn round(&mut self) {
        match self.chance.random_range(0..8) {
            0 if self.spinners.len() < MOST => self.spinners.push(Spinner::start()),
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
            _ => self.reload(),
        }
        assert!(self.daemon.ask(&["status"]).status.success());
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

    /// Descriptors of the daemon, and its resident memory in KiB, when nothing is attached.
    fn size_at_rest(&mut self) -> (usize, u64) {
        self.spinners.clear();
        wait_for("the daemon to notice", || {
            let threads = self.daemon.status()["threads"].as_array().unwrap().len();
            (threads == 0).then_some(())
        });
        let proc = format!("/proc/{}", self.daemon.child.id());
        let fds = std::fs::read_dir(format!("{proc}/fd")).unwrap().count();
        let status = std::fs::read_to_string(format!("{proc}/status")).unwrap();
        let rss = status
            .lines()
            .find_map(|l| l.strip_prefix("VmRSS:"))
            .unwrap();
        let rss = rss.split_whitespace().next().unwrap().parse().unwrap();
        (fds, rss)
    }
}

#[test]
fn nothing_grows_and_nothing_is_left_changed() {
    if !has_choice() {
        return;
    }
    let rounds = std::env::var("CONSORT_SOAK_ROUNDS");
    let rounds = rounds.map_or(ROUNDS, |text| text.parse().unwrap());
    let own = own_mask();
    let mut soak = Soak::begin();
    (0..rounds / 4).for_each(|_| soak.round());
    let before = soak.size_at_rest();
    (0..rounds).for_each(|_| soak.round());
    let after = soak.size_at_rest();
    println!("descriptors and KiB resident: {before:?}, then {after:?}");
    assert!(after.0 <= before.0 + 4, "{before:?} {after:?}");
    assert!(after.1 <= before.1 + 4_096, "{before:?} {after:?}");
    let spinner = Spinner::start();
    soak.daemon.ask(&["attach", &spinner.id()]);
    assert_eq!(soak.daemon.stop(), Some(0));
    assert_eq!(masks_of(spinner.pid()), [own]);
}
