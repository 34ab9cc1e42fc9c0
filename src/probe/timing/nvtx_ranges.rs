//! NVTX ranges in a domain of our own, so that Nsight shows phases and scopes under the names we give
//! them. Without a tool attached each call is a jump through a null pointer.

use std::sync::LazyLock;

use nvtx::domain::{LocalRange, RegisteredString};
use nvtx::{Domain, Str};

static DOMAIN: LazyLock<Domain> = LazyLock::new(|| Domain::new(c"stepledger"));

/// A range's name, made known to the tool once.
pub type Name = RegisteredString<'static>;

/// An open range of this thread; dropping it closes it.
pub type Range = LocalRange<'static>;

/// Makes a name known.
pub fn register(name: &str) -> Name {
    DOMAIN.register_string(Str::from_str_lossy(name))
}

/// Opens a range on this thread.
pub fn open(name: Name) -> Range {
    DOMAIN.local_range(name)
}
