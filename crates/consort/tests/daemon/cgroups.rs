//! Control groups: what is in them is managed, what leaves them is let go, what is excluded is not
//! touched.

use super::common::{consort, demo, mask_of, own_mask, skipped, stderr, wait_for};
use super::{Daemon, Spinner, has_choice, masks_of, wait_for_mask};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A control group of the test's own, removed when dropped.
struct Group(PathBuf);

impl Group {
    /// Made in the first hierarchy that can be written.
    fn make(name: &str) -> Option<Self> {
        let tops = ["", "unified", "systemd", "cpu", "freezer"]
            .map(|top| Path::new("/sys/fs/cgroup").join(top));
        let name = format!("consort-test-{}-{name}", std::process::id());
        let unified = tops
            .into_iter()
            .filter(|top| top.join("cgroup.procs").exists());
        let made = unified
            .map(|top| top.join(&name))
            .find(|dir| std::fs::create_dir_all(dir).is_ok() && dir.join("cgroup.procs").exists());
        if made.is_none() {
            skipped("no control group can be made here");
        }
        made.map(Self)
    }

    /// Made in this hierarchy, with a name that may be no text.
    fn make_in(hierarchy: &str, name: &[u8]) -> Option<Self> {
        let top = Path::new("/sys/fs/cgroup").join(hierarchy);
        let prefix = format!("consort-test-{}-", std::process::id());
        let dir = top.join(OsStr::from_bytes(&[prefix.as_bytes(), name].concat()));
        let is_there = top.join("cgroup.procs").exists() && std::fs::create_dir_all(&dir).is_ok();
        if !is_there {
            skipped(&format!("no control group can be made in {hierarchy} here"));
        }
        is_there.then_some(Self(dir))
    }

    fn name(&self) -> String {
        self.0.file_name().unwrap().to_string_lossy().into_owned()
    }

    fn take(&self, spinner: &Spinner) {
        std::fs::write(self.0.join("cgroup.procs"), spinner.id()).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        wait_for("the group to be empty", || {
            let gone = !self.0.exists() || std::fs::remove_dir(&self.0).is_ok();
            gone.then_some(())
        });
    }
}

