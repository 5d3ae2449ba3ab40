//! Topology, allowed PUs and identity of the host, from sysfs and procfs.
