//! What the card does at most, by kernels of our own, against its datasheet. That they compute what they should is looked
//! at as they are measured, place by place.

use stepledger::device::{Cache, DeviceError, Gpu, cards, measure_bandwidth, measure_fma};
use stepledger::theory::datasheet;
use tch::Device;

use super::Outcome;
use super::row::Row;

/// In percent of the datasheet. Memory reaches nine tenths of its peak; clocks may lie above what the datasheet assumes.
const BANDWIDTH_PCT: (f64, f64) = (70.0, 103.0);
const FMA_PCT: (f64, f64) = (60.0, 115.0);

pub fn peaks(device: Device) -> Outcome<Vec<Row>> {
    let Device::Cuda(ordinal) = device else {
        return Ok(vec![Row::not_run("peaks", "a CPU runs no CUDA kernels")]);
    };
    let name = cards()?.into_iter().nth(ordinal).ok_or("the driver does not know this GPU")?.name;
    let (gpu, cache) = (Gpu::open(ordinal as i32)?, Cache::standard());
    let measured = measure_bandwidth(&gpu, &cache, 3 << 30)
        .and_then(|bandwidth| Ok((bandwidth, measure_fma(&gpu, &cache)?)));
    let right = computed(measured.as_ref().err());
    let Ok((bandwidth, fma)) = measured else { return Ok(vec![right]) };
    let sheet = datasheet(&name);
    let share = |check: &str, got: f64, unit: &str, most: Option<f64>, range: (f64, f64)| match most {
        Some(most) => {
            let share = 100.0 * got / most;
            let expected = format!("{} to {} % of {most} {unit}", range.0, range.1);
            Row::new(
                check,
                expected,
                format!("{got:.1} {unit}, {share:.1} %"),
                (range.0..=range.1).contains(&share),
            )
        }
        None => Row::not_run(check, format!("{got:.1} {unit}, but no datasheet is known for {name}")),
    };
    let memory = sheet.map(|sheet| sheet.bandwidth_gb_s);
    Ok(vec![
        right,
        share("peaks: copy", bandwidth.copy.median, "GB/s", memory, BANDWIDTH_PCT),
        share("peaks: triad", bandwidth.triad.median, "GB/s", memory, BANDWIDTH_PCT),
        share("peaks: FMA", fma.median, "TFLOP/s", sheet.and_then(|sheet| sheet.f32_tflop_s), FMA_PCT),
    ])
}

/// Each place that the kernels wrote is looked at while they are measured.
fn computed(error: Option<&DeviceError>) -> Row {
    const RIGHT: &str = "every place right";
    let got = error.map_or_else(|| RIGHT.to_owned(), DeviceError::to_string);
    Row::new("peaks: copy, triad, FMA compute", RIGHT, got, error.is_none())
}

#[cfg(test)]
mod tests {
    use super::super::row::verdict;
    use super::*;

    #[test]
    fn a_kernel_that_computes_something_else_fails() {
        let wrong = DeviceError::WrongResult { kernel: "triad", place: 7, found: 1.0, expected: 2.0 };
        assert_eq!(verdict(&[computed(Some(&wrong))]).code(), 1);
        assert_eq!(verdict(&[computed(None)]).code(), 0);
    }
}
