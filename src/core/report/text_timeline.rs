//! A step's memory as a picture in text: time to the right, bytes upwards, a letter for each category.

use super::phase_spans::PhaseSpan;
use super::text_peak::reconciliation;
use super::timeline::{Change, Timeline};
use super::units::{bytes, ms};
use super::wrap::wrap_at;
use crate::record::{ByCategory, Category};

/// From the bottom up, what lives longest first, each with its letter.
const STACK: [(Category, char); Category::ALL.len()] = [
    (Category::Parameter, 'P'),
    (Category::AdamState, 'A'),
    (Category::Gradient, 'G'),
    (Category::Buffer, 'b'),
    (Category::Input, 'i'),
    (Category::Activation, 'a'),
    (Category::Workspace, 'w'),
    (Category::Unattributed, '?'),
];

/// The room for the sizes to the left of the picture: `1023 MiB │`.
const LABELS: usize = 10;

/// The picture, as wide as `width` columns.
pub fn render_timeline(timeline: &Timeline, width: usize) -> String {
    let plot = Plot::new(timeline, width);
    let mut lines = vec![wrap_at(&heading(timeline), 2, width), String::new()];
    lines.extend(plot.peak_lines(width));
    lines.extend((0..plot.rows).rev().map(|row| plot.line(row)));
    lines.push(format!("{}└{}", " ".repeat(LABELS), "─".repeat(plot.columns.len())));
    lines.push(format!("{} {}", " ".repeat(LABELS), plot.phases(&timeline.phases)));
    lines.push(format!("{} {}", " ".repeat(LABELS), plot.times()));
    lines.push(String::new());
    lines.extend(legend(timeline, width));
    lines.extend(durations(&timeline.phases, width));
    lines.push(wrap_at(&plot.scale(), 2, width));
    lines.push(String::new());
    let proof = reconciliation("highest total of the picture", &timeline.reconciliation);
    lines.push(wrap_at(&proof, 2, width));
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n") + "\n"
}

fn heading(timeline: &Timeline) -> String {
    let Timeline { run_id, step, wall_ms, .. } = timeline;
    format!("Memory in step {step} of run {run_id}, {}", ms(*wall_ms))
}

/// The phases again, as the axis has no room for the short ones.
fn durations(spans: &[PhaseSpan], width: usize) -> Vec<String> {
    let duration = |span: &PhaseSpan| ms((span.end_ns - span.begin_ns) as f64 / 1e6);
    let about = |span: &PhaseSpan| if span.exact { "" } else { "about " };
    let entries = spans.iter().map(|span| format!("{} {}{}", span.phase, about(span), duration(span)));
    wrap("phases:", entries, width)
}

/// What each cell of the picture shows.
struct Plot {
    rows: usize,
    /// The highest state in each column's time, so that no peak falls between two columns.
    columns: Vec<ByCategory>,
    peak: Change,
    wall_ms: f64,
}

impl Plot {
    fn new(timeline: &Timeline, width: usize) -> Self {
        let columns = width.saturating_sub(LABELS + 1).max(1);
        Plot {
            rows: (width / 6).clamp(10, 24),
            columns: columns_of(&timeline.changes, timeline.wall_ms, columns),
            peak: timeline.peak,
            wall_ms: timeline.wall_ms,
        }
    }

    fn highest(&self) -> i64 {
        self.peak.bytes.total().max(1)
    }

    fn line(&self, row: usize) -> String {
        // A cell shows what is in its middle.
        let height = |row: f64| (row / self.rows as f64 * self.highest() as f64) as i64;
        let cells: String =
            self.columns.iter().map(|state| letter(state, height(row as f64 + 0.5))).collect();
        let label = match row + 1 == self.rows || (row + 1).is_multiple_of(4) && row + 3 < self.rows {
            true => bytes(height(row as f64 + 1.0)),
            false => String::new(),
        };
        format!("{label:>0$} │{cells}", LABELS - 1)
    }

    /// A mark over the peak's column, with its size on the side that has room, or else above it.
    fn peak_lines(&self, width: usize) -> Vec<String> {
        let place = place(self.peak.at_ns, self.wall_ms, self.columns.len());
        let text = format!(
            "peak {} at {}, in {}",
            bytes(self.peak.bytes.total()),
            ms(self.peak.at_ns as f64 / 1e6),
            self.peak.phase
        );
        let indent = LABELS + 1 + place;
        let room = text.chars().count() + 1;
        if indent + 1 + room <= LABELS + 1 + self.columns.len() {
            vec![format!("{}▼ {text}", " ".repeat(indent))]
        } else if room <= indent {
            vec![format!("{text:>0$} ▼", indent - 1)]
        } else {
            vec![wrap_at(&text, 2, width), format!("{}▼", " ".repeat(indent))]
        }
    }

