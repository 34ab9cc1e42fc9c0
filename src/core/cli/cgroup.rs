//! What control groups leave of a machine's memory: in a container the kernel ends a program that takes more, however
//! much the machine has.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// How a version of control groups says what we ask.
#[derive(Debug, PartialEq, Eq)]
struct Version {
    /// Where those groups are that limit memory.
    root: &'static str,
    limit: &'static str,
    usage: &'static str,
    /// In `memory.stat`, of the group and all below it.
    inactive_file: &'static str,
}

static V2: Version = Version {
    root: "/sys/fs/cgroup",
    limit: "memory.max",
    usage: "memory.current",
    inactive_file: "inactive_file",
};

static V1: Version = Version {
    root: "/sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    inactive_file: "total_inactive_file",
};

/// A group that memory is limited in.
#[derive(Debug)]
pub struct Group {
    folder: PathBuf,
    version: &'static Version,
}

/// A process's groups and all above them, as its `/proc/self/cgroup` names them. In a container a group may be named by a
/// path that only the host knows; the root is the container's own then.
pub fn groups_of(groups: &str) -> Vec<Group> {
    groups.lines().filter_map(group).flat_map(|(version, path)| upwards(version, path)).collect()
}

/// A line is `ID:CONTROLLERS:PATH`; version 2 has the id 0 and names no controllers.
fn group(line: &str) -> Option<(&'static Version, &str)> {
    let mut parts = line.splitn(3, ':');
    let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    if id == "0" && controllers.is_empty() {
        return Some((&V2, path));
    }
    controllers.split(',').any(|one| one == "memory").then_some((&V1, path))
}

fn upwards(version: &'static Version, path: &str) -> Vec<Group> {
    let (root, within) = (Path::new(version.root), Path::new(path.trim_start_matches('/')));
    // What lies outside of the namespace (`/../other`) cannot be seen from here.
    let is_seen = within.components().all(|part| matches!(part, Component::Normal(_)));
    let group = if is_seen { root.join(within) } else { root.to_owned() };
    let folders = group.ancestors().take_while(|folder| folder.starts_with(root));
    folders.map(|folder| Group { folder: folder.to_owned(), version }).collect()
}

impl Group {
    /// What its limit leaves now; `None` where it has none.
    pub fn left(&self) -> Option<i64> {
        let text = |file: &str| fs::read_to_string(self.folder.join(file)).ok();
        let used = text(self.version.usage).zip(text("memory.stat"));
        let used = used.and_then(|(usage, stat)| working_set(&usage, &stat, self.version.inactive_file));
        left(&text(self.version.limit)?, used)
    }
}

/// Bytes below a limit. Version 2 says `max` where there is none, and version 1 the largest number of whole pages, which
/// is more than any machine has. Where nobody says what is used, all of it.
fn left(limit: &str, used: Option<i64>) -> Option<i64> {
    let limit = limit.trim().parse::<i64>().ok().filter(|&bytes| bytes > 0)?;
    Some((limit - used.unwrap_or(0)).max(0))
}

/// What is used and cannot be had back at once: usage without the pages of files that nobody has touched lately, which
/// the kernel drops first. It is what Kubernetes calls the working set.
fn working_set(usage: &str, stat: &str, inactive_file: &str) -> Option<i64> {
    let usage: i64 = usage.trim().parse().ok()?;
    let mut fields = stat.lines().filter_map(|line| line.split_once(' '));
    let inactive = fields.find(|(name, _)| *name == inactive_file)?.1.trim().parse::<i64>().ok()?;
    Some((usage - inactive).max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(groups: &str) -> Vec<String> {
        let file = |group: &Group| group.folder.join(group.version.limit).display().to_string();
        groups_of(groups).iter().map(file).collect()
    }

    #[test]
    fn version_2_limits_from_the_group_up_to_the_root() {
        let above = ["/sys/fs/cgroup/a.slice/memory.max", "/sys/fs/cgroup/memory.max"];
        assert_eq!(limits("0::/a.slice/b.scope\n")[1..], above);
        assert_eq!(limits("0::/a.slice/b.scope\n")[0], "/sys/fs/cgroup/a.slice/b.scope/memory.max");
        assert_eq!(limits("0::/\n"), ["/sys/fs/cgroup/memory.max"]);
        assert_eq!(limits("0::/../other\n"), ["/sys/fs/cgroup/memory.max"], "outside of the namespace");
    }

    #[test]
    fn of_version_1_the_memory_controller_counts() {
        let groups = "4:cpu,memory:/docker/1f:2e\n3:cpuset:/x\n9:name=systemd:/y\n";
        let expected = ["/docker/1f:2e", "/docker", ""]
            .map(|path| format!("/sys/fs/cgroup/memory{path}/memory.limit_in_bytes"));
        assert_eq!(limits(groups), expected);
        // Of both versions at once, as systemd's hybrid hierarchy has them.
        assert_eq!(limits("4:memory:/\n0::/\n").len(), 2);
    }

    #[test]
    fn what_is_no_group_limits_nothing() {
        for groups in ["", "\n", "nonsense", "0::", "3:cpuset:/x", "1:memory_more:/x"] {
            let found = limits(groups);
            assert!(found.iter().all(|file| file == "/sys/fs/cgroup/memory.max"), "{groups:?}: {found:?}");
        }
    }

    #[test]
    fn a_limit_leaves_what_is_not_used() {
        assert_eq!(
            (left("2147483648\n", Some(1 << 30)), left("2147483648\n", None)),
            (Some(1 << 30), Some(2 << 30))
        );
        assert_eq!((left("max\n", Some(1)), left("4096\n", Some(8192))), (None, Some(0)));
        assert_eq!(left("9223372036854771712\n", Some(0)), Some(9_223_372_036_854_771_712));
        for nonsense in ["", "0", "-1", "many"] {
            assert_eq!(left(nonsense, None), None, "{nonsense:?}");
        }
    }

    #[test]
    fn pages_of_files_that_nobody_touched_are_not_in_use() {
        let stat = "anon 700\ninactive_file 200\ntotal_inactive_file 300\nactive_file 100\n";
        assert_eq!(working_set("1000\n", stat, V2.inactive_file), Some(800));
        assert_eq!(working_set("1000\n", stat, V1.inactive_file), Some(700));
        assert_eq!(working_set("100\n", stat, V2.inactive_file), Some(0));
        assert_eq!(
            (working_set("1000\n", "anon 7\n", "inactive_file"), working_set("", stat, "anon")),
            (None, None)
        );
    }
}
