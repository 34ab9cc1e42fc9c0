//! `stepledger calibrate --noise`: how much runs of the same program differ.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process;

use chrono::Utc;

use super::calibrate::{CalibrateArgs, check_calibration_home, keep};
use super::exit::{DONE, Exit, Outcome};
use super::grid_args::setup;
use super::note::note;
use super::show::write_json;
use crate::compare::{CompareError, Repeat, noise, read_sides, read_tables, shows_noise, signed_pct};
use crate::record::{Machine, RunStatus, id_tail, id_time};
use crate::stats::{FEWEST_STEPS, SURE_STEPS};
use crate::store::{Calibrations, Dataset, Noise};
use crate::sweep::{Program, Ran, SweepError};
use crate::theory::Setup;

pub fn run(args: &CalibrateArgs) -> Outcome {
    refuse_few_steps(&args.flags).map_err(Exit::input)?;
    check_calibration_home()?;
    let program = Program::this()?;
    let now = Utc::now();
    let tail = id_tail(now, process::id());
    let folder = args.out.join(format!("noise-{}-{tail}", id_time(now)));
    let found = measure(args, &folder, |out, run_id| program.run(out, run_id, &args.flags))?;
    let told = tell(&found.noise, args.json);
    if let Some(doubt) = doubt(&found.noise) {
        note(doubt);
    }
    note(format_args!("the runs are in {}", folder.display()));
    keep(|known| found.keep_in(known))?;
    told?;
    Ok(DONE)
}

/// What the pairs differ by, and where they ran.
#[derive(Debug)]
struct Found {
    noise: Noise,
    machine: Machine,
    device: String,
}

impl Found {
    fn keep_in(self, known: &mut Calibrations) {
        known.of_mut(&self.machine).keep_noise(&self.device, self.noise);
    }
}

/// Makes the pairs with `make`, which is given a run's folder of runs and its id.
fn measure(
    args: &CalibrateArgs,
    folder: &Path,
    make: impl Fn(&Path, &str) -> Result<Ran, SweepError>,
) -> anyhow::Result<Found> {
    make_pairs(args.pairs, folder, make)?;
    let (first, second) = read_sides(folder, SIDES[0], SIDES[1])?;
    let noise = noise(&first, &second, &args.flags, Utc::now())?;
    Ok(Found { noise, machine: first.machine, device: first.device })
}

/// Refuses flags whose runs would be refused when all of them are made.
fn refuse_few_steps(flags: &[String]) -> Result<(), String> {
    let Setup { steps, sync_every, on_cpu, .. } = setup(flags)?;
    // A GPU's steps have a time only together, from one wait for it to the next.
    let cycle = if on_cpu { 1 } else { sync_every };
    let least = SURE_STEPS as i64 * cycle;
    if steps >= least {
        return Ok(());
    }
    let of_what = match cycle {
        1 => String::new(),
        cycle => format!(" cycles of {cycle} steps (--sync-every)"),
    };
    Err(format!(
        "--steps {steps} is too few: up to half of them are cut off as warm-up, and {FEWEST_STEPS}{of_what} must be left; \
         give --steps {least} or more"
    ))
}

/// The folders of the first and the second runs of the pairs.
const SIDES: [&str; 2] = ["a", "b"];

/// Runs the pairs, each run called after the folder, so that no other calibration has one of its name; which side comes
/// first takes turns, so that no order is in the difference.
fn make_pairs(
    pairs: u32,
    folder: &Path,
    make: impl Fn(&Path, &str) -> Result<Ran, SweepError>,
) -> anyhow::Result<()> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    for pair in 0..pairs {
        let order = if pair.is_multiple_of(2) { [0, 1] } else { [1, 0] };
        for side in order.map(|side| SIDES[side]) {
            let dir = completed(make(&folder.join(side), &format!("{name}-{side}-{pair:04}"))?)?;
            check_run(&dir)?;
        }
        note(format_args!("pair {} of {pairs}", pair + 1));
    }
    Ok(())
}

/// Refuses a run that no noise could be told from when all of them are made.
fn check_run(dir: &Path) -> anyhow::Result<()> {
    let run = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let repeat = Repeat::of(&read_tables(&Dataset::open(dir)?)?);
    Ok(shows_noise(&repeat.map_err(|why| CompareError::Unusable { run, why })?)?)
}

/// Noise is measured between runs that went well; the folder of this one.
fn completed(ran: Ran) -> anyhow::Result<PathBuf> {
    if ran.status == RunStatus::Complete {
        return Ok(ran.dir);
    }
    let reason = ran.reason.unwrap_or_else(|| ran.status.to_string());
    let message = format!("run {} did not complete: {reason}", ran.dir.display());
    Err(if ran.refused { Exit::input(message) } else { anyhow::Error::msg(message) })
}

/// Runs of the same program differ by 0 on average, but for chance.
fn doubt(noise: &Noise) -> Option<String> {
    (noise.mean_pct.abs() > noise.half_width_pct).then(|| {
        format!(
            "side b differs from side a by {} on average, which is more than chance: something on this machine \
             changed while it was measured; measure again when it is quiet",
            signed_pct(noise.mean_pct)
        )
    })
}

