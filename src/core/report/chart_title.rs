//! What a sweep's picture is of, above it.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::wrap::wrap_at;
use crate::sweep::Sweep;

/// Of the configuration what says most about a model's size and speed, in this order.
const TOLD: [&str; 11] = [
    "layers",
    "width",
    "heads",
    "seq",
    "batch",
    "accumulate",
    "checkpoint",
    "dtype",
    "attention",
    "adamw",
    "threads",
];

/// Pixels before, between and of the lines, and characters in one; the first is larger than those below it.
const LEFT: i32 = 88;
const TOP: i32 = 10;
const HEAD: Size = Size { font: 17, line: 22, chars: 115 };
const BODY: Size = Size { font: 13, line: 17, chars: 150 };

struct Size {
    font: i32,
    line: i32,
    chars: usize,
}

/// The text of a title, in lines.
pub struct Title {
    head: Vec<String>,
    body: Vec<String>,
}

impl Title {
    pub fn of(sweep: &Sweep) -> Self {
        let lines =
            |text: &str, size: &Size| wrap_at(text, 0, size.chars).lines().map(str::to_owned).collect();
        Title { head: lines(&head(sweep), &HEAD), body: lines(&body(sweep), &BODY) }
    }

    /// Pixels from the picture's top to what is below the title.
    pub fn height(&self) -> u32 {
        let lines = HEAD.line * self.head.len() as i32 + BODY.line * self.body.len() as i32;
        (2 * TOP + lines).unsigned_abs()
    }

    pub fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
    ) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
        let head = self.head.iter().map(|line| (line, HEAD, BLACK.mix(1.0)));
        let body = self.body.iter().map(|line| (line, BODY, BLACK.mix(0.7)));
        let mut y = TOP;
        for (line, size, colour) in head.chain(body) {
            let style = ("sans-serif", size.font).into_font().color(&colour);
            area.draw(&Text::new(line.clone(), (LEFT, y), style))?;
            y += size.line;
        }
        Ok(())
    }
}

fn head(sweep: &Sweep) -> String {
    let settings = match sweep.cells.len() {
        1 => "1 setting".to_owned(),
        cells => format!("{cells} settings"),
    };
    let unfinished = if sweep.complete { "" } else { ", not finished" };
    let what = format!("speed against memory of {settings}{unfinished}");
    match &sweep.workload {
        None => what,
        Some(workload) => {
            let name = workload.device_name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
            format!("{} on {}{name}: {what}", workload.program, workload.device)
        }
    }
}

fn body(sweep: &Sweep) -> String {
    let config = sweep.workload.as_ref().map(|workload| &workload.config);
    let told = TOLD.iter().filter_map(|name| Some((name, config?.get(*name)?)));
    let parts = told.map(|(name, value)| match value.as_str() {
        Some(word) => format!("{name} {word}"),
        None => format!("{name} {value}"),
    });
    parts.chain([sweep.sweep_id.clone()]).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::made_up::{cell, made_up};

    #[test]
    fn a_title_says_what_was_run_and_where() {
        let sweep = made_up(vec![cell(4, "none", 1.0, 1)], None);
        let title = Title::of(&sweep);
        assert_eq!(title.head, ["gpt on cpu (a cpu): speed against memory of 1 setting"]);
        assert_eq!(title.body, ["layers 4, width 128, sweep-made-up"]);
        let unknown = Title::of(&Sweep { workload: None, complete: false, ..sweep });
        assert_eq!(unknown.head, ["speed against memory of 1 setting, not finished"]);
        assert_eq!(unknown.body, ["sweep-made-up"]);
        assert_eq!(unknown.height(), (2 * TOP + HEAD.line + BODY.line).unsigned_abs());
    }
}
