//! What control groups leave of a machine's memory: in a container the kernel ends a program that takes more, however
//! much the machine has.

use std::path::{Component, Path, PathBuf};

/// Where the groups of version 2 are, and where those of version 1 that limit memory.
const V2: &str = "/sys/fs/cgroup";
const V1: &str = "/sys/fs/cgroup/memory";

/// The files that limit a process's memory: those of its groups and of all above them, as its `/proc/self/cgroup` names
/// them. In a container a group may be named by a path that only the host knows; the root is the container's own then.
pub fn limit_files(groups: &str) -> Vec<PathBuf> {
    groups.lines().filter_map(group).flat_map(|(root, file, path)| upwards(root, file, path)).collect()
}

/// A line is `ID:CONTROLLERS:PATH`; version 2 has the id 0 and names no controllers.
fn group(line: &str) -> Option<(&'static str, &'static str, &str)> {
    let mut parts = line.splitn(3, ':');
    let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    if id == "0" && controllers.is_empty() {
        return Some((V2, "memory.max", path));
    }
    controllers.split(',').any(|one| one == "memory").then_some((V1, "memory.limit_in_bytes", path))
}

fn upwards(root: &str, file: &'static str, path: &str) -> Vec<PathBuf> {
    let within = Path::new(path.trim_start_matches('/'));
    // What lies outside of the namespace (`/../other`) cannot be seen from here.
    let is_seen = within.components().all(|part| matches!(part, Component::Normal(_)));
    let group = if is_seen { Path::new(root).join(within) } else { PathBuf::from(root) };
    group.ancestors().take_while(|folder| folder.starts_with(root)).map(|folder| folder.join(file)).collect()
}

/// The smallest limit that such files say. Version 2 says `max` where there is none, and version 1 the largest number
/// of whole pages, which is more than any machine has.
pub fn least_limit(texts: impl IntoIterator<Item = String>) -> Option<i64> {
    texts.into_iter().filter_map(|text| text.trim().parse().ok()).filter(|&bytes| bytes > 0).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(groups: &str) -> Vec<String> {
        limit_files(groups).iter().map(|file| file.display().to_string()).collect()
    }

    #[test]
    fn version_2_limits_from_the_group_up_to_the_root() {
        let above = ["/sys/fs/cgroup/a.slice/memory.max", "/sys/fs/cgroup/memory.max"];
        assert_eq!(files("0::/a.slice/b.scope\n")[1..], above);
        assert_eq!(files("0::/a.slice/b.scope\n")[0], "/sys/fs/cgroup/a.slice/b.scope/memory.max");
        assert_eq!(files("0::/\n"), ["/sys/fs/cgroup/memory.max"]);
        assert_eq!(files("0::/../other\n"), ["/sys/fs/cgroup/memory.max"], "outside of the namespace");
    }

    #[test]
    fn of_version_1_the_memory_controller_counts() {
        let groups = "4:cpu,memory:/docker/1f:2e\n3:cpuset:/x\n9:name=systemd:/y\n";
        let expected = ["/docker/1f:2e", "/docker", ""]
            .map(|path| format!("/sys/fs/cgroup/memory{path}/memory.limit_in_bytes"));
        assert_eq!(files(groups), expected);
        // Of both versions at once, as systemd's hybrid hierarchy has them.
        assert_eq!(files("4:memory:/\n0::/\n").len(), 2);
    }

    #[test]
    fn what_is_no_group_limits_nothing() {
        for groups in ["", "\n", "nonsense", "0::", "3:cpuset:/x", "1:memory_more:/x"] {
            let found = files(groups);
            assert!(found.iter().all(|file| file == "/sys/fs/cgroup/memory.max"), "{groups:?}: {found:?}");
        }
    }

    #[test]
    fn the_least_limit_counts() {
        let least = |texts: &[&str]| least_limit(texts.iter().map(|text| (*text).to_owned()));
        assert_eq!(least(&["max\n", "2147483648\n", "4294967296\n"]), Some(2 << 30));
        assert_eq!(least(&["max\n"]), None);
        assert_eq!(least(&["9223372036854771712\n"]), Some(9_223_372_036_854_771_712));
        assert_eq!(least(&["", "0", "-1", "many"]), None);
    }
}
