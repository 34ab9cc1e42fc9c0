//! What is told beside the results.

use std::fmt::Display;
use std::io::Write;

/// Writes a line to stderr, and goes on where nobody reads it (`2>&1 | head`, a terminal that was closed): a run in
/// progress is worth more than its messages. `eprintln!` would panic there.
pub fn note(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
