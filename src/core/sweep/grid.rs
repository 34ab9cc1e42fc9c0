//! The settings that a sweep goes over.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::theory::Checkpoint;

/// The flags of `stepledger run` that a grid can have several values of, in the order in which cells count them.
pub const AXES: [&str; 7] = ["batch", "checkpoint", "accumulate", "dtype", "attention", "adamw", "seq"];

/// One flag with the values it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    pub flag: String,
    pub values: Vec<String>,
}

/// One setting: a value for each axis of its grid.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cell {
    pub values: Vec<(String, String)>,
}

/// All combinations of the axes' values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Axis>", into = "Vec<Axis>")]
pub struct Grid {
    axes: Vec<Axis>,
}

/// What is wrong with a grid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GridError {
    #[error("--{flag} has no value; give one or several, such as --{flag} {example}", example = example(flag))]
    NoValues { flag: String },
    #[error("--{flag}: element {place} of {given:?} is empty; take out the comma too many")]
    EmptyElement { flag: String, place: usize, given: String },
    #[error(
        "--{flag}: {} as elements {first} and {second}; each cell is run once",
        if value == known { format!("{value:?} is there twice,") } else { format!("{known:?} and {value:?} are the same,") }
    )]
    Duplicate { flag: String, known: String, value: String, first: usize, second: usize },
    #[error("--{flag} is there twice; give it all of its values at once")]
    FlagTwice { flag: String },
    #[error("--{flag} takes one value in a sweep; several may have {}", AXES.map(|flag| format!("--{flag}")).join(", "))]
    UnknownFlag { flag: String },
    #[error("the grid has {cells} cells, and at most {MOST_CELLS} are swept at once; take out values")]
    TooLarge { cells: usize },
}

/// More would take days, and is a slip of the pen.
pub const MOST_CELLS: usize = 10_000;

impl Axis {
    /// Reads values with commas between them. What the values mean is checked where they are used.
    pub fn parse(flag: &str, given: &str) -> Result<Axis, GridError> {
        if given.trim().is_empty() {
            return Err(GridError::NoValues { flag: flag.to_owned() });
        }
        let values: Vec<String> = given.split(',').map(|element| plain(flag, element.trim())).collect();
        if let Some(empty) = values.iter().position(String::is_empty) {
            let (flag, given) = (flag.to_owned(), given.to_owned());
            return Err(GridError::EmptyElement { flag, place: empty + 1, given });
        }
        let axis = Axis { flag: flag.to_owned(), values };
        axis.check().map(|()| axis)
    }

    /// Refuses an axis that would make no cell, or one of them twice.
    fn check(&self) -> Result<(), GridError> {
        let Axis { flag, values } = self;
        if !AXES.contains(&flag.as_str()) {
            return Err(GridError::UnknownFlag { flag: flag.clone() });
        }
        if values.is_empty() {
            return Err(GridError::NoValues { flag: flag.clone() });
        }
        for (second, value) in values.iter().enumerate() {
            let same = |known: &String| effect(flag, known) == effect(flag, value);
            if let Some(first) = values[..second].iter().position(same) {
                let (flag, known, value) = (flag.clone(), values[first].clone(), value.clone());
                return Err(GridError::Duplicate {
                    flag,
                    known,
                    value,
                    first: first + 1,
                    second: second + 1,
                });
            }
        }
        Ok(())
    }
}

impl Grid {
    /// The grid of these axes; without any it has one cell.
    ///
    /// # Errors
    /// Where a flag is none of [`AXES`] or is there twice, an axis has no values or two that make the same runs, or
    /// there are more than [`MOST_CELLS`].
    pub fn new(axes: Vec<Axis>) -> Result<Grid, GridError> {
        axes.iter().try_for_each(Axis::check)?;
        let twice =
            axes.iter().enumerate().find(|(place, axis)| axes[..*place].iter().any(|a| a.flag == axis.flag));
        if let Some((_, axis)) = twice {
            return Err(GridError::FlagTwice { flag: axis.flag.clone() });
        }
        let cells = axes.iter().fold(1usize, |cells, axis| cells.saturating_mul(axis.values.len()));
        if cells > MOST_CELLS {
            return Err(GridError::TooLarge { cells });
        }
        Ok(Grid { axes })
    }

    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The cells, the last axis counting fastest.
    pub fn cells(&self) -> Vec<Cell> {
        let start = vec![Cell { values: Vec::new() }];
        self.axes.iter().fold(start, |cells, axis| {
            let with = |cell: &Cell, value: &String| Cell {
                values: [cell.values.clone(), vec![(axis.flag.clone(), value.clone())]].concat(),
            };
            cells.iter().flat_map(|cell| axis.values.iter().map(move |value| with(cell, value))).collect()
        })
    }
}

