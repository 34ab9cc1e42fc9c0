//! A process of ours ends with the one that started it, however that ends: nobody waits for it any more, and whoever goes
//! on with a sweep would measure beside a run that goes on, and one that looks at a broken driver may hang for ever.

use std::env;
use std::process::{self, Command};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// Set for it by the process that waits for it, to that process's id.
const PARENT: &str = "STEPLEDGER_PARENT";

/// Asks the process to be started, which is this program again, to [`follow`] the thread that starts it.
pub fn lead(command: &mut Command) {
    command.env(PARENT, process::id().to_string());
}

/// In a process that was started so: from now on it is killed when its parent ends, which
/// cannot be caught and so needs no moment at which the process listens. False where the parent has ended already.
pub fn follow() -> bool {
    let Some(parent) = env::var(PARENT).ok().and_then(|id| id.parse::<i32>().ok()) else { return true };
    // Where the system cannot do it the process goes on to its end by itself; a sweep's folder stays locked that long.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // Asked after the signal is set, so that no end of the parent falls in between.
    getppid().is_some_and(|id| id.as_raw_nonzero().get() == parent)
}