    /// The phases under the columns whose middle they run in: `|forward   |backward`.
    fn phases(&self, spans: &[PhaseSpan]) -> String {
        let column_ns = self.wall_ms * 1e6 / self.columns.len() as f64;
        let at = |column: usize| {
            let middle = ((column as f64 + 0.5) * column_ns) as i64;
            spans.iter().position(|span| span.begin_ns <= middle && middle < span.end_ns)
        };
        let places: Vec<_> = (0..self.columns.len()).map(at).collect();
        let segment = |segment: &[Option<usize>]| {
            let name = segment[0].map_or("other", |span| spans[span].phase.as_str());
            let room = segment.len() - 1;
            format!("|{:<room$}", name.chars().take(room).collect::<String>())
        };
        places.chunk_by(|a, b| a == b).map(segment).collect()
    }

    /// Times under the columns they belong to.
    fn times(&self) -> String {
        const ROOM: usize = 18;
        let mut line = String::from("0");
        let ticks = (self.columns.len() / ROOM).max(1);
        for tick in 1..=ticks {
            let column = self.columns.len() * tick / ticks;
            let text = ms(self.wall_ms * tick as f64 / ticks as f64);
            let begin = if tick == ticks { column - text.chars().count().min(column) } else { column };
            let blank = begin.saturating_sub(line.chars().count());
            line += &format!("{}{text}", " ".repeat(blank));
        }
        line
    }

    fn scale(&self) -> String {
        let (wide, high) = (self.wall_ms / self.columns.len() as f64, self.highest() / self.rows as i64);
        format!("one cell: {} by {}, at its highest instant", ms(wide), bytes(high))
    }
}

/// The highest state in the time of each of `n` columns.
fn columns_of(changes: &[Change], wall_ms: f64, n: usize) -> Vec<ByCategory> {
    let mut columns: Vec<Option<ByCategory>> = vec![None; n];
    let mut last = changes[0].bytes;
    let mut reached = 0;
    for change in changes {
        let column = place(change.at_ns, wall_ms, n);
        // What was alive goes on until the change, into the column of the change too.
        columns[reached..=column].iter_mut().for_each(|highest| raise(highest, last));
        (reached, last) = (column, change.bytes);
        raise(&mut columns[column], last);
    }
    columns[reached..].iter_mut().for_each(|highest| raise(highest, last));
    columns.into_iter().map(|highest| highest.unwrap_or(last)).collect()
}

fn raise(highest: &mut Option<ByCategory>, state: ByCategory) {
    if highest.is_none_or(|highest| state.total() > highest.total()) {
        *highest = Some(state);
    }
}

/// The column that an instant falls into.
fn place(at_ns: i64, wall_ms: f64, columns: usize) -> usize {
    let share = at_ns as f64 / (wall_ms * 1e6).max(1.0);
    ((share * columns as f64) as usize).min(columns - 1)
}

/// The letter of the category that the stack has at this height; blank above it.
fn letter(state: &ByCategory, height: i64) -> char {
    let mut top = 0;
    for (category, letter) in STACK {
        top += state[category];
        if height < top {
            return letter;
        }
    }
    ' '
}

/// The letters in use, with what each category has at the peak.
fn legend(timeline: &Timeline, width: usize) -> Vec<String> {
    let used = |category: Category| timeline.changes.iter().any(|change| change.bytes[category] != 0);
    let at_peak = &timeline.peak.bytes;
    let entries = STACK.iter().filter(|(category, _)| used(*category));
    let entries =
        entries.map(|(category, letter)| format!("{letter} {category} {}", bytes(at_peak[*category])));
    wrap("at the peak:", entries, width)
}

/// The entries after each other, in as many lines as it takes.
fn wrap(begin: &str, entries: impl Iterator<Item = String>, width: usize) -> Vec<String> {
    let mut lines = vec![begin.to_owned()];
    for entry in entries {
        let last = lines.len() - 1;
        match lines[last].chars().count() + 3 + entry.chars().count() <= width {
            true => lines[last] += &format!("   {entry}"),
            false => lines.push(format!("  {entry}")),
        }
    }
    lines
}
