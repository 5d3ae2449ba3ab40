//! Control groups: what is in them is managed, what leaves them is let go, what is excluded is not
//! touched.

use super::common::{own_mask, skipped, stderr, wait_for};
use super::{Daemon, Spinner, has_choice, masks_of, wait_for_mask};
use std::path::{Path, PathBuf};

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
         [[manage]]\ncgroup = \"{}\"\npolicy = \"spread\"\n\
         [[manage]]\ncgroup = \"{}\"\n\
         [[manage]]\ncgroup = \"{}\"\npolicy = \"spread\"\npriority = 9\n\
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
    daemon.ask(&["attach", "--cgroup", &spread.name(), "--policy", "spread"]);
    wait_for_mask(late.pid(), |mask| mask != own);
    assert_eq!(daemon.stop(), Some(0));
    assert_eq!(masks_of(late.pid()), [own]);
    drop(spinners);
    drop(late);
}
