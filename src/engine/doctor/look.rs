//! One thing to look at, in such a way that a panic is found of it and of nothing else.

use std::any::Any;
use std::panic::catch_unwind;

use stepledger_core::cli::Looking;

use crate::report::Check;

pub struct Look {
    pub name: &'static str,
    /// Whether `run` cannot do without it.
    pub needed: bool,
    /// What else must neither have ended a process nor fail.
    pub rests_on: &'static [&'static str],
    at: fn() -> Vec<Check>,
    way_out: &'static str,
}

impl Look {
    pub const fn new(name: &'static str, at: fn() -> Vec<Check>, way_out: &'static str) -> Look {
        Look { name, needed: false, rests_on: &[], at, way_out }
    }

    pub const fn needed(name: &'static str, at: fn() -> Vec<Check>, way_out: &'static str) -> Look {
        Look { needed: true, ..Look::new(name, at, way_out) }
    }

    pub const fn on(self, rests_on: &'static [&'static str]) -> Look {
        Look { rests_on, ..self }
    }

    /// What is told before it is looked at.
    pub fn announced(&self) -> Looking {
        Looking { name: self.name.to_owned(), needed: self.needed, way_out: self.way_out.to_owned() }
    }

    /// Looks at it, unless it rests on something that has ended a process before, or fails.
    pub fn found(&self, broken: &[String]) -> Vec<Check> {
        if let Some(name) = self.rests_on.iter().find(|name| broken.iter().any(|broken| broken == *name)) {
            return vec![Check::not_run(self.name, format!("{name} does not work"))];
        }
        catch_unwind(self.at).unwrap_or_else(|panic| {
            let found = format!("a bug in stepledger, please report it: {}", told(&*panic));
            vec![Check { needed: self.needed, ..Check::fails(self.name, found, self.way_out) }]
        })
    }
}

/// A panic's message.
fn told(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Standing;

    #[test]
    fn a_panic_is_found_of_what_was_looked_at() {
        let look = Look::new("CUPTI", || panic!("no {}", "version"), "do without");
        let found = look.found(&[]);
        assert_eq!((found.len(), found[0].standing, found[0].needed), (1, Standing::Fails, false));
        assert!(found[0].found.contains("no version") && found[0].way_out.is_some(), "{found:?}");
        let needed = Look::needed("libtorch", || panic!("no version"), "report it").found(&[]);
        assert!(needed[0].needed && needed[0].found.contains("no version"), "{needed:?}");
    }

    #[test]
    fn what_rests_on_a_broken_thing_is_not_looked_at() {
        let look = Look::new("GPU", || panic!("looked at"), "do without").on(&["CUDA driver"]);
        let found = look.found(&["CUDA driver".to_owned()]);
        assert_eq!(found, [Check::not_run("GPU", "CUDA driver does not work")]);
    }
}
