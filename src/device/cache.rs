//! Compiled kernels on disk: a kernel is compiled once for each source, kind of card and compiler.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use super::arch::Arch;
use super::error::DeviceError;
use super::nvrtc::{Compiler, options};
use super::source::Source;

/// A folder of compiled kernels, or none. What it holds is trusted only if it says that it is what is asked for and
/// is whole; all else is compiled again and replaced. A folder that cannot be written to costs a compilation (under a
/// second) each time, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    folder: Option<PathBuf>,
}

impl Cache {
    /// `$STEPLEDGER_HOME/kernels`, else `$XDG_CACHE_HOME/stepledger/kernels`, else `~/.cache/stepledger/kernels`.
    pub fn standard() -> Cache {
        let variable = |name: &str| env::var_os(name).map(PathBuf::from);
        Cache { folder: standard_folder(variable) }
    }

    /// In this folder, which is made when it is needed.
    pub fn at(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: Some(folder.into()) }
    }

    /// Where it keeps them; `None` where there is no folder for it.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The PTX of a source, from the folder or else compiled.
    pub fn ptx(&self, compiler: &Compiler, source: &Source, arch: Arch) -> Result<String, DeviceError> {
        let Some(folder) = &self.folder else { return compiler.compile(source, arch) };
        let key = key(source, arch, &compiler.version().to_string());
        let file = folder.join(file_name(source, arch, &key));
        if let Some(ptx) = fs::read_to_string(&file).ok().and_then(|entry| unpacked(&entry, &key)) {
            return Ok(ptx);
        }
        let ptx = compiler.compile(source, arch)?;
        // A cache that does not keep is slow, not wrong.
        let _ = replace(&file, &packed(&ptx, &key));
        Ok(ptx)
    }
}

/// The XDG base directory specification: a path that is not absolute is to be ignored.
fn standard_folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|path: &PathBuf| !path.as_os_str().is_empty());
    let own = set("STEPLEDGER_HOME").map(|home| home.join("kernels"));
    let xdg = || set("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let cache = || xdg().or_else(|| set("HOME").map(|home| home.join(".cache")));
    own.or_else(|| cache().map(|folder| folder.join("stepledger/kernels")))
}

/// Everything that the PTX depends on, on one line.
fn key(source: &Source, arch: Arch, compiler: &str) -> String {
    let options = options(source, arch).join(" ");
    format!("{} {arch} source {:032x} options {options} nvrtc {compiler}", source.name, digest(source.text))
}

fn file_name(source: &Source, arch: Arch, key: &str) -> String {
    format!("{}-{arch}-{:032x}.ptx", source.name, digest(key))
}

/// An entry begins with two comments, which PTX has too: the key, and the digest of what follows.
fn packed(ptx: &str, key: &str) -> String {
    format!("// {key}\n// digest {:032x}\n{ptx}", digest(ptx))
}

/// The PTX of an entry that is the one asked for, and whole.
fn unpacked(entry: &str, key: &str) -> Option<String> {
    let ptx = entry.strip_prefix(&format!("// {key}\n"))?;
    let (digested, ptx) = ptx.split_once('\n')?;
    (digested == format!("// digest {:032x}", digest(ptx))).then(|| ptx.to_owned())
}

/// Puts a whole file in place: whoever reads meanwhile sees the old one or the new one.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let folder = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let unique = format!(".{}-{}.part", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let part = folder.join(unique);
    let written = File::create(&part)
        .and_then(|mut open| open.write_all(text.as_bytes()).and_then(|()| open.sync_all()))
        .and_then(|()| fs::rename(&part, file));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

