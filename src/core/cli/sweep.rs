//! `stepledger sweep`: which setting is fastest in the memory there is?

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use clap::{Args, value_parser};

use super::exit::{DONE, Exit, FAILED, INTERRUPTED, Outcome};
use super::given::Given;
use super::grid_args::GridArgs;
use super::interrupt::stop_flag;
use super::note::note;
use super::show::write_json;
use super::sweep_folder::{begin, resume, told};
use super::sweep_progress::Teller;
use super::terminal;
use crate::record::shell_word;
use crate::report::{ChartError, render_sweep, sweep_chart};
use crate::sweep::{MOST_REPEATS, Program, Sweep, sweep};

/// Of the table where there is no terminal: a line a cell is found by `grep`.
const USUAL_WIDTH: usize = 200;

/// Given where the command is named: the flags of `run` among its own bring a text for this place with them.
pub const AFTER_HELP: &str = "\
The flags that show <A,B,...> take several values, with commas between them or each with the flag again. Each cell of the \
grid is run in a process of its own, --repeats times; the cells take turns, in an order that turns around each time, so \
that a machine that drifts does so for all alike. A run that fails or is out of memory is a result, and the others go on. \
Everything is kept in <OUT>/sweep-<time>/: the runs, and sweep-0001.parquet with a row a cell. \
Ctrl-C ends the run in progress; --resume goes on and repeats nothing that is complete.

Exit codes: 0 there is an answer, 1 no cell was measured or none fits, 2 the flags were wrong, 130 interrupted.

Examples:
  stepledger sweep --batch 4,8,16,32 --checkpoint none,full,every:2
  stepledger sweep --batch 8,16 --dtype f32,amp-bf16 --steps 60 --repeats 3
  stepledger sweep --batch 16,32,64 --checkpoint none,full --capacity-mb 64 --enforce --svg sweep.svg
  stepledger sweep --resume runs/sweep-20260131-120000";

#[derive(Debug, Args)]
pub struct SweepArgs {
    /// How often each cell is run; it takes 5 for an answer that is more than a smoke test. Beside --resume: so many in
    /// all
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u32).range(1..=i64::from(MOST_REPEATS)), help_heading = "Sweep")]
    pub repeats: u32,
    /// Of the order in which the cells take turns
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Sweep")]
    pub order_seed: u64,
    /// Go on with the sweep in this folder, with the flags it was begun with
    #[arg(long, value_name = "DIR", help_heading = "Sweep")]
    resume: Option<PathBuf>,
    /// Draw peak memory against tokens/s into this SVG file: a line through the batches of each of the other settings
    #[arg(long, value_name = "FILE", help_heading = "Sweep")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    pub grid: GridArgs,
}

pub fn run(args: &Given<SweepArgs>) -> Outcome {
    let program = Program::this().map_err(told)?;
    let picture = args.args.svg.as_deref();
    picture.map_or(Ok(()), check_picture)?;
    let folder = match &args.args.resume {
        Some(dir) => resume(args, dir, picture)?,
        None => begin(&args.args, picture)?,
    };
    let stop = stop_flag()?;
    let mut teller = Teller::new(args.args.grid.quiet);
    let made =
        sweep(&folder, &program, &mut |progress| teller.tell(&progress), &|| stop.load(Ordering::Relaxed));
    teller.finish();
    let made = made.map_err(told)?;
    print(&args.args.grid, &made)?;
    if !made.complete {
        let dir = shell_word(&folder.dir().to_string_lossy());
        note(format_args!("go on with: stepledger sweep --resume {dir}"));
    }
    picture.map_or(Ok(()), |path| draw(&made, path))?;
    Ok(match made.answer.best {
        _ if !made.complete => INTERRUPTED,
        Some(_) => DONE,
        None => FAILED,
    })
}

fn print(args: &GridArgs, made: &Sweep) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    if args.json {
        write_json(&mut stdout, made)?;
    } else {
        stdout.write_all(render_sweep(made, terminal::width(USUAL_WIDTH)).as_bytes())?;
    }
    stdout.flush()?;
    if !args.quiet {
        note(format_args!("kept in {}", made.dir.display()));
    }
    Ok(())
}

/// Refuses a file that could not be written when the runs are through; leaves nothing behind.
fn check_picture(path: &Path) -> anyhow::Result<()> {
    let is_new = !path.exists();
    let open = File::options().append(true).create(true).open(path);
    // Of a link that leads nowhere what was made is the file that it leads to.
    let made = open.and_then(|_| fs::canonicalize(path));
    let checked = made.and_then(|made| if is_new { fs::remove_file(made) } else { Ok(()) });
    checked.map_err(|error| not_drawn(path, &error))
}

/// Draws what there is to draw. That there is nothing is no fault of the sweep's.
fn draw(made: &Sweep, path: &Path) -> anyhow::Result<()> {
    match sweep_chart(made) {
        Ok(chart) => fs::write(path, chart).map_err(|error| not_drawn(path, &error)),
        Err(empty @ (ChartError::Empty | ChartError::OutOfMemory)) => {
            note(format_args!("--svg {}: {empty}", path.display()));
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

fn not_drawn(path: &Path, error: &std::io::Error) -> anyhow::Error {
    Exit::input(format!("--svg {}: {error}; name another file", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_look_at_a_picture_leaves_nothing_and_takes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name);
        check_picture(&file("new.svg")).unwrap();
        assert!(!file("new.svg").exists());
        fs::write(file("old.svg"), "a picture").unwrap();
        symlink(file("old.svg"), file("to-old.svg")).unwrap();
        symlink(file("target.svg"), file("to-nowhere.svg")).unwrap();
        for name in ["old.svg", "to-old.svg", "to-nowhere.svg"] {
            check_picture(&file(name)).unwrap();
        }
        assert_eq!(fs::read_to_string(file("to-old.svg")).unwrap(), "a picture");
        assert!(fs::symlink_metadata(file("to-nowhere.svg")).unwrap().is_symlink());
        assert!(!file("target.svg").exists());
        assert!(check_picture(&file("nowhere/s.svg")).unwrap_err().to_string().contains("name another file"));
    }
}
