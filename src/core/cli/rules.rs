//! `stepledger rules`: the seven rules over JSON, one object at a time or a stream of them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;

use super::exit::{DONE, Exit, Outcome};
use super::rules_reference::{ReferenceArgs, references};
use super::show::write_json;
use super::words::one_of;
use crate::rules::{Answer, Field, Kind, Lang, Rule, RuleError, Spec, Thresholds};

/// No line of `--jsonl` needs to be longer; one that is becomes an error object, not memory.
const LONGEST_LINE: u64 = 16 << 20;

/// Large enough that reading and writing cost little beside the rules.
const BUFFER: usize = 1 << 16;

const AFTER_HELP: &str = "\
A file for --thresholds is TOML with any of these keys, here with the values that go without saying:

  cpu_wait_ms = 40.0          # longer waits for data count, where
  waiting_busy_pct = 60.0     # the device is less busy than this
  low_busy_pct = 50.0         # a device less busy than this is idle
  slow_step_ms = 200.0        # longer steps are slow
  efficiency_screen = 0.7     # from this share of the roofline on

Examples:
  stepledger rules --list
  stepledger rules --list --json | jq '.rules[].rule'
  stepledger rules summarize-step-metrics --input step.json
  stepledger rules summarize-step-metrics --thresholds mine.toml < step.json
  stepledger rules top-hotspots --jsonl < events.jsonl > answers.jsonl
  stepledger rules attribute-bottleneck --calibrated cuda --input step.json";

/// Apply a rule to numbers of your own
///
/// Reads one JSON object, writes the rule's answer as JSON. `--list` describes every rule. Exit code 2 means
/// that the input or the flags were wrong.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER_HELP)]
pub struct RulesArgs {
    /// The rule to apply
    #[arg(required_unless_present = "list", value_parser = one_of::<Rule>(Rule::WORDS))]
    rule: Option<Rule>,

    /// Read from this file instead of standard input
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,

    /// One input a line, one output a line: {"ok": …} or {"error": {"field", "message"}}; exit code 0
    #[arg(long)]
    jsonl: bool,

    /// The language of the sentences of choose-next-validation
    #[arg(long, default_value = "en", value_parser = one_of::<Lang>(Lang::WORDS))]
    lang: Lang,

    /// Override thresholds of summarize-step-metrics and the efficiency screen of attribute-bottleneck; --help has the
    /// keys
    #[arg(long, value_name = "FILE.toml")]
    thresholds: Option<PathBuf>,

    #[command(flatten)]
    reference: ReferenceArgs,

    /// Print every rule with its inputs, units, thresholds and source
    #[arg(long, conflicts_with_all = ["rule", "input", "jsonl", "thresholds", "calibrated"])]
    list: bool,

    /// With --list: print JSON (the answers of rules always are)
    #[arg(long)]
    json: bool,
}

/// Why the command stopped before its end.
enum Stop {
    /// The input or the flags were wrong.
    Input(anyhow::Error),
    /// The work failed.
    Work(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Work(error)
    }
}

/// Runs the command.
pub fn rules(args: &RulesArgs) -> Outcome {
    let mut out = BufWriter::with_capacity(BUFFER, io::stdout().lock());
    match execute(args, &mut out).and_then(|()| Ok(out.flush()?)) {
        Ok(()) => Ok(DONE),
        Err(Stop::Input(error)) => Err(Exit::input(format!("{error:#}"))),
        Err(Stop::Work(error)) => Err(error).context("reading or writing"),
    }
}

fn execute(args: &RulesArgs, out: &mut impl Write) -> Result<(), Stop> {
    let Some(rule) = args.rule else {
        return Ok(if args.json { list_json(out) } else { list(out) }?);
    };
    let thresholds = thresholds(args.thresholds.as_deref()).map_err(Stop::Input)?;
    let references = references(&args.reference, rule).map_err(Stop::Input)?;
    let input = input(args.input.as_deref()).map_err(Stop::Input)?;
    let apply = |text: &str| rule.apply_json_on(text, &thresholds, args.lang, references);
    if args.jsonl { Ok(stream(input, out, apply)?) } else { single(input, out, apply) }
}

fn thresholds(path: Option<&Path>) -> anyhow::Result<Thresholds> {
    let Some(path) = path else { return Ok(Thresholds::default()) };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let thresholds: Thresholds = toml::from_str(&text).with_context(|| format!("in {}", path.display()))?;
    thresholds.checked().with_context(|| format!("in {}", path.display()))
}

