//! What works on this machine and what does not: the checks of `stepledger doctor` as values.

use serde::{Deserialize, Serialize};

use super::wrap::{prose, wrap_at};

/// How something that was looked at stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Works,
    /// Is not there, and need not be.
    Absent,
    /// Is there and does not work, or is not there and must be.
    Fails,
    /// Could not be looked at.
    NotRun,
}

impl Standing {
    pub fn as_str(self) -> &'static str {
        match self {
            Standing::Works => "works",
            Standing::Absent => "absent",
            Standing::Fails => "FAILS",
            Standing::NotRun => "not run",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    pub standing: Standing,
    /// Whether `stepledger run` cannot do without it.
    pub needed: bool,
    /// What was found: a version, a path, or why it does not work.
    pub found: String,
    /// What to do about it; null where nothing needs doing.
    pub way_out: Option<String>,
}

impl Check {
    pub fn works(name: &str, found: impl Into<String>) -> Self {
        Check::new(name, Standing::Works, found)
    }

    pub fn absent(name: &str, found: impl Into<String>, way_out: impl Into<String>) -> Self {
        Check { way_out: Some(way_out.into()), ..Check::new(name, Standing::Absent, found) }
    }

    pub fn fails(name: &str, found: impl Into<String>, way_out: impl Into<String>) -> Self {
        Check { way_out: Some(way_out.into()), ..Check::new(name, Standing::Fails, found) }
    }

    pub fn not_run(name: &str, why: impl Into<String>) -> Self {
        Check::new(name, Standing::NotRun, why)
    }

    /// The same, of something that `stepledger run` cannot do without.
    pub fn needed(self) -> Self {
        Check { needed: true, ..self }
    }

    fn new(name: &str, standing: Standing, found: impl Into<String>) -> Self {
        Check { name: name.to_owned(), standing, needed: false, found: found.into(), way_out: None }
    }
}

/// All that was looked at. Its fields, in order, are the documented object of `doctor --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkup {
    pub stepledger: String,
    /// Whether `stepledger run` works, on a CPU at least.
    pub run_works: bool,
    pub checks: Vec<Check>,
}

impl Checkup {
    pub fn new(stepledger: &str, checks: Vec<Check>) -> Self {
        let run_works = checks.iter().all(|check| !check.needed || check.standing == Standing::Works);
        Checkup { stepledger: stepledger.to_owned(), run_works, checks }
    }
}

/// A line for each check, and the way out of what does not work under it, as wide as suits so wide a terminal.
pub fn render_checkup(checkup: &Checkup, width: usize) -> String {
    let width = prose(width);
    let widest = checkup.checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
    let mut text = format!("stepledger {}\n\n", checkup.stepledger);
    for Check { name, standing, found, way_out, .. } in &checkup.checks {
        let begin = format!(" {:7}  {name:widest$}  ", standing.as_str());
        let indent = begin.chars().count();
        text += &(wrap_at(&(begin + found), indent, width) + "\n");
        if let Some(way_out) = way_out {
            text += &(wrap_at(&format!("{:indent$}→ {way_out}", ""), indent + 2, width) + "\n");
        }
    }
    text + "\n" + &wrap_at(&verdict(checkup), 0, width) + "\n"
}

fn verdict(checkup: &Checkup) -> String {
    if checkup.run_works {
        return "`stepledger run` works here.".to_owned();
    }
    let missing = checkup.checks.iter().filter(|check| check.needed && check.standing != Standing::Works);
    let names: Vec<&str> = missing.map(|check| check.name.as_str()).collect();
    format!("`stepledger run` cannot work here: {}. Commands that only read files do.", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks() -> Vec<Check> {
        vec![
            Check::works("engine", "/opt/libstepledger.so").needed(),
            Check::absent("driver", "libcuda.so.1 was not found", "install NVIDIA's driver"),
            Check::not_run("GPUs", "no driver"),
        ]
    }

    #[test]
    fn what_run_can_do_without_does_not_count() {
        let well = Checkup::new("0.1.0", checks());
        assert!(well.run_works);
        assert!(render_checkup(&well, 80).ends_with("`stepledger run` works here.\n"));
    }

    #[test]
    fn what_is_needed_is_named_with_its_way_out() {
        let broken = Check::fails("libtorch", "2.5.0, built for 2.11.0", "set LIBTORCH").needed();
        let unwell = Checkup::new("0.1.0", checks().into_iter().chain([broken]).collect());
        assert!(!unwell.run_works);
        let text = render_checkup(&unwell, 80);
        assert!(text.contains(" FAILS    libtorch  2.5.0, built for 2.11.0\n"), "{text}");
        assert!(text.contains("→ set LIBTORCH\n") && text.contains("cannot work here: libtorch."), "{text}");
    }

    #[test]
    fn lines_suit_the_terminal_and_lose_nothing() {
        let long = "word ".repeat(40);
        let check = Check::fails("libtorch on a GPU", long.trim(), long.trim()).needed();
        let checkup = Checkup::new("0.1.0", checks().into_iter().chain([check]).collect());
        for (width, most) in [(60, 60), (80, 80), (200, 100)] {
            let text = render_checkup(&checkup, width);
            assert!(text.lines().all(|line| line.chars().count() <= most), "{text}");
            assert_eq!(text.matches("word").count(), 80, "{text}");
            assert!(text.contains(&format!("\n{:31}word", "")), "under its way out: {text}");
        }
    }

    #[test]
    fn what_is_needed_and_was_not_looked_at_does_not_pass() {
        let unknown = Checkup::new("0.1.0", vec![Check::not_run("libtorch", "no engine").needed()]);
        assert!(!unknown.run_works);
    }

    #[test]
    fn the_object_reads_back() {
        let checkup = Checkup::new("0.1.0", checks());
        let text = serde_json::to_string(&checkup).unwrap();
        assert!(text.contains(r#""standing":"not_run""#), "{text}");
        assert_eq!(serde_json::from_str::<Checkup>(&text).unwrap(), checkup);
    }
}
