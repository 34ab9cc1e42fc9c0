//! The flags of `stepledger run` as those of a sweep: some of them take several values, the rest are its base.

use std::ffi::{OsStr, OsString};
use std::path::{self, PathBuf};

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

use super::given::named;
use super::run_args::RunArgs;
use crate::record::{FILES, Trace};
use crate::sweep::AXES;
use crate::theory::Setup;

/// What a sweep gives its runs by itself, or keeps for its own use.
const OWN: [&str; 3] = ["out", "json", "quiet"];
/// The name of one run, and files that several would write over each other.
const ONE_RUN_ONLY: [&str; 4] = ["save_init", "save", "save_batches", "run_id"];

/// What flags of `run` mean to a sweep, where that is something else.
const MEANINGS: [(&str, &str); 5] = [
    (
        "checkpoint",
        "What backward computes again instead of keeping it: nothing (none), each block (full), groups of K blocks \
         (every:K), or attention's core alone (selective)",
    ),
    ("out", "The folder of runs; a sweep gets a folder of its own in it"),
    (
        "capacity_mb",
        "The memory that settings are to fit into, in MiB [default: none, so that all of them count]",
    ),
    ("enforce", "Make --capacity-mb real: an allocation beyond it fails, and its setting is out of memory"),
    ("json", "Print the sweep as one JSON object: its cells, and its answer"),
];

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
    let run = checked(args)?;
    for (flag, file) in [("--data", &run.training.data), ("--init", &run.files.init)] {
        if let Some(file) = file.as_ref().filter(|file| !file.is_file()) {
            return Err(format!("{flag} {}: there is no such file", file.display()));
        }
    }
    run.setup().map_err(|error| error.to_string())
}

/// These flags, read and checked as `stepledger run` does it, but for its files.
pub fn checked(args: &[String]) -> Result<RunArgs, String> {
    let command = RunArgs::augment_args(Command::new("stepledger run").no_binary_name(true));
    let matches = command.try_get_matches_from(args);
    let run =
        matches.and_then(|matches| RunArgs::from_arg_matches(&matches)).map_err(|error| in_short(&error))?;
    run.check(None).map_err(|error| error.to_string())?;
    Ok(run)
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
        for (flag, meaning) in MEANINGS {
            command = command.mut_arg(flag, |arg| arg.help(meaning));
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// A flag that takes values with commas between them, and may be given once for each of them too.
fn several(arg: Arg) -> Arg {
    let elements = Elements(arg.get_possible_values());
    arg.action(ArgAction::Append).value_parser(elements).value_name("A,B,...")
}

/// A command line with `--batch -1,2` as `--batch=-1,2`: such values are to be told by what is allowed, not taken for flags, as
/// a single number is; were everything with a hyphen a value, a flag in the place of one would be another's.
pub fn with_lists_below_zero(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let is_axis = |word: &OsString| {
        word.to_str().and_then(|word| word.strip_prefix("--")).is_some_and(|flag| AXES.contains(&flag))
    };
    let is_below_zero = |word: &OsString| matches!(word.as_encoded_bytes(), [b'-', b'0'..=b'9', ..]);
    words.fold(Vec::new(), |mut all: Vec<OsString>, word| {
        match all.last_mut().filter(|flag| is_axis(flag) && is_below_zero(&word)) {
            Some(flag) => {
                flag.push("=");
                flag.push(word);
            }
            None => all.push(word),
        }
        all
    })
}

/// Takes any text: what the values in it mean is checked by `run`'s own parser. Help lists what each can be.
#[derive(Clone)]
struct Elements(Vec<PossibleValue>);

impl TypedValueParser for Elements {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        (!self.0.is_empty()).then(|| Box::new(self.0.iter().cloned()) as _)
    }
}

fn all_of<'a>(given: impl Iterator<Item = &'a String>) -> String {
    given.map(String::as_str).collect::<Vec<_>>().join(",")
}

impl FromArgMatches for GridArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let named = named(matches);
        let given = |id: &str| named.contains(id);
        let axis = |flag: &str| Some((flag.to_owned(), all_of(matches.get_many::<String>(flag)?)));
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
    // Wherever a sweep is gone on with, they are the files that were meant when it was begun.
    let whole = |value: &OsStr| if FILES.contains(&id) { path::absolute(value).ok() } else { None };
    let value = |value: &OsStr| whole(value).map_or_else(|| value.to_owned(), PathBuf::into_os_string);
    let values: Vec<String> = values.map(|given| value(given).to_string_lossy().into_owned()).collect();
    // In one word, so that no value is taken for a flag.
    vec![format!("{flag}={}", values.join(","))]
}

fn long(id: &str) -> String {
    format!("--{}", id.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(flags: &str) -> GridArgs {
        let command = GridArgs::augment_args(Command::new("sweep").no_binary_name(true));
        GridArgs::from_arg_matches(&command.try_get_matches_from(flags.split_whitespace()).unwrap()).unwrap()
    }

    #[test]
    fn values_may_have_commas_between_them_or_a_flag_each() {
        let axis = |flag: &str, values: &str| (flag.to_owned(), values.to_owned());
        for flags in ["--batch 2,4,8", "--batch 2 --batch 4 --batch=8", "--batch 2,4 --batch 8"] {
            assert_eq!(given(flags).axes, [axis("batch", "2,4,8")], "{flags}");
        }
        // What a sweep can have one value of is the last, as for `run`; what is not given is no axis.
        let GridArgs { axes, base, .. } = given("--width 32 --width 64 --dtype bf16");
        assert_eq!((axes, base), (vec![axis("dtype", "bf16")], vec!["--width=64".to_owned()]));
    }

    #[test]
    fn what_is_below_zero_is_a_value_and_a_flag_is_none() {
        let matches = |flags: &str| {
            let command = GridArgs::augment_args(Command::new("sweep").no_binary_name(true));
            command.try_get_matches_from(with_lists_below_zero(flags.split_whitespace().map(OsString::from)))
        };
        for flags in ["--batch -1,2", "--batch=-1,2", "--batch -1 --batch 2"] {
            let axes = GridArgs::from_arg_matches(&matches(flags).unwrap()).unwrap().axes;
            assert_eq!(axes, [("batch".to_owned(), "-1,2".to_owned())], "{flags}");
        }
        for flags in ["--batch --steps 5", "--batch -h", "--batch"] {
            let error = matches(flags).unwrap_err().to_string();
            assert!(error.contains("a value is required for '--batch <A,B,...>'"), "{flags}: {error}");
        }
    }

    #[test]
    fn help_says_what_there_is_to_choose_from_and_what_a_sweep_does() {
        let help = GridArgs::augment_args(Command::new("sweep").term_width(200)).render_help().to_string();
        for part in [
            "--batch <A,B,...>",
            "groups of K blocks (every:K)",
            "[default: 8]",
            "[default: fused] [possible values: fused,",
            "Print the sweep as one JSON object",
        ] {
            assert!(help.contains(part), "{part}: {help}");
        }
        assert!(!help.contains("--run-id") && !help.contains("Print the account"), "{help}");
    }
}
