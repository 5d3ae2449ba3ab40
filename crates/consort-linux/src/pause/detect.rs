//! The pausing mechanisms that a host offers, found without a write to the host.

use super::PauseKind;
use super::freezer::freezer_hierarchy;
use crate::cgroup::{CgroupVersion, text_of_file};
use crate::read;
use nix::unistd::{AccessFlags, eaccess};
use serde::Serialize;
use std::path::Path;

/// Verdict on one mechanism, for programs in the caller's own cgroup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PauseSupport {
    /// The mechanism.
    pub kind: PauseKind,
    /// True if the mechanism can be used.
    pub available: bool,
    /// The folder or calls that the mechanism uses, or the obstacle to using it.
    pub reason: String,
}

/// Returns a verdict on every mechanism, best first, for the host whose `/proc` and `/sys` are below
/// `root`.
pub fn mechanisms(root: &Path) -> Vec<PauseSupport> {
    let judge = |kind| {
        let found = match kind {
            PauseKind::FreezerV2 => check_freezer(root, CgroupVersion::V2),
            PauseKind::FreezerV1 => check_freezer(root, CgroupVersion::V1),
            PauseKind::Signals => Ok("SIGSTOP and SIGCONT to own processes".into()),
        };
        PauseSupport {
            kind,
            available: found.is_ok(),
            reason: found.unwrap_or_else(|why| why),
        }
    };
    PauseKind::ALL.map(judge).into()
}

fn check_freezer(root: &Path, version: CgroupVersion) -> Result<String, String> {
    let name = match version {
        CgroupVersion::V1 => "the freezer of cgroup version 1",
        CgroupVersion::V2 => "cgroup version 2",
    };
    let hierarchy = freezer_hierarchy(root, version);
    let hierarchy = hierarchy.ok_or_else(|| format!("{name} is not mounted"))?;
    let own = text_of_file(&root.join("proc/self/cgroup"));
    let own = own.ok_or("/proc/self/cgroup cannot be read")?;
    // A move within a hierarchy that has other controllers would change their limits as well.
    let others = hierarchy.other_controllers(&own);
    if !others.is_empty() {
        return Err(format!("{name} is mounted with {}", others.join(", ")));
    }
    let dir = hierarchy.dir_of(&own);
    let dir = dir.ok_or_else(|| format!("the own cgroup is not visible in {name}"))?;
    for (path, access) in [
        (dir.clone(), AccessFlags::W_OK | AccessFlags::X_OK),
        (dir.join("cgroup.procs"), AccessFlags::W_OK),
    ] {
        eaccess(&path, access).map_err(|errno| {
            let path = path.display();
            format!("{path} may not be written: {errno}; have the cgroup delegated or be root")
        })?;
    }
    if version == CgroupVersion::V2 && !dir.join("cgroup.freeze").exists() {
        // The root cgroup never has that file, so there the kernel's release decides.
        let release = read::text(&root.join("proc/sys/kernel/osrelease")).unwrap_or_default();
        let mut numbers = release.split('.').map_while(|n| n.parse::<u32>().ok());
        if (numbers.next(), numbers.next()) < (Some(5), Some(2)) {
            return Err("this kernel has no cgroup.freeze (before Linux 5.2)".into());
        }
    }
    Ok(format!("cgroups below {}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const BOTH: &str = "1 1 0:1 / /cg/freezer rw - cgroup cgroup rw,freezer\n\
                        2 1 0:2 / /cg/unified rw - cgroup2 cgroup2 rw\n";

    fn check(mountinfo: &str, cgroup: &str, files: &[(&str, &str)], expect: [&str; 2]) {
        let dir = tempfile::tempdir().unwrap();
        let own = [
            ("proc/self/mountinfo", mountinfo),
            ("proc/self/cgroup", cgroup),
        ];
        for (name, content) in own.iter().chain(files) {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let found = mechanisms(dir.path());
        let shown = |i: usize| found[i].reason.replace(dir.path().to_str().unwrap(), "");
        assert_eq!([shown(0), shown(1)], expect);
        assert!(found[2].available);
    }

    const FILES: [(&str, &str); 3] = [
        ("cg/freezer/a/cgroup.procs", ""),
        ("cg/unified/b/cgroup.procs", ""),
        ("proc/sys/kernel/osrelease", "6.18.4-x\n"),
    ];

    #[test]
    fn both_mounted_freezers_are_found() {
        check(
            BOTH,
            "6:freezer:/a\n0::/b\n",
            &FILES,
            ["cgroups below /cg/unified/b", "cgroups below /cg/freezer/a"],
        );
    }

    #[test]
    fn unmounted_freezers_are_named() {
        check(
            "",
            "0::/\n",
            &[],
            [
                "cgroup version 2 is not mounted",
                "the freezer of cgroup version 1 is not mounted",
            ],
        );
    }

    #[test]
    fn freezer_with_other_controllers_is_not_used() {
        check(
            BOTH,
            "6:cpuset,freezer:/a\n0::/b/../c\n",
            &FILES,
            [
                "the own cgroup is not visible in cgroup version 2",
                "the freezer of cgroup version 1 is mounted with cpuset",
            ],
        );
    }

    #[test]
    fn kernel_without_cgroup_freeze_is_too_old() {
        let files = [FILES[1], ("proc/sys/kernel/osrelease", "4.19.0\n")];
        check(
            BOTH,
            "6:freezer:/none\n0::/b\n",
            &files,
            [
                "this kernel has no cgroup.freeze (before Linux 5.2)",
                "/cg/freezer/none may not be written: ENOENT: No such file or directory; \
                 have the cgroup delegated or be root",
            ],
        );
    }
}
