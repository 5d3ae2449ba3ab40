//! Programs and schedulers other than Consort that give processors to threads on this host.
//!
//! Sources: kubelet's CPU manager (`cpu_manager_state`, Kubernetes documentation, "Control CPU
//! Management Policies on the Node"), numad(8), irqbalance(1), gamemoded(8), slurmd(8), Linux
//! `Documentation/scheduler/sched-ext.rst`.

use crate::read;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// Somebody else who places threads or interrupts on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Owner {
    /// Name of the program or scheduler, as users know it.
    pub name: String,
    /// One clause: what the owner rules, and what that means for the threads that Consort manages.
    pub effect: String,
}

/// Programs that are known to place threads or interrupts: the name of the process, and the effect.
const DAEMONS: [(&str, &str); 4] = [
    (
        "numad",
        "binds processes to nodes: threads whose masks it writes are let go of",
    ),
    (
        "gamemoded",
        "may pin games to cores: threads whose masks it writes are let go of",
    ),
    (
        "irqbalance",
        "moves interrupts, not threads: nothing is in its way",
    ),
    (
        "slurmd",
        "gives jobs cpusets: masks stay within them, and exclusive ones are let alone",
    ),
];

/// Folder in which the kernel shows its sched_ext scheduler; missing without sched_ext.
const SCHED_EXT: &str = "sys/kernel/sched_ext";

/// Owners that were found below `root`, which is `/` except in tests.
pub fn owners(root: &Path) -> Vec<Owner> {
    let running = names(root);
    let daemons = DAEMONS.iter().filter(|(name, _)| running.contains(*name));
    let daemons = daemons.map(|(name, effect)| Owner {
        name: (*name).to_owned(),
        effect: (*effect).to_owned(),
    });
    daemons
        .chain(kubelet(root))
        .chain(scheduler(root))
        .collect()
}

/// Names of the running processes.
fn names(root: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(root.join("proc"));
    let entries = entries.into_iter().flatten().flatten();
    let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let processes = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_process));
    let names = processes.filter_map(|entry| read::text(&entry.path().join("comm")));
    names.map(|name| name.trim().to_owned()).collect()
}

/// The kubelet as an owner, where its static policy gives containers PUs of their own.
fn kubelet(root: &Path) -> Option<Owner> {
    let text = read::text(&root.join("var/lib/kubelet/cpu_manager_state"))?;
    let state: serde_json::Value = serde_json::from_str(&text).ok()?;
    (state.get("policyName")?.as_str()? == "static").then(|| Owner {
        name: "kubelet (static CPU manager)".to_owned(),
        effect: "gives containers PUs of their own by cpusets: masks stay within them".to_owned(),
    })
}

/// The sched_ext scheduler that decides within the kernel, as an owner; none where none is enabled.
fn scheduler(root: &Path) -> Option<Owner> {
    let name = sched_ext(root)?;
    Some(Owner {
        name: format!("sched_ext scheduler {name}"),
        effect: "decides where threads run within their masks, whatever plans want".to_owned(),
    })
}

/// Name of the sched_ext scheduler that is enabled or is just being enabled; empty if the kernel
/// does not tell it.
pub(crate) fn sched_ext(root: &Path) -> Option<String> {
    let folder = root.join(SCHED_EXT);
    let state = read::text(&folder.join("state"))?;
    let name = || read::text(&folder.join("root/ops")).unwrap_or_default();
    (state.trim() != "disabled").then(|| name().trim().to_owned())
}

/// Returns true if the kernel has sched_ext, so that such a scheduler could be started at any time.
pub(crate) fn may_get_sched_ext(root: &Path) -> bool {
    root.join(SCHED_EXT).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, name: &str, content: &str) {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    #[test]
    fn whoever_rules_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(owners(root), []);
        write(root, "proc/12/comm", "numad\n");
        write(root, "proc/13/comm", "bash\n");
        write(root, "proc/self/comm", "slurmd\n");
        write(root, "sys/kernel/sched_ext/state", "enabled\n");
        write(root, "sys/kernel/sched_ext/root/ops", "lavd\n");
        let state = "{\"policyName\":\"static\",\"defaultCpuSet\":\"0-3\",\"checksum\":1}";
        write(root, "var/lib/kubelet/cpu_manager_state", state);
        let names: Vec<String> = owners(root).into_iter().map(|owner| owner.name).collect();
        let expected = [
            "numad",
            "kubelet (static CPU manager)",
            "sched_ext scheduler lavd",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn whoever_does_not_rule_is_not_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, "sys/kernel/sched_ext/state", "disabled\n");
        let state = "{\"policyName\":\"none\",\"checksum\":1}";
        write(root, "var/lib/kubelet/cpu_manager_state", state);
        assert_eq!(owners(root), []);
        write(root, "var/lib/kubelet/cpu_manager_state", "{");
        assert_eq!(owners(root), []);
    }
}
