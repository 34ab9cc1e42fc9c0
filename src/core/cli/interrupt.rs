//! Ctrl-C, as a request to end well.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;

use super::exit::INTERRUPTED;

/// Becomes true at the first Ctrl-C (or SIGTERM); the second one ends the process at once.
pub fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // In this order: the first signal still finds the flag down.
        signal_hook::flag::register_conditional_shutdown(signal, i32::from(INTERRUPTED), stop.clone())
            .and_then(|_| signal_hook::flag::register(signal, stop.clone()))
            .context("Ctrl-C cannot be caught")?;
    }
    Ok(stop)
}
