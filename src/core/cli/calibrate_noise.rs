//! `stepledger calibrate --noise`: how much runs of the same program differ.

use std::io::Write;
use std::path::Path;

use chrono::Utc;

use super::calibrate::{CalibrateArgs, kept};
use super::exit::{DONE, Exit, Outcome};
use super::show::write_json;
use crate::compare::{noise, read_sides};
use crate::record::RunStatus;
use crate::store::Noise;
use crate::sweep::{Program, Ran};

pub fn run(args: &CalibrateArgs) -> Outcome {
    let (home, mut known) = kept()?;
    let folder = args.out.join(format!("noise-{}", Utc::now().format("%Y%m%d-%H%M%S")));
    make_pairs(args, &folder)?;
    let (first, second) = read_sides(&folder, SIDES[0], SIDES[1])?;
    let found = noise(&first, &second, &args.flags, Utc::now())?;
    known.of_mut(&first.machine).noise = Some(found.clone());
    let path = known.save(&home)?;
    tell(&found, args.json)?;
    eprintln!("kept in {}; the runs are in {}", path.display(), folder.display());
    Ok(DONE)
}

/// The folders of the first and the second runs of the pairs.
const SIDES: [&str; 2] = ["a", "b"];

/// Runs the pairs; which side comes first takes turns, so that no order is in the difference.
fn make_pairs(args: &CalibrateArgs, folder: &Path) -> anyhow::Result<()> {
    let program = Program::this()?;
    for pair in 0..args.pairs {
        let order = if pair.is_multiple_of(2) { [0, 1] } else { [1, 0] };
        for side in order.map(|side| SIDES[side]) {
            let ran = program.run(&folder.join(side), &format!("{side}-{pair:04}"), &args.flags)?;
            completed(ran)?;
        }
        eprintln!("pair {} of {}", pair + 1, args.pairs);
    }
    Ok(())
}

/// Noise is measured between runs that went well.
fn completed(ran: Ran) -> anyhow::Result<()> {
    if ran.status == RunStatus::Complete {
        return Ok(());
    }
    let reason = ran.reason.unwrap_or_else(|| ran.status.to_string());
    let message = format!("run {} did not complete: {reason}", ran.dir.display());
    Err(if ran.refused { Exit::input(message) } else { anyhow::Error::msg(message) })
}

fn tell(noise: &Noise, json: bool) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    if json {
        return Ok(write_json(&mut stdout, noise)?);
    }
    let Noise { pairs, half_width_pct, pair_sd_pct, mean_pct, .. } = noise;
    writeln!(
        stdout,
        "Noise ±{half_width_pct:.2} % (95 % interval of {pairs} pairs of the same program; a pair scatters by \
         {pair_sd_pct:.2} %, its mean is {mean_pct:+.2} %)"
    )?;
    Ok(())
}
