//! Flags with the knowledge of which of them were given.

use std::collections::BTreeSet;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// Arguments, and the names of those that were given rather than left to their defaults.
#[derive(Debug)]
pub struct Given<T> {
    pub args: T,
    pub named: BTreeSet<String>,
}

impl<T: FromArgMatches> FromArgMatches for Given<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Given { args: T::from_arg_matches(matches)?, named: named(matches) })
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        let named = named(matches);
        Ok(Given { args: T::from_arg_matches_mut(matches)?, named })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.named.extend(named(matches));
        self.args.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for Given<T> {
    fn augment_args(command: Command) -> Command {
        T::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

/// The names of the arguments that were given rather than left to their defaults.
pub fn named(matches: &ArgMatches) -> BTreeSet<String> {
    let ids = matches.ids().map(|id| id.as_str());
    let given = ids.filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine));
    given.map(str::to_owned).collect()
}
