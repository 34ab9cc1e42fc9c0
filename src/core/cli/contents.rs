//! What the files that a run reads hold, in a word by which they are known wherever they lie.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crc32fast::Hasher;
use serde_json::Value;

use crate::record::{FILES, content_field};

/// The fields of a configuration that say what `--data` and `--init` hold. A file that is not given, or cannot be read,
/// has none: what reads it in earnest says why. Nor has a pipe, which can be read once.
pub fn contents<'p>(data: Option<&'p Path>, init: Option<&'p Path>) -> impl Iterator<Item = (String, Value)> {
    let files = FILES.into_iter().zip([data, init]);
    files.filter_map(|(file, path)| Some((content_field(file), content(path?).ok()?.into())))
}

/// Its length and its CRC-32 (that of gzip and PNG), which tells files apart that nobody made to be mistaken for each other.
fn content(path: &Path) -> io::Result<String> {
    const PART: usize = 1 << 16;
    // Before it is opened, which may wait for somebody who writes to it.
    if !fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut file = File::open(path)?;
    let (mut hasher, mut length) = (Hasher::new(), 0_u64);
    let mut part = vec![0; PART];
    loop {
        match file.read(&mut part) {
            Ok(0) => break,
            Ok(read) => {
                hasher.update(&part[..read]);
                length += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Ok(format!("crc32 {:08x} of {length} bytes", hasher.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_what_it_holds() {
        let dir = tempfile::tempdir().unwrap();
        let (text, none) = (dir.path().join("text"), dir.path().join("none"));
        // The check value of CRC-32/ISO-HDLC.
        std::fs::write(&text, "123456789").unwrap();
        let found: Vec<_> = contents(Some(&text), Some(&none)).collect();
        assert_eq!(found, [("data_content".to_owned(), "crc32 cbf43926 of 9 bytes".into())]);
        std::fs::write(&text, vec![7; 200_000]).unwrap();
        let [(_, long)] = &contents(Some(&text), None).collect::<Vec<_>>()[..] else { panic!("one") };
        assert!(long.as_str().unwrap().ends_with(" of 200000 bytes"), "{long}");
    }
}