impl TryFrom<Vec<Axis>> for Grid {
    type Error = GridError;

    fn try_from(axes: Vec<Axis>) -> Result<Grid, GridError> {
        Grid::new(axes)
    }
}

impl From<Grid> for Vec<Axis> {
    fn from(grid: Grid) -> Self {
        grid.axes
    }
}

impl Cell {
    /// The flags of `stepledger run` that make this setting.
    pub fn args(&self) -> Vec<String> {
        self.values.iter().flat_map(|(flag, value)| [format!("--{flag}"), value.clone()]).collect()
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.values.iter().map(|(flag, value)| format!("{flag} {value}")).collect();
        f.write_str(if parts.is_empty() { "the base setting" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

/// Two spellings of one value are one value, as [`Axis::parse`] keeps it.
fn plain(flag: &str, value: &str) -> String {
    let number = || value.parse::<i64>().ok().map(|number| number.to_string());
    let policy = || value.parse::<Checkpoint>().ok().map(|policy| policy.to_string());
    let same = if flag == "checkpoint" { policy() } else { number() };
    same.unwrap_or_else(|| value.to_owned())
}

/// Two values that make the same run have one.
fn effect(flag: &str, value: &str) -> String {
    let value = plain(flag, value);
    let policy = || value.parse::<Checkpoint>().ok().map(|policy| policy.canonical().to_string());
    if flag == "checkpoint" { policy().unwrap_or(value) } else { value }
}

fn example(flag: &str) -> &'static str {
    match flag {
        "checkpoint" => "none,full,every:2",
        "dtype" => "f32,amp-bf16",
        "attention" => "sdpa,math",
        "adamw" => "fused,foreach",
        _ => "4,8,16",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(axes: &[(&str, &str)]) -> Result<Grid, GridError> {
        let axes = axes.iter().map(|(flag, given)| Axis::parse(flag, given)).collect::<Result<_, _>>()?;
        Grid::new(axes)
    }

    #[test]
    fn cells_are_all_combinations() {
        let cells = grid(&[("batch", "4,8"), ("checkpoint", "none,full,every:2")]).unwrap().cells();
        let shown: Vec<String> = cells.iter().map(Cell::to_string).collect();
        assert_eq!(shown.len(), 6);
        assert_eq!(
            (shown[0].as_str(), shown[5].as_str()),
            ("batch 4, checkpoint none", "batch 8, checkpoint every:2")
        );
        assert_eq!(cells[5].args(), ["--batch", "8", "--checkpoint", "every:2"]);
        assert_eq!(grid(&[]).unwrap().cells().len(), 1);
    }

    #[test]
    fn an_axis_by_hand_is_held_to_the_same() {
        let axis = |flag: &str, values: &[&str]| Axis {
            flag: flag.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let refused = |axes: Vec<Axis>| Grid::new(axes).unwrap_err().to_string();
        assert!(
            refused(vec![axis("batch", &["4"]), axis("batch", &["8"])]).starts_with("--batch is there twice")
        );
        assert!(refused(vec![axis("batch", &["4", "8", "04"])]).contains("as elements 1 and 3"));
        assert!(refused(vec![axis("batch", &[])]).contains("--batch has no value"));
        let unknown = refused(vec![axis("width", &["4", "8"])]);
        assert!(unknown.starts_with("--width takes one value") && unknown.contains("--batch, "), "{unknown}");
        // As it is kept, too.
        let kept = serde_json::to_string(&grid(&[("batch", "4,8")]).unwrap()).unwrap();
        assert_eq!(kept, r#"[{"flag":"batch","values":["4","8"]}]"#);
        assert!(
            serde_json::from_str::<Grid>(&kept.replace('8', "4")).unwrap_err().to_string().contains("twice")
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let told = |flag: &str, given: &str| Axis::parse(flag, given).unwrap_err().to_string();
        assert!(told("batch", " ").contains("--batch has no value"));
        assert!(told("batch", "4,,8").contains("element 2 of \"4,,8\" is empty"));
        assert!(told("batch", "4,8,04").contains("\"4\" is there twice, as elements 1 and 3"));
        assert!(told("checkpoint", "full,none,full").contains("\"full\" is there twice"));
        let same = told("checkpoint", "none,full,every:1");
        assert!(same.contains("\"full\" and \"every:1\" are the same, as elements 2 and 3"), "{same}");
        let many: Vec<String> = (1..=200).map(|number| number.to_string()).collect();
        let error = grid(&[("batch", &many.join(",")), ("seq", &many.join(","))]).unwrap_err();
        assert_eq!(error, GridError::TooLarge { cells: 40_000 });
    }
}