/// FNV-1a of 128 bits (Fowler, Noll & Vo; the IETF's draft-eastlake-fnv): the same on every machine and in every
/// version, unlike std's hashers. It is there to find accidents, not forgeries: whoever can write to the folder can run
/// programs as its owner anyway.
fn digest(text: &str) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = (1 << 88) + 0x13b;
    text.bytes().fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: Arch = Arch::new(8, 0);

    /// What a cache in `folder` answers, after its only entry was changed by `spoil`.
    fn after(spoil: impl Fn(&Path)) -> (String, String, String) {
        let folder = tempfile::tempdir().unwrap();
        let (cache, compiler) = (Cache::at(folder.path().join("new")), Compiler::find().unwrap());
        let first = cache.ptx(&compiler, &Source::fma(), CARD).unwrap();
        let entry = only_file(&folder.path().join("new"));
        spoil(&entry);
        let again = cache.ptx(&compiler, &Source::fma(), CARD).unwrap();
        assert_eq!(only_file(&folder.path().join("new")), entry, "one entry, and no part of one");
        (first, again, fs::read_to_string(entry).unwrap())
    }

    fn only_file(folder: &Path) -> PathBuf {
        let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        files.remove(0)
    }

    #[test]
    fn what_was_compiled_is_read_back() {
        // An entry that is valid in itself, and not what the compiler makes: whoever returns it has read it.
        let mark = |ptx: &str| format!("{ptx}\n// marked");
        let (first, again, _) = after(|entry| {
            let text = fs::read_to_string(entry).unwrap();
            let key = text.lines().next().unwrap().strip_prefix("// ").unwrap();
            let ptx = unpacked(&text, key).unwrap();
            fs::write(entry, packed(&mark(&ptx), key)).unwrap();
        });
        assert_eq!(again, mark(&first));
    }

    #[test]
    fn a_broken_or_foreign_entry_is_compiled_again_and_replaced() {
        let truncated = |text: &str| text[..text.len() / 2].to_owned();
        let changed = |text: &str| text.replacen("fma.rn.f32", "add.rn.f32", 1);
        let foreign = |text: &str| text.replacen("compute_80", "compute_90", 1);
        let empty = |_: &str| String::new();
        let spoils: [&dyn Fn(&str) -> String; 4] = [&truncated, &changed, &foreign, &empty];
        for spoil in spoils {
            let (first, again, entry) = after(|entry| {
                let text = fs::read_to_string(entry).unwrap();
                assert_ne!(spoil(&text), text);
                fs::write(entry, spoil(&text)).unwrap();
            });
            assert_eq!(again, first);
            assert!(entry.ends_with(&first), "the entry has been replaced");
        }
        let (first, again, _) = after(|entry| fs::write(entry, [0xff, 0xfe, 0]).unwrap());
        assert_eq!(again, first);
    }

    #[test]
    fn whatever_the_ptx_depends_on_is_in_the_key() {
        let source = Source::fma();
        let base = key(&source, CARD, "13.0");
        let other_text = Source { text: "// other", ..source.clone() };
        let other_size = Source { defines: vec![("BLOCK_SIZE", 128), ("CHAINS", 16)], ..source.clone() };
        let other_name = Source { name: "other", ..source.clone() };
        let others = [
            key(&other_text, CARD, "13.0"),
            key(&other_size, CARD, "13.0"),
            key(&other_name, CARD, "13.0"),
            key(&source, Arch::new(9, 0), "13.0"),
            key(&source, CARD, "13.1"),
        ];
        for other in others {
            assert_ne!(other, base);
            assert_ne!(file_name(&source, CARD, &other), file_name(&source, CARD, &base));
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a file");
        fs::write(&file, "").unwrap();
        let ptx = Cache::at(file.join("below")).ptx(&Compiler::find().unwrap(), &Source::fma(), CARD);
        assert!(ptx.unwrap().contains("fma_peak"));
    }

    #[test]
    fn the_folder_is_where_people_put_it() {
        let folder = |pairs: &[(&str, &str)]| {
            let found = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, path)| path.into());
            standard_folder(found).map(|folder| folder.display().to_string())
        };
        let home = ("HOME", "/home/a");
        assert_eq!(folder(&[home]).as_deref(), Some("/home/a/.cache/stepledger/kernels"));
        assert_eq!(folder(&[home, ("XDG_CACHE_HOME", "/c")]).as_deref(), Some("/c/stepledger/kernels"));
        let relative = folder(&[home, ("XDG_CACHE_HOME", "c")]);
        assert_eq!(relative.as_deref(), Some("/home/a/.cache/stepledger/kernels"));
        assert_eq!(folder(&[home, ("STEPLEDGER_HOME", "/s")]).as_deref(), Some("/s/kernels"));
        assert_eq!(folder(&[]), None);
    }

    /// The published test vectors of FNV-1a with 128 bits.
    #[test]
    fn the_digest_is_fnv() {
        assert_eq!(digest(""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(digest("a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(digest("foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }
}
