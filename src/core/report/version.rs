//! Versions of programs, in the order in which they follow each other.

use std::cmp::Ordering;

/// A version such as `2.9.0`, `2.9.0a0+git1f2e` or `0.10.0-rc.1`.
///
/// Numbers are compared as numbers, and `2.9` is `2.9.0`. Before a version come its own pre-releases (`dev`, then `a`, `b`
/// and `rc`), after it what was changed since (`post`); what is behind a `+` tells builds of one version apart. This is the
/// order of Python's versions (PEP 440), which libtorch's are, and of semantic versioning as far as they agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Without zeros at the end.
    release: Vec<Part>,
    /// What is before the version, or after it.
    stage: Vec<Part>,
    build: Option<Vec<Part>>,
}

/// A number, or a word between numbers; the end of a version lies between what is before it and what is after it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// By its place in [`EARLIER`].
    Before(usize, String),
    End,
    After,
    /// By its digits, without zeros before them: there are dates among them that no integer holds.
    Number(usize, String),
}

/// What versions have before they are out, the first of them first. A word that is none of these is before all of them.
const EARLIER: [&[&str]; 4] = [&["dev"], &["a", "alpha"], &["b", "beta"], &["rc", "c", "pre", "preview"]];
const LATER: [&str; 3] = ["post", "rev", "r"];

impl Version {
    /// `None` of what does not begin with a number.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let text = text.strip_prefix('v').unwrap_or(&text);
        let (public, build) =
            text.split_once('+').map_or((text, None), |(public, build)| (public, Some(build)));
        let end =
            public.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(public.len());
        let (release, stage) = public.split_at(end);
        let release = release.trim_end_matches('.');
        if release.split('.').any(str::is_empty) {
            return None;
        }
        let mut release = parts(release);
        while release.len() > 1 && release.last() == Some(&number("0")) {
            release.pop();
        }
        Some(Version { release, stage: parts(stage), build: build.map(parts) })
    }

    /// How this one stands to one that was asked for: a build is told from others only if that one says which.
    pub fn against(&self, asked: &Version) -> Ordering {
        let build = || match (&self.build, &asked.build) {
            (_, None) => Ordering::Equal,
            (ours, asked) => ours.cmp(asked),
        };
        self.public(asked).then_with(build)
    }

    fn public(&self, other: &Version) -> Ordering {
        self.release
            .cmp(&other.release)
            .then_with(|| up_to_the_end(&self.stage).cmp(up_to_the_end(&other.stage)))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.public(other).then_with(|| self.build.cmp(&other.build))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn up_to_the_end(stage: &[Part]) -> impl Iterator<Item = &Part> {
    stage.iter().chain([&Part::End])
}

/// The numbers and words of a text, whatever stands between them.
fn parts(text: &str) -> Vec<Part> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    words
        .flat_map(|word| word.as_bytes().chunk_by(|one, next| one.is_ascii_digit() == next.is_ascii_digit()))
        .map(part)
        .collect()
}

fn part(letters: &[u8]) -> Part {
    let text = String::from_utf8_lossy(letters);
    if letters[0].is_ascii_digit() {
        return number(&text);
    }
    if LATER.contains(&&*text) {
        return Part::After;
    }
    match EARLIER.iter().position(|words| words.contains(&&*text)) {
        Some(place) => Part::Before(place + 1, String::new()),
        None => Part::Before(0, text.into_owned()),
    }
}

fn number(digits: &str) -> Part {
    let digits = digits.trim_start_matches('0');
    Part::Number(digits.len(), digits.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap_or_else(|| panic!("{text} is no version"))
    }

    #[test]
    fn versions_follow_each_other_part_by_part() {
        let rising = [
            "0.9.1",
            "0.10.0-alpha.1",
            "0.10.0-rc.1",
            "0.10.0-rc.2",
            "0.10.0",
            "2.9.0.dev20250101",
            "2.9.0.dev20250102",
            "2.9.0a0",
            "2.9.0a0+git1f2e",
            "2.9.0b1",
            "2.9.0rc1",
            "2.9.0rc10",
            "2.9.0",
            "2.9.0+cpu",
            "2.9.0+cu99",
            "2.9.0+cu130",
            "2.9.0.post1",
            "2.9.1",
            "2.11.0",
            "2.11.0.1",
            "20250101123456789012345",
        ];
        for (place, one) in rising.iter().enumerate() {
            for (other_place, other) in rising.iter().enumerate() {
                assert_eq!(version(one).cmp(&version(other)), place.cmp(&other_place), "{one} and {other}");
            }
        }
    }

    #[test]
    fn what_is_left_out_is_left_open() {
        for (has, asked, expected) in [
            ("2.9.0+cu130", "2.9", Ordering::Equal),
            ("2.9.0+cu130", "2.9.0+cu130", Ordering::Equal),
            ("2.9.0+cu130", "2.9.0+cu128", Ordering::Greater),
            ("2.9.0", "2.9.0+cu128", Ordering::Less),
            ("2.9.1", "2.9", Ordering::Greater),
            ("2.10.0", "v2.9", Ordering::Greater),
            ("2.9.0a0+git1f2e", "2.9", Ordering::Less),
        ] {
            assert_eq!(version(has).against(&version(asked)), expected, "{has} against {asked}");
        }
        for none in ["", "main", "+cu130", ".9", "2..9", "v", "é", "-1"] {
            assert_eq!(Version::parse(none), None, "{none:?}");
        }
    }
}
