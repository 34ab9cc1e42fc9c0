//! The terminal that is printed to.

use std::env;

/// What text is as wide as where nothing else is known.
pub const USUAL: usize = 80;

/// Its width in columns: what `COLUMNS` says, or the terminal's own, or `usual` where neither is known.
pub fn width(usual: usize) -> usize {
    let columns = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal =
        || terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
    columns.or_else(terminal).unwrap_or(usual)
}
