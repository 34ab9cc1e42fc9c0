//! How a run stands now, which its row cannot say: a process that is killed does not write that it was.

use std::path::Path;

use crate::record::{RunRow, RunStatus};
use crate::store::is_being_written;

/// The row of the run in `dir` as it stands, seen from the machine called `host`: one that says it is running, and that
/// nobody writes, was interrupted.
pub fn as_it_stands(mut run: RunRow, dir: &Path, host: Option<&str>) -> RunRow {
    if run.status != RunStatus::Running {
        return run;
    }
    let reason = if !is_here(&run, host) {
        let host = run.machine.host.as_deref().unwrap_or("another machine");
        Some(format!("unless it was killed, which can be seen on {host} only"))
    } else if is_being_written(dir) {
        None
    } else {
        run.status = RunStatus::Interrupted;
        Some("its process ended without closing it".to_owned())
    };
    run.reason = run.reason.or(reason);
    run
}

/// Whether a run was made on this machine: of another one's processes nothing is known.
pub fn is_here(run: &RunRow, host: Option<&str>) -> bool {
    run.machine.host.is_none() || run.machine.host.as_deref() == host
}