#[test]
fn groups_have_their_policies_and_what_is_excluded_is_untouched() {
    if !has_choice() {
        return;
    }
    let own = own_mask();
    let groups = ["spread", "let-be", "excluded"].map(Group::make);
    let [Some(spread), Some(none), Some(excluded)] = groups else {
        return;
    };
    let config = format!(
        "[daemon]\npolicy = \"none\"\n\
         [[manage]]\ncgroup = \"{}\"\npolicy = \"spread:active=0\"\n\
         [[manage]]\ncgroup = \"{}\"\n\
         [[manage]]\ncgroup = \"{}\"\npolicy = \"spread:active=0\"\npriority = 9\n\
         [[exclude]]\ncgroup = \"{}\"\n",
        spread.name(),
        none.name(),
        excluded.name(),
        excluded.name()
    );
    let spinners = [(); 3].map(|()| Spinner::start());
    for (group, spinner) in [&spread, &none, &excluded].into_iter().zip(&spinners) {
        group.take(spinner);
    }
    let daemon = Daemon::with(&config, &[]);
    wait_for_mask(spinners[0].pid(), |mask| mask != own);
    let status = daemon.status();
    let programs = status["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 2, "{status:#}");
    assert_eq!(masks_of(spinners[1].pid()), [own.as_str()]);
    assert_eq!(masks_of(spinners[2].pid()), [own.as_str()]);
    let refused = daemon.ask(&["attach", &spinners[2].id()]);
    assert!(
        stderr(&refused).contains("excluded"),
        "{}",
        stderr(&refused)
    );
    // What enters is taken in, what leaves is put back.
    let late = Spinner::start();
    spread.take(&late);
    wait_for_mask(late.pid(), |mask| mask != own);
    none.take(&spinners[0]);
    wait_for_mask(spinners[0].pid(), |mask| mask == own);
    // Groups can be let alone as a whole.
    assert!(
        daemon
            .ask(&["detach", "--cgroup", &spread.name()])
            .status
            .success()
    );
    wait_for_mask(late.pid(), |mask| mask == own);
    daemon.ask(&[
        "attach",
        "--cgroup",
        &spread.name(),
        "--policy",
        "spread:active=0",
    ]);
    wait_for_mask(late.pid(), |mask| mask != own);
    assert_eq!(daemon.stop(), Some(0));
    assert_eq!(masks_of(late.pid()), [own]);
    drop(spinners);
    drop(late);
}

#[test]
fn daemon_in_cgroup_namespace_manages_host_groups() {
    if !has_choice() {
        return;
    }
    let own = own_mask();
    let [Some(container), Some(managed)] = ["container", "managed"].map(Group::make) else {
        return;
    };
    // In the namespace of `container`, as in a pod, `/proc` has /../managed for the group; rules find
    // it by its directory.
    let mut contained = Command::new("sh");
    contained.args([
        "-c",
        "echo $$ >\"$0\"/cgroup.procs && exec unshare --cgroup \"$@\"",
    ]);
    contained.arg(&container.0).arg(consort().get_program());
    let probe = Command::new("unshare").args(["--cgroup", "true"]).output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        skipped("no namespace of control groups can be made here");
        return;
    }
    let config = format!(
        "[daemon]\npolicy = \"none\"\n[[manage]]\ncgroup = \"{}\"\npolicy = \"spread:active=0\"\n",
        managed.name()
    );
    let spinner = Spinner::start();
    managed.take(&spinner);
    let daemon = Daemon::by(contained, &config, &[]);
    wait_for_mask(spinner.pid(), |mask| mask != own);
    assert_eq!(daemon.stop(), Some(0));
    assert_eq!(masks_of(spinner.pid()), [own]);
    drop(spinner);
}

/// A program of three threads that compute.
struct Crew(Child);

impl Crew {
    fn start() -> Self {
        let mut command = Command::new(demo());
        let crew = Self(
            command
                .args(["fp", "--threads", "3", "--seconds", "600"])
                .spawn()
                .unwrap(),
        );
        wait_for("threads", || (crew.workers().len() == 3).then_some(()));
        crew
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }

    /// All threads but the first.
    fn workers(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.id())).unwrap();
        let names = tasks.map(|task| task.unwrap().file_name().into_string().unwrap());
        let mut workers: Vec<String> = names.filter(|tid| *tid != self.id()).collect();
        workers.sort();
        workers
    }

    /// Waits until a thread has the whole mask, or a narrow one.
    fn wait_until(&self, tid: &str, is_narrow: bool) {
        let task = PathBuf::from(format!("/proc/{}/task/{tid}", self.id()));
        wait_for("a thread's mask", || {
            ((mask_of(&task)? != own_mask()) == is_narrow).then_some(())
        });
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const PLACES_ALL: [&str; 3] = ["--policy", "spread:active=0", "--no-back-off"];

/// Reason that `status` shows for a thread.
fn why(daemon: &Daemon, tid: &str) -> String {
    let status = daemon.status();
    let mut threads = status["threads"].as_array().unwrap().iter();
    let line = threads.find(|line| line["tid"].as_u64() == tid.parse().ok());
    line.map_or(String::new(), |line| line["chosen"].to_string())
}

#[test]
fn thread_in_excluded_group_is_left_alone() {
    if !has_choice() {
        return;
    }
    let Some(group) = Group::make_in("cpu", b"excluded") else {
        return;
    };
    let crew = Crew::start();
    let [first, second, third] = <[String; 3]>::try_from(crew.workers()).unwrap();
    std::fs::write(group.0.join("tasks"), &first).unwrap();
    let config = format!("[[exclude]]\ncgroup = \"{}\"\n", group.name());
    let daemon = Daemon::with(&config, &PLACES_ALL);
    let attached = daemon.ask(&["attach", &crew.id()]);
    assert!(attached.status.success(), "{}", stderr(&attached));
    crew.wait_until(&second, true);
    crew.wait_until(&third, true);
    assert!(
        why(&daemon, &first).contains("is excluded"),
        "{}",
        why(&daemon, &first)
    );
    crew.wait_until(&first, false);
    // Threads that move later are followed.
    std::fs::write(group.0.join("tasks"), &second).unwrap();
    crew.wait_until(&second, false);
    std::fs::write("/sys/fs/cgroup/cpu/tasks", &first).unwrap();
    crew.wait_until(&first, true);
    assert_eq!(daemon.stop(), Some(0));
    crew.wait_until(&first, false);
    drop(crew);
}

#[test]
fn group_of_single_threads_is_managed_thread_by_thread() {
    if !has_choice() {
        return;
    }
    let Some(group) = Group::make_in("cpu", b"threads") else {
        return;
    };
    let crew = Crew::start();
    let [first, second, third] = <[String; 3]>::try_from(crew.workers()).unwrap();
    std::fs::write(group.0.join("tasks"), &first).unwrap();
    let daemon = Daemon::with("", &PLACES_ALL);
    let attached = daemon.ask(&["attach", "--cgroup", &group.name()]);
    assert!(attached.status.success(), "{}", stderr(&attached));
    crew.wait_until(&first, true);
    crew.wait_until(&second, false);
    std::fs::write(group.0.join("tasks"), &second).unwrap();
    crew.wait_until(&second, true);
    std::fs::write("/sys/fs/cgroup/cpu/tasks", &first).unwrap();
    crew.wait_until(&first, false);
    crew.wait_until(&third, false);
    assert_eq!(daemon.stop(), Some(0));
    crew.wait_until(&second, false);
    drop(crew);
}

#[test]
fn threaded_group_is_managed_thread_by_thread() {
    if !has_choice() {
        return;
    }
    let Some(domain) = Group::make_in("unified", b"domain") else {
        return;
    };
    let threaded = Group(domain.0.join("threaded"));
    std::fs::create_dir(&threaded.0).unwrap();
    let crew = Crew::start();
    std::fs::write(domain.0.join("cgroup.procs"), crew.id()).unwrap();
    if std::fs::write(threaded.0.join("cgroup.type"), "threaded").is_err() {
        return skipped("no threaded control group can be made here");
    }
    let [first, second, _] = <[String; 3]>::try_from(crew.workers()).unwrap();
    std::fs::write(threaded.0.join("cgroup.threads"), &first).unwrap();
    let daemon = Daemon::with("", &PLACES_ALL);
    let pattern = format!("{}/threaded", domain.name());
    let attached = daemon.ask(&["attach", "--cgroup", &pattern]);
    assert!(attached.status.success(), "{}", stderr(&attached));
    crew.wait_until(&first, true);
    crew.wait_until(&second, false);
    assert_eq!(daemon.stop(), Some(0));
    drop(crew);
}

#[test]
fn group_whose_name_is_no_text_is_managed() {
    if !has_choice() {
        return;
    }
    let Some(group) = Group::make_in("cpu", b"bin\xff") else {
        return;
    };
    let (own, spinner) = (own_mask(), Spinner::start());
    group.take(&spinner);
    let daemon = Daemon::with("", &["--policy", "spread:active=0"]);
    let pattern = format!("consort-test-{}-bin*", std::process::id());
    daemon.ask(&["attach", "--cgroup", &pattern]);
    wait_for_mask(spinner.pid(), |mask| mask != own);
    let status = daemon.status();
    let name = status["programs"][0]["name"].as_str().unwrap();
    assert!(name.ends_with("bin\\xff"), "{name}");
    assert_eq!(daemon.stop(), Some(0));
    drop(spinner);
}

#[test]
fn groups_that_are_missing_or_excluded_are_announced() {
    let Some(group) = Group::make("announced") else {
        return;
    };
    let spinner = Spinner::start();
    group.take(&spinner);
    let config = format!("[[exclude]]\ncgroup = \"{}\"\n", group.name());
    let daemon = Daemon::with(&config, &[]);
    let said = |args: &[&str]| {
        let output = daemon.ask(args);
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let missing = said(&["attach", "--cgroup", "consort-test-missing/x"]);
    assert!(missing.starts_with("nothing matches yet"), "{missing}");
    let excluded = said(&["attach", "--cgroup", &format!("{}*", group.name())]);
    assert!(excluded.starts_with("excluded"), "{excluded}");
    assert_eq!(daemon.stop(), Some(0));
    drop(spinner);
}

#[test]
fn attach_in_the_foreground_says_that_it_waits() {
    let mut command = consort();
    command.args([
        "attach",
        "--foreground",
        "--cgroup",
        "consort-test-missing/x",
    ]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = lines.by_ref().map_while(Result::ok);
    assert!(said.any(|line| line.contains("matches nothing yet")));
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(child.id().cast_signed()),
        nix::sys::signal::Signal::SIGINT,
    )
    .unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn part_of_a_managed_group_is_not_detached_silently() {
    let Some(group) = Group::make("parts") else {
        return;
    };
    let inner = Group(group.0.join("inner"));
    std::fs::create_dir(&inner.0).unwrap();
    let spinners = [(); 2].map(|()| Spinner::start());
    group.take(&spinners[0]);
    inner.take(&spinners[1]);
    let daemon = Daemon::with("", &[]);
    daemon.ask(&["attach", "--cgroup", &group.name()]);
    let refused = daemon.ask(&["detach", &spinners[0].id()]);
    let said = stderr(&refused);
    assert!(
        !refused.status.success() && said.contains("--cgroup"),
        "{said}"
    );
    let pattern = format!("{}/inner", group.name());
    let detached = daemon.ask(&["detach", "--cgroup", &pattern]);
    let said = String::from_utf8(detached.stdout).unwrap();
    let expected = format!("still managed, without the named targets: {}", group.name());
    assert!(said.contains(&expected), "{said}");
    assert_eq!(daemon.stop(), Some(0));
    drop(spinners);
}
