//! The checks of `stepledger doctor` that need libtorch: told line by line to the program, which has started this process
//! for them alone.

mod cuda;
mod libtorch;
mod look;
mod tools;

use anyhow::Context;
use stepledger_core::cli::{DONE, DoctorArgs, Line, NVTX_TOOL, Outcome, Teller, UNSET_NVTX_TOOL};

use crate::report::Standing;
use look::Look;

/// Everything to look at: first what `run` needs, then each behind what it rests on.
const LOOKS: [Look; 11] = [
    Look::needed(libtorch::LIBTORCH, || vec![libtorch::version()], libtorch::REPORT),
    // Each run loads it, so that a run ends with it.
    Look::needed(NVTX_TOOL, || vec![tools::attached()], UNSET_NVTX_TOOL),
    Look::needed(libtorch::HOOK, || vec![libtorch::hook()], libtorch::WITHOUT_HOOK),
    Look::new(cuda::HALF, || vec![cuda::half()], cuda::OTHER_LIBTORCH),
    Look::new(cuda::DRIVER, || vec![cuda::driver()], cuda::ASK_THE_DRIVER),
    Look::new(cuda::GPU, cuda::all_cards, cuda::ASK_THE_DRIVER).on(&[cuda::DRIVER]),
    Look::new(cuda::ON_GPU, || vec![cuda::libtorch_on_gpu()], cuda::ASK_THE_DRIVER).on(&[
        cuda::HALF,
        cuda::DRIVER,
        cuda::GPU,
    ]),
    Look::new(cuda::NVML, || vec![cuda::nvml()], cuda::ASK_THE_DRIVER),
    Look::new(cuda::NVRTC, || vec![cuda::compiler()], cuda::COMPILER_IS_FOR),
    Look::new(tools::CUPTI, || vec![tools::cupti()], tools::CUPTI_COMES_WITH),
    Look::new(tools::CACHE, || vec![tools::kernels()], tools::OTHER_HOME),
];

/// Looks at everything behind what has ended an earlier process.
pub fn examine(args: &DoctorArgs) -> Outcome {
    let file = args.engine.context("no file to tell to")?;
    let mut teller = Teller::to(file).with_context(|| format!("--engine {file}"))?;
    let mut broken = args.fatal.clone();
    for look in behind(args.fatal.last()) {
        teller.tell(&Line::Looking(look.announced()))?;
        for check in look.found(&broken) {
            if check.standing == Standing::Fails {
                broken.push(check.name.clone());
            }
            teller.tell(&Line::Found(check))?;
        }
    }
    teller.tell(&Line::Done)?;
    Ok(DONE)
}

fn behind(last: Option<&String>) -> &'static [Look] {
    let place = last.and_then(|last| LOOKS.iter().position(|look| look.name == last));
    &LOOKS[place.map_or(0, |place| place + 1)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_behind_is_looked_at_after_an_end() {
        assert_eq!(behind(None).len(), LOOKS.len());
        assert_eq!(behind(Some(&cuda::NVRTC.to_owned()))[0].name, tools::CUPTI);
        assert!(behind(Some(&tools::CACHE.to_owned())).is_empty());
    }

    #[test]
    fn what_run_needs_comes_first_and_nothing_rests_on_what_comes_behind() {
        assert!(LOOKS.is_sorted_by_key(|look| !look.needed));
        for (place, look) in LOOKS.iter().enumerate() {
            let before: Vec<&str> = LOOKS[..place].iter().map(|look| look.name).collect();
            assert!(look.rests_on.iter().all(|name| before.contains(name)), "{}", look.name);
        }
    }
}