fn tell(noise: &Noise, json: bool) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    if json {
        return Ok(write_json(&mut stdout, noise)?);
    }
    let Noise { pairs, half_width_pct, pair_sd_pct, mean_pct, .. } = noise;
    let device = noise.device_kind();
    writeln!(
        stdout,
        "Noise of {device} ±{half_width_pct:.2} % (95 % interval of {pairs} pairs of the same program; a pair scatters by \
         {pair_sd_pct:.2} %, its mean is {mean_pct:+.2} %)"
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::compare::made_up::Made;
    use crate::store::DatasetWriter;

    fn args(pairs: u32, flags: &[&str]) -> CalibrateArgs {
        CalibrateArgs {
            device: "cpu".to_owned(),
            threads: None,
            noise: true,
            pairs,
            out: PathBuf::new(),
            json: false,
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        }
    }

    /// A run as the program would make it, in this minute.
    fn make(out: &Path, run_id: &str, minute: i64, made: Made) -> Ran {
        let tables = made.tables(run_id, minute);
        let mut writer = DatasetWriter::create(out, &tables.run).unwrap();
        tables.steps.into_iter().for_each(|step| writer.push(step, Vec::new(), Vec::new(), Vec::new()));
        let dir = writer.finish(&tables.run, &[]).unwrap();
        Ran { dir, status: RunStatus::Complete, reason: None, refused: false, took: Duration::ZERO }
    }

    #[test]
    fn pairs_take_turns_and_what_they_differ_by_is_kept() {
        let home = std::env::temp_dir().join(format!("stepledger-noise-{}", std::process::id()));
        let made = std::cell::RefCell::new(Vec::new());
        let found = measure(&args(5, &["--threads", "1"]), &home.join("runs"), |out, run_id| {
            made.borrow_mut().push(run_id.to_owned());
            let minute = made.borrow().len() as i64;
            Ok(make(out, run_id, minute, Made::default()))
        });
        let found = found.unwrap();
        let noise = found.noise.clone();
        let path = Calibrations::change(&home, |known| found.keep_in(known)).unwrap();
        assert_eq!(
            made.borrow()[..5],
            ["a-0000", "b-0000", "b-0001", "a-0001", "a-0002"].map(|id| format!("runs-{id}"))
        );
        assert!(noise.half_width_pct > 0.0 && noise.half_width_pct < 0.5 && noise.pairs == 5, "{noise:?}");
        assert_eq!((path, noise.flags.join(" ")), (home.join("calibration.json"), "--threads 1".to_owned()));
        let kept = Calibrations::load(&home).unwrap();
        let machine = made_on(&home);
        let widths = |noise: &Noise| (noise.half_width_pct, noise.pair_sd_pct, noise.step_ms);
        let found = kept.of(&machine).and_then(|known| known.noise_of("cpu"));
        assert_eq!(found.map(widths), Some(widths(&noise)));
        assert_eq!(kept.of(&machine).and_then(|known| known.noise_of("cuda:0")), None);
        std::fs::remove_dir_all(home).unwrap();
    }

    fn made_on(home: &Path) -> crate::record::Machine {
        read_sides(&home.join("runs"), SIDES[0], SIDES[1]).unwrap().0.machine
    }

    #[test]
    fn a_run_that_does_not_complete_ends_it_and_nothing_is_kept() {
        let home = std::env::temp_dir().join(format!("stepledger-no-noise-{}", std::process::id()));
        let error = measure(&args(5, &[]), &home.join("runs"), |out, run_id| {
            let (status, reason) = (RunStatus::Failed, Some("the disk was full".to_owned()));
            Ok(Ran { dir: out.join(run_id), status, reason, refused: false, took: Duration::ZERO })
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains("a-0000 did not complete: the disk was full"), "{error}");
        assert!(!home.exists());
    }

    #[test]
    fn the_first_run_that_is_no_sound_unit_ends_it() {
        let home = std::env::temp_dir().join(format!("stepledger-costly-{}", std::process::id()));
        let made = std::cell::Cell::new(0);
        let error = measure(&args(5, &[]), &home.join("runs"), |out, run_id| {
            made.set(made.get() + 1);
            // The second one.
            let overhead = if made.get() == 2 { 0.2 } else { 0.0 };
            Ok(make(out, run_id, made.get(), Made { overhead, ..Made::default() }))
        });
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("run runs-b-0000 is no sound unit") && error.contains("cost 20.0 %"),
            "{error}"
        );
        assert_eq!(made.get(), 2);
        std::fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn sides_that_differ_by_more_than_chance_are_doubted() {
        let noise = |mean_pct| Noise {
            measured_at: chrono::DateTime::UNIX_EPOCH,
            device: None,
            pairs: 5,
            half_width_pct: 1.5,
            pair_sd_pct: 1.0,
            mean_pct,
            step_ms: 10.0,
            flags: Vec::new(),
        };
        assert_eq!((doubt(&noise(1.4)), doubt(&noise(-1.4))), (None, None));
        assert!(doubt(&noise(-1.6)).is_some_and(|doubt| doubt.contains("−1.60 % on average")));
    }

    #[test]
    fn flags_that_give_too_few_steps_are_refused() {
        let refusal = |flags: &[&str]| refuse_few_steps(&args(5, flags).flags).err();
        assert_eq!((refusal(&[]), refusal(&["--steps", "60"])), (None, None));
        assert!(refusal(&["--steps", "59"]).is_some_and(|why| why.contains("--steps 60 or more")));
        // On a GPU as many waits for it are needed.
        let cuda = |steps| ["--device", "cuda", "--sync-every", "4", "--steps", steps];
        assert_eq!(refusal(&cuda("240")), None);
        let few = refusal(&cuda("239")).unwrap();
        assert!(few.contains("30 cycles of 4 steps") && few.contains("--steps 240 or more"), "{few}");
        assert_eq!(refusal(&["--sync-every", "4", "--steps", "60"]), None);
        // The last one counts.
        assert!(refusal(&["--steps", "90", "--steps", "9"]).is_some_and(|why| why.contains("--steps 9 ")));
        assert!(refusal(&["--stepps", "90"]).is_some_and(|why| why.contains("--stepps")));
    }
}
