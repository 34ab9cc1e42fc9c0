//! How large an array must be so that no cache holds it.

use std::fs;
use std::path::Path;

/// Times the largest cache (STREAM's own rule).
const TIMES: u64 = 4;
const LEAST_BYTES: u64 = 64 << 20;
const MOST_BYTES: u64 = 1 << 30;

/// Bytes of each of three arrays to measure a CPU's memory with: four times its largest cache, 64 MiB to 1 GiB.
pub fn array_bytes() -> u64 {
    sized(largest(Path::new("/sys/devices/system/cpu/cpu0/cache")))
}

fn sized(largest_cache: Option<u64>) -> u64 {
    (TIMES * largest_cache.unwrap_or(0)).clamp(LEAST_BYTES, MOST_BYTES)
}

/// The largest that the kernel lists; `None` where it lists none.
fn largest(folder: &Path) -> Option<u64> {
    let caches = fs::read_dir(folder).ok()?.flatten();
    caches.filter_map(|cache| size(&fs::read_to_string(cache.path().join("size")).ok()?)).max()
}

/// `32768K`.
fn size(text: &str) -> Option<u64> {
    text.trim().strip_suffix('K')?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_four_times_the_largest_cache() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("index0", "32K\n"), ("index3", "32768K\n"), ("index9", "?")] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("size"), text).unwrap();
        }
        fs::write(folder.path().join("uevent"), "").unwrap();
        assert_eq!(largest(folder.path()), Some(32 << 20));
        assert_eq!(sized(Some(32 << 20)), 128 << 20);
    }

    #[test]
    fn a_cache_that_is_not_known_or_absurd_still_gives_a_size() {
        assert_eq!(largest(Path::new("/not/there")), None);
        assert_eq!((sized(None), sized(Some(1 << 40))), (LEAST_BYTES, MOST_BYTES));
    }
}
