//! How large an array must be so that no cache holds it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::record::{ARRAY_PART_OF_MEMORY, MOST_ARRAY_BYTES, beyond_caches_bytes};

const LEAST_BYTES: u64 = 64 << 20;
/// A system that lists no further level may hide one: a virtual machine often does.
const LAST_LEVEL: u32 = 3;

/// All last-level caches of this machine together: a processor may have many, each for some of its cores, and threads on
/// all cores have all of them. `None` where the system lists none of a third level: the last one may be hidden then, or
/// there may be no more than two.
pub fn bytes() -> Option<u64> {
    last_level(Path::new("/sys/devices/system/cpu"))
}

/// Bytes of each of three arrays to measure a CPU's memory with: beyond its caches ([`beyond_caches_bytes`]), 64 MiB to
/// 4 GiB; of the memory that there is for them, half at most in all, so that little memory may leave them below the caches.
pub fn array_bytes(caches: Option<u64>, memory_bytes: Option<u64>) -> u64 {
    let wanted = beyond_caches_bytes(caches).clamp(LEAST_BYTES, MOST_ARRAY_BYTES);
    let most = memory_bytes.map_or(MOST_ARRAY_BYTES, |bytes| bytes / ARRAY_PART_OF_MEMORY);
    wanted.min(most.max(LEAST_BYTES))
}

/// The last-level caches together, as the kernel lists them for each processor.
fn last_level(processors: &Path) -> Option<u64> {
    let folders = fs::read_dir(processors).ok()?.flatten().map(|entry| entry.path().join("cache"));
    let distinct: BTreeMap<(u32, String), u64> = folders.filter_map(|folder| farthest(&folder)).collect();
    let known = distinct.keys().any(|(level, _)| *level >= LAST_LEVEL);
    known.then(|| distinct.into_values().fold(0, u64::saturating_add))
}

/// The farthest cache of one processor: its level and the processors that share it, which tell it from others, and its
/// size.
fn farthest(folder: &Path) -> Option<((u32, String), u64)> {
    let caches = fs::read_dir(folder).ok()?.flatten();
    caches.filter_map(|cache| listed(&cache.path())).max_by_key(|((level, _), _)| *level)
}

fn listed(cache: &Path) -> Option<((u32, String), u64)> {
    let fact = |name: &str| Some(fs::read_to_string(cache.join(name)).ok()?.trim().to_owned());
    let level = fact("level")?.parse().ok()?;
    Some(((level, fact("shared_cpu_list")?), size(&fact("size")?)?))
}

/// `32768K`.
fn size(text: &str) -> Option<u64> {
    text.strip_suffix('K')?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processors with a cache of level 1 each, and the last level that is shared as told.
    fn processors(shared: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (cpu, (list, size)) in shared.iter().enumerate() {
            for (index, level, list, size) in
                [("index0", "1", &*cpu.to_string(), "32K"), ("index3", "3", list, size)]
            {
                let folder = root.path().join(format!("cpu{cpu}/cache/{index}"));
                fs::create_dir_all(&folder).unwrap();
                for (name, text) in [("level", level), ("shared_cpu_list", list), ("size", size)] {
                    fs::write(folder.join(name), format!("{text}\n")).unwrap();
                }
            }
        }
        fs::create_dir(root.path().join("cpufreq")).unwrap();
        fs::write(root.path().join("online"), "0-3\n").unwrap();
        root
    }

    #[test]
    fn arrays_are_four_times_all_last_level_caches_together() {
        let two_dies =
            processors(&[("0-1", "32768K"), ("0-1", "32768K"), ("2-3", "16384K"), ("2-3", "16384K")]);
        assert_eq!(last_level(two_dies.path()), Some(48 << 20));
        assert_eq!(array_bytes(Some(48 << 20), None), 192 << 20);
    }

    #[test]
    fn caches_whose_last_level_is_not_listed_are_not_known() {
        assert_eq!(last_level(Path::new("/not/there")), None);
        let hidden = processors(&[("0", "?")]);
        assert_eq!(
            last_level(hidden.path()),
            None,
            "the level below is listed, and is not taken for the last"
        );
        assert_eq!(array_bytes(None, None), 1 << 30);
        assert_eq!(array_bytes(None, Some(3 << 30)), 512 << 20, "within the memory that there is");
        // A core that has no part in the others' third level counts with what it has.
        let apart = processors(&[("0-1", "32768K"), ("0-1", "32768K"), ("2", "?")]);
        assert_eq!(last_level(apart.path()), Some((32 << 20) + (32 << 10)));
    }

    #[test]
    fn absurd_caches_still_give_a_size() {
        assert_eq!(array_bytes(Some(0), None), LEAST_BYTES);
        assert_eq!(array_bytes(Some(1 << 40), None), MOST_ARRAY_BYTES);
        assert_eq!(array_bytes(Some(u64::MAX), Some(u64::MAX)), MOST_ARRAY_BYTES);
    }

    #[test]
    fn arrays_leave_half_of_the_memory() {
        assert_eq!(3 * array_bytes(Some(1 << 30), Some(6 << 30)), 3 << 30);
        assert_eq!(array_bytes(Some(1 << 30), Some(0)), LEAST_BYTES);
    }
}
