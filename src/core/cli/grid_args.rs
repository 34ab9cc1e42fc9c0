//! The flags of `stepledger run` as those of a sweep: some of them take several values, the rest are its base.

use std::ffi::OsStr;
use std::path::{self, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, value_parser};

use super::given::named;
use super::run_args::RunArgs;
use crate::record::Trace;
use crate::sweep::AXES;
use crate::theory::Setup;

/// Files that runs read: wherever a sweep is gone on with, they are the ones that were meant when it was begun.
const FILES: [&str; 2] = ["data", "init"];
/// What a sweep gives its runs by itself, or keeps for its own use.
const OWN: [&str; 3] = ["out", "json", "quiet"];
/// The name of one run, and files that several would write over each other.
const ONE_RUN_ONLY: [&str; 4] = ["save_init", "save", "save_batches", "run_id"];

/// A grid, as it was given, and the flags beside it.
#[derive(Debug)]
pub struct GridArgs {
    /// Flag and values, in the order of [`AXES`].
    pub axes: Vec<(String, String)>,
    /// Flags of `stepledger run`, as they were given.
    pub base: Vec<String>,
    pub out: PathBuf,
    pub json: bool,
    pub quiet: bool,
    pub capacity_mb: Option<f64>,
    pub trace: Option<Trace>,
    /// A flag that no sweep can have.
    pub refused: Option<String>,
}

/// The run that these flags of `stepledger run` make, or why they make none. Whether it fits the machine is left to the
/// run itself, for which that is a result.
pub fn setup(args: &[String]) -> Result<Setup, String> {
    let command = RunArgs::augment_args(Command::new("stepledger run").no_binary_name(true));
    let matches = command.try_get_matches_from(args);
    let run =
        matches.and_then(|matches| RunArgs::from_arg_matches(&matches)).map_err(|error| in_short(&error))?;
    run.check(None).map_err(|error| error.to_string())?;
    for (flag, file) in [("--data", &run.training.data), ("--init", &run.files.init)] {
        if let Some(file) = file.as_ref().filter(|file| !file.is_file()) {
            return Err(format!("{flag} {}: there is no such file", file.display()));
        }
    }
    run.setup().map_err(|error| error.to_string())
}

/// What clap has to say, without how to use it.
fn in_short(error: &Error) -> String {
    let text = error.to_string();
    let problem = text.split("\n\n").next().unwrap_or_default();
    problem.trim_start_matches("error: ").split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Args for GridArgs {
    fn augment_args(command: Command) -> Command {
        let mut command = RunArgs::augment_args(command);
        for axis in AXES {
            command = command.mut_arg(axis, several);
        }
        for flag in ONE_RUN_ONLY {
            command = command.mut_arg(flag, |arg| arg.hide(true));
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// A flag that takes values with commas between them. What each means is checked by `run`'s own parser.
fn several(arg: Arg) -> Arg {
    arg.value_parser(value_parser!(String)).value_name("A,B,...").default_value(None::<&str>)
}

impl FromArgMatches for GridArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let named = named(matches);
        let given = |id: &str| named.contains(id);
        let axis = |flag: &str| Some((flag.to_owned(), matches.get_one::<String>(flag)?.clone()));
        let all = RunArgs::augment_args(Command::new("run"));
        let flags = || all.get_arguments().filter(|arg| given(arg.get_id().as_str()));
        let is_base = |arg: &&Arg| {
            let id = arg.get_id().as_str();
            !AXES.contains(&id) && !OWN.contains(&id)
        };
        Ok(GridArgs {
            axes: AXES.iter().filter(|flag| given(flag)).filter_map(|flag| axis(flag)).collect(),
            base: flags().filter(is_base).flat_map(|arg| as_given(arg, matches)).collect(),
            out: matches.get_one::<PathBuf>("out").cloned().unwrap_or_default(),
            json: matches.get_flag("json"),
            quiet: matches.get_flag("quiet"),
            capacity_mb: matches.get_one::<f64>("capacity_mb").copied(),
            trace: matches.get_one::<Trace>("trace").copied(),
            refused: ONE_RUN_ONLY.into_iter().find(|id| given(id)).map(long),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn as_given(arg: &Arg, matches: &ArgMatches) -> Vec<String> {
    let id = arg.get_id().as_str();
    let flag = long(id);
    if matches!(arg.get_action(), ArgAction::SetTrue) {
        return vec![flag];
    }
    let values = matches.get_raw(id).into_iter().flatten();
    let whole = |value: &OsStr| if FILES.contains(&id) { path::absolute(value).ok() } else { None };
    let value = |value: &OsStr| whole(value).map_or_else(|| value.to_owned(), PathBuf::into_os_string);
    let values: Vec<String> = values.map(|given| value(given).to_string_lossy().into_owned()).collect();
    // In one word, so that no value is taken for a flag.
    vec![format!("{flag}={}", values.join(","))]
}

fn long(id: &str) -> String {
    format!("--{}", id.replace('_', "-"))
}