fn input(path: Option<&Path>) -> anyhow::Result<Box<dyn Read>> {
    let Some(path) = path else { return Ok(Box::new(io::stdin().lock())) };
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Box::new(file))
}

/// One object in, one answer out.
fn single(
    mut input: impl Read,
    out: &mut impl Write,
    apply: impl Fn(&str) -> Result<Answer, RuleError>,
) -> Result<(), Stop> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let answer = text(&bytes).and_then(apply).map_err(|error| Stop::Input(error.into()))?;
    write_json(out, &answer)?;
    Ok(())
}

/// One line in, one line out, in order, in constant memory.
fn stream(
    input: impl Read,
    out: &mut impl Write,
    apply: impl Fn(&str) -> Result<Answer, RuleError>,
) -> io::Result<()> {
    let mut input = BufReader::with_capacity(BUFFER, input);
    let mut line = Vec::new();
    loop {
        // Nothing left to read at once: hand over what there is, in case the other side waits for it.
        if input.buffer().is_empty() {
            out.flush()?;
        }
        let Some(read) = next_line(&mut input, &mut line)? else { return Ok(()) };
        let reply = match read.and_then(text).and_then(&apply) {
            Ok(answer) => Reply::Ok(answer),
            Err(error) => Reply::Error(error),
        };
        serde_json::to_writer(&mut *out, &reply)?;
        out.write_all(b"\n")?;
    }
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Reply {
    Ok(Answer),
    Error(RuleError),
}

/// The next line without its end, `None` after the last. `line` is only there to be used again.
fn next_line<'l>(
    input: &mut impl BufRead,
    line: &'l mut Vec<u8>,
) -> io::Result<Option<Result<&'l [u8], RuleError>>> {
    line.clear();
    if input.take(LONGEST_LINE).read_until(b'\n', line)? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() as u64 == LONGEST_LINE {
        input.skip_until(b'\n')?;
        let problem = format!("is a line longer than the {LONGEST_LINE} bytes allowed");
        return Ok(Some(Err(RuleError { field: "input".to_owned(), problem })));
    }
    Ok(Some(Ok(line)))
}

fn text(bytes: &[u8]) -> Result<&str, RuleError> {
    std::str::from_utf8(bytes).map_err(|error| RuleError {
        field: "input".to_owned(),
        problem: format!("is not UTF-8 from byte {} on", error.valid_up_to()),
    })
}

#[derive(Serialize)]
struct Listed {
    rule: Rule,
    #[serde(flatten)]
    spec: &'static Spec,
}

fn list_json(out: &mut impl Write) -> io::Result<()> {
    let rules: Vec<Listed> = Rule::ALL.iter().map(|&rule| Listed { rule, spec: rule.spec() }).collect();
    write_json(out, &serde_json::json!({ "rules": rules }))
}

fn list(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "Thresholds are teaching heuristics; those marked * can be set in a --thresholds file.")?;
    for &rule in Rule::ALL {
        let spec = rule.spec();
        writeln!(out, "\n{rule}\n  {}\n  inputs", spec.summary)?;
        list_fields(out, spec.inputs, 4)?;
        for threshold in spec.thresholds {
            let mark = if threshold.adjustable { "*" } else { "" };
            let unit = unit(threshold.unit);
            writeln!(out, "  threshold {}{mark}{unit} = {}", threshold.name, threshold.value)?;
        }
        writeln!(out, "  source: {}", spec.source)?;
    }
    Ok(())
}

fn list_fields(out: &mut impl Write, fields: &[Field], indent: usize) -> io::Result<()> {
    for field in fields {
        let unit = unit(field.unit);
        let default = field.default.map_or_else(String::new, |value| format!(" (default {value})"));
        writeln!(out, "{:indent$}{}{unit}: {}{default}", "", field.name, field.kind)?;
        if let Kind::Object(inner) | Kind::Open(inner) | Kind::List(inner) = field.kind {
            list_fields(out, inner, indent + 2)?;
        }
    }
    Ok(())
}

fn unit(unit: &str) -> String {
    if unit.is_empty() { String::new() } else { format!(" [{unit}]") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thresholds_that_help_shows_are_a_file_of_the_defaults() {
        let shown = AFTER_HELP.split("\n\n").nth(1).unwrap();
        let thresholds: Thresholds = toml::from_str(shown).unwrap();
        assert_eq!((shown.lines().count(), thresholds), (5, Thresholds::default()));
    }
}
