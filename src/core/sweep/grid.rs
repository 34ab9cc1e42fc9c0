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
#[serde(transparent)]
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
        let mut values: Vec<String> = Vec::new();
        for (index, element) in given.split(',').enumerate() {
            let (flag, value, second) = (flag.to_owned(), plain(flag, element.trim()), index + 1);
            if value.is_empty() {
                return Err(GridError::EmptyElement { flag, place: second, given: given.to_owned() });
            }
            let same = |known: &String| effect(&flag, known) == effect(&flag, &value);
            if let Some(first) = values.iter().position(same) {
                let known = values.swap_remove(first);
                return Err(GridError::Duplicate { flag, known, value, first: first + 1, second });
            }
            values.push(value);
        }
        Ok(Axis { flag: flag.to_owned(), values })
    }
}

impl Grid {
    /// The grid of these axes; without any it has one cell.
    pub fn new(axes: Vec<Axis>) -> Result<Grid, GridError> {
        if let Some(axis) = axes.iter().find(|axis| axis.values.is_empty()) {
            return Err(GridError::NoValues { flag: axis.flag.clone() });
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

/// Two spellings of one value are one value.
fn plain(flag: &str, value: &str) -> String {
    let number = || value.parse::<i64>().ok().map(|number| number.to_string());
    let policy = || value.parse::<Checkpoint>().ok().map(|policy| policy.to_string());
    let same = if flag == "checkpoint" { policy() } else { number() };
    same.unwrap_or_else(|| value.to_owned())
}

/// Two values that make the same run have one.
fn effect(flag: &str, value: &str) -> String {
    let policy = || value.parse::<Checkpoint>().ok().map(|policy| policy.canonical().to_string());
    let same = if flag == "checkpoint" { policy() } else { None };
    same.unwrap_or_else(|| value.to_owned())
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
