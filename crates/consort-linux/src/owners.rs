//! Programs and schedulers other than Consort that give processors to threads on this host.
//!
//! Sources: kubelet's CPU manager (`cpu_manager_state`, Kubernetes documentation, "Control CPU
//! Management Policies on the Node"), numad(8), irqbalance(1), gamemoded(8), slurmd(8), Linux
//! `Documentation/scheduler/sched-ext.rst`; tuned-main.conf(5) and the plugins of tuned, the
//! documentation of Koordinator, of Crane, of the NRI resource policy plugins, of ananicy-cpp, of
//! uresourced and of intel_lpmd(8).

use crate::read;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// Another program that places threads or interrupts on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlacementOwner {
    /// Name of the program or scheduler, as users know it.
    pub name: String,
    /// One clause: what the owner rules, and what that means for the threads that Consort manages.
    pub effect: String,
}

/// Programs that are known to place threads or interrupts: the name of the process, and the effect.
const DAEMONS: [(&str, &str); 11] = [
    (
        "numad",
        "binds processes to nodes: threads whose masks it writes are released",
    ),
    (
        "gamemoded",
        "may pin games to cores: threads whose masks it writes are released",
    ),
    (
        "irqbalance",
        "moves interrupts, not threads: nothing is in its way",
    ),
    (
        "slurmd",
        "gives jobs cpusets: masks stay within them, and exclusive ones are not managed",
    ),
    (
        "tuned",
        "may set the masks of all processes (its plugin scheduler): threads whose masks it writes \
         are released",
    ),
    (
        "ananicy-cpp",
        "may pin processes and move them between control groups by its rules: threads whose masks \
         it writes are released",
    ),
    (
        "koordlet",
        "gives pods cpusets: masks stay within them, and exclusive ones are left alone",
    ),
    (
        "nri-resource-policy",
        "gives containers cpusets: masks stay within them, and exclusive ones are left alone",
    ),
    (
        "crane-agent",
        "gives pods cpusets: masks stay within them, and exclusive ones are left alone",
    ),
    (
        "uresourced",
        "gives the control groups of active users CPU shares: nothing is in its way",
    ),
    (
        "intel_lpmd",
        "may shrink the cpusets of all slices: masks stay within them",
    ),
];

/// Bytes of a process's name that the kernel keeps (`TASK_COMM_LEN` less the NUL).
const COMM_BYTES: usize = 15;

/// Folder in which the kernel shows its sched_ext scheduler; missing without sched_ext.
const SCHED_EXT: &str = "sys/kernel/sched_ext";

/// Owners that were found below `root`, which is `/` except in tests.
pub fn owners(root: &Path) -> Vec<PlacementOwner> {
    let running = names(root);
    let is_running = |name: &str| running.contains(&name[..name.len().min(COMM_BYTES)]);
    let daemons = DAEMONS.iter().filter(|(name, _)| is_running(name));
    let daemons = daemons.map(|(name, effect)| PlacementOwner {
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

/// The kubelet as an owner, where its static policy gives containers CPUs of their own.
fn kubelet(root: &Path) -> Option<PlacementOwner> {
    let text = read::text(&root.join("var/lib/kubelet/cpu_manager_state"))?;
    let state: serde_json::Value = serde_json::from_str(&text).ok()?;
    (state.get("policyName")?.as_str()? == "static").then(|| PlacementOwner {
        name: "kubelet (static CPU manager)".to_owned(),
        effect: "gives containers CPUs of their own by cpusets: masks stay within them".to_owned(),
    })
}

/// The sched_ext scheduler that decides within the kernel, as an owner; none where none is enabled.
fn scheduler(root: &Path) -> Option<PlacementOwner> {
    let name = sched_ext(root)?;
    Some(PlacementOwner {
        name: format!("sched_ext scheduler {name}"),
        effect: "decides where threads run within their masks, whatever plans want".to_owned(),
    })
}

/// Name of the sched_ext scheduler that is enabled or is just being enabled; empty if the kernel
/// does not show it.
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
    fn active_owner_is_named() {
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
    fn daemon_is_found_by_truncated_name() {
        let folder = tempfile::tempdir().unwrap();
        for (pid, name) in [(1, "nri-resource-po"), (2, "tuned"), (3, "uresource")] {
            write(
                folder.path(),
                &format!("proc/{pid}/comm"),
                &format!("{name}\n"),
            );
        }
        let names: Vec<String> = owners(folder.path()).into_iter().map(|o| o.name).collect();
        assert_eq!(names, ["tuned", "nri-resource-policy"]);
    }

    #[test]
    fn inactive_owner_is_not_named() {
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
