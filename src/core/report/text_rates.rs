//! What a device can do, and what a step makes of it, as text for a terminal.

use super::product_rate::ProductRate;
use super::reference::whose;
use super::tables::{put, table};
use super::units::{self, pct};
use crate::record::{ARRAY_PART_OF_MEMORY, DeviceRates, MOST_ARRAY_BYTES, MeasuredRate, beyond_caches_bytes};

/// What was measured of a device, a line each.
pub fn render_rates(rates: &DeviceRates) -> String {
    let DeviceRates { device, card, threads, stepledger, torch, .. } = rates;
    let card = card.as_deref().map(|card| format!(", {card}")).unwrap_or_default();
    let threads = threads.map(|number| format!(", {}", units::threads(number))).unwrap_or_default();
    let mut table = table(&["what it can do at most", "median", "middle half", "rounds"]);
    for Line { name, rate, unit } in lines(rates) {
        let rounds = rate.rounds.to_string();
        table.add_row(vec![name, unit(rate.median), middle_half(rate, unit), rounds]);
    }
    let memory = memory_by(rates).map(|told| told + "\n").unwrap_or_default();
    format!("{device}{card}{threads}, libtorch {torch}, stepledger {stepledger}\n\n{}\n{memory}", put(&table))
}

/// What memory was measured with.
fn memory_by(rates: &DeviceRates) -> Option<String> {
    let array = units::file_bytes(rates.array_bytes?);
    Some(format!(" (memory: arrays of {array} each; {})", caches(rates)))
}

fn caches(rates: &DeviceRates) -> String {
    match rates.caches_bytes {
        Some(bytes) => format!("the last-level caches have {} together", units::file_bytes(bytes)),
        None => "how large the last-level caches are is not known".to_owned(),
    }
}

/// What is told beside rates that may not be what they are called: all that scatter, and those of memory where they may be
/// a cache's.
pub fn doubts_of_rates(rates: &DeviceRates) -> Vec<String> {
    let unsteady = unsteady_rates(rates);
    let unsteady = (!unsteady.is_empty()).then(|| {
        format!(
            "unsteady: {}; where the middle half of the rounds lies a factor of 2 or more apart, a median says little. Let \
             the machine come to rest, and calibrate again: what is kept now is replaced then",
            unsteady.join("; ")
        )
    });
    unsteady.into_iter().chain(of_a_cache(rates)).collect()
}

/// The rates whose rounds scatter widely, each with its middle half.
pub fn unsteady_rates(rates: &DeviceRates) -> Vec<String> {
    let unsteady = lines(rates).into_iter().filter(|line| line.rate.is_unsteady());
    unsteady.map(|Line { name, rate, unit }| format!("{name}, {}", middle_half(rate, unit))).collect()
}

fn of_a_cache(rates: &DeviceRates) -> Option<String> {
    let array = rates.array_bytes.filter(|_| rates.may_be_of_caches())?;
    let beyond = beyond_caches_bytes(rates.caches_bytes);
    let way_out = if beyond > MOST_ARRAY_BYTES {
        format!(
            "larger ones than {} are not taken, whatever memory is free: take the rates as those of caches and memory \
             together",
            units::file_bytes(MOST_ARRAY_BYTES)
        )
    } else {
        format!(
            "for them {} must be free (three arrays take half of it): free some, and calibrate again",
            units::file_bytes(beyond.saturating_mul(ARRAY_PART_OF_MEMORY))
        )
    };
    Some(format!(
        "the memory's rates may be those of a cache: {}, the arrays have {} each, and should have {}; {way_out}",
        caches(rates),
        units::file_bytes(array),
        units::file_bytes(beyond)
    ))
}

/// One of the rates, with its name and its unit.
struct Line {
    name: String,
    rate: MeasuredRate,
    unit: fn(f64) -> String,
}

fn lines(rates: &DeviceRates) -> Vec<Line> {
    let line = |name: &str, rate, unit| Line { name: name.to_owned(), rate, unit };
    let fma = rates.fma_f32_tflop_s.map(|rate| line("fused multiply-adds, f32", rate, flops));
    let mut lines = vec![
        line("memory, copy", rates.copy_gb_s, gigabytes),
        line("memory, triad", rates.triad_gb_s, gigabytes),
        line(&product("f32", rates.matmul_f32_rows), rates.matmul_f32_tflop_s, flops),
        line(&product("bf16", rates.matmul_bf16_rows), rates.matmul_bf16_tflop_s, flops),
    ];
    lines.extend(fma);
    lines
}

fn middle_half(rate: MeasuredRate, unit: fn(f64) -> String) -> String {
    format!("{} to {}", unit(rate.q1), unit(rate.q3))
}

/// `matrix product, f32, 2048 × 2048`.
fn product(dtype: &str, rows: Option<i64>) -> String {
    let size = rows.map(|rows| format!(", {rows} × {rows}")).unwrap_or_default();
    format!("matrix product, {dtype}{size}")
}

/// A step's products: theory in a line, the measured step's rate in the next.
pub fn product_rate(rate: &ProductRate) -> String {
    let ProductRate { theory_flops_per_step, dtype, tflop_s, reference } = rate;
    let theory = format!(
        "  in theory {} a step ({dtype}, forward and backward, recomputation not counted)",
        operations(theory_flops_per_step / 1e12)
    );
    let mut achieved = format!("  over the measured step {}", flops(*tflop_s));
    if let Some(reference) = reference {
        let whose = whose(reference.source);
        let (share, most) = (pct(reference.share_pct), flops(reference.tflop_s));
        achieved += &format!(", {share} of {most} {whose} ({})", reference.what);
    }
    format!("Matrix products\n{theory}\n{achieved}")
}

pub(super) fn gigabytes(gb_s: f64) -> String {
    format!("{gb_s:.1} GB/s")
}

/// A rate of operations.
pub fn flops(tflop_s: f64) -> String {
    format!("{}/s", operations(tflop_s))
}

/// 10¹² operations with a fitting prefix.
fn operations(tera: f64) -> String {
    match tera {
        tiny if tiny < 0.9995e-3 => format!("{:.1} MFLOP", tiny * 1e6),
        small if small < 0.9995 => format!("{:.1} GFLOP", tera * 1e3),
        tera => format!("{tera:.2} TFLOP"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::super::step_times::StepSummary;
    use super::*;
    use crate::record::ReferenceRates;
    use crate::report::product_rate::product_rate as rate_of;
    use crate::theory::datasheet;

    fn rate(median: f64) -> MeasuredRate {
        MeasuredRate { median, q1: 0.9 * median, q3: 1.1 * median, rounds: 5 }
    }

    fn rates() -> DeviceRates {
        DeviceRates {
            device: "cpu".to_owned(),
            card: None,
            threads: Some(2),
            measured_at: "2026-01-31T12:00:00Z".parse().unwrap(),
            stepledger: "0.1.0".to_owned(),
            torch: "2.11.0".to_owned(),
            array_bytes: None,
            caches_bytes: None,
            copy_gb_s: rate(20.0),
            triad_gb_s: rate(18.0),
            matmul_f32_tflop_s: rate(0.2),
            matmul_bf16_tflop_s: rate(1.5),
            matmul_f32_rows: Some(2048),
            matmul_bf16_rows: None,
            fma_f32_tflop_s: None,
        }
    }

    /// Of the default GPT in this type, whose step takes 50 ms.
    fn of(dtype: &str, rates: Option<ReferenceRates>) -> ProductRate {
        rate_of(&gpt(dtype), rates.as_ref(), &step(Some(50.0))).unwrap()
    }

    fn step(median_ms: Option<f64>) -> StepSummary {
        StepSummary { median_ms, cycles: 9, cycle_steps: Some(1), ..StepSummary::default() }
    }

    fn gpt(dtype: &str) -> Map<String, Value> {
        let config = json!({"model": "gpt", "layers": 4, "width": 128, "heads": 4, "seq": 64, "batch": 8,
            "attention": "sdpa", "dtype": dtype});
        config.as_object().unwrap().clone()
    }

    #[test]
    fn operations_have_a_prefix_that_fits() {
        let told = [2e-6, 0.0003, 0.0037, 1.5].map(operations);
        assert_eq!(told, ["2.0 MFLOP", "300.0 MFLOP", "3.7 GFLOP", "1.50 TFLOP"]);
    }

    #[test]
    fn what_was_measured_is_a_line_each() {
        let text = render_rates(&rates());
        for words in
            ["cpu, 2 threads, libtorch 2.11.0", "20.0 GB/s", "18.0 GB/s to 22.0 GB/s", "200.0 GFLOP/s"]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(
            text.contains("matrix product, f32, 2048 × 2048 ") && text.contains("product, bf16 "),
            "{text}"
        );
        assert!(text.contains("1.50 TFLOP/s") && !text.contains("multiply-adds"), "{text}");
    }

    fn with_arrays(array: Option<u64>, caches: Option<u64>) -> DeviceRates {
        DeviceRates { array_bytes: array, caches_bytes: caches, ..rates() }
    }

    /// The one doubt that must be there.
    fn doubt(array: u64, caches: Option<u64>) -> String {
        let doubts = doubts_of_rates(&with_arrays(Some(array), caches));
        assert_eq!(doubts.len(), 1, "{doubts:?}");
        doubts[0].clone()
    }

    #[test]
    fn arrays_that_a_cache_may_hold_are_told_with_what_there_must_be_free() {
        let doubt = doubt(64 << 20, Some(96 << 20));
        for words in ["96.0 MiB together", "64.0 MiB each", "should have 384 MiB", "2.25 GiB must be free"] {
            assert!(doubt.contains(words), "{words}: {doubt}");
        }
        for (array, caches) in
            [(Some(4 * (96 << 20)), Some(96 << 20)), (Some(1 << 30), None), (None, Some(96 << 20))]
        {
            assert_eq!(doubts_of_rates(&with_arrays(array, caches)), [""; 0], "{array:?} {caches:?}");
        }
    }

    #[test]
    fn caches_beyond_the_largest_arrays_are_not_to_be_helped_by_free_memory() {
        for array in [4 << 30, 1 << 30] {
            let doubt = doubt(array, Some(9 << 30));
            assert!(doubt.contains("larger ones than 4.00 GiB are not taken"), "{doubt}");
            assert!(!doubt.contains("free some"), "{doubt}");
        }
    }

    #[test]
    fn caches_that_are_not_known_are_told_of_and_doubted_below_a_gibibyte() {
        let doubt = doubt(64 << 20, None);
        for words in ["is not known", "64.0 MiB each", "should have 1.00 GiB", "6.00 GiB must be free"] {
            assert!(doubt.contains(words), "{words}: {doubt}");
        }
        let told = |array, caches| render_rates(&with_arrays(array, caches));
        assert!(
            told(Some(1 << 30), None).ends_with("each; how large the last-level caches are is not known)\n")
        );
        assert!(told(Some(1 << 30), Some(32 << 20)).contains("the last-level caches have 32.0 MiB together"));
        assert!(!told(None, None).contains("arrays"), "a GPU");
    }

    #[test]
    fn rates_that_scatter_are_told_wherever_they_are_used() {
        let wide = MeasuredRate { median: 0.1374, q1: 0.0036, q3: 0.1635, rounds: 5 };
        let unsteady = DeviceRates { matmul_f32_tflop_s: wide, ..rates() };
        assert_eq!(unsteady_rates(&rates()), [""; 0]);
        let told = ["matrix product, f32, 2048 × 2048, 3.6 GFLOP/s to 163.5 GFLOP/s"];
        assert_eq!(unsteady_rates(&unsteady), told);
        let doubts = doubts_of_rates(&unsteady);
        assert!(doubts.len() == 1 && doubts[0].contains(told[0]), "{doubts:?}");
        assert!(doubts[0].contains("calibrate again"), "{doubts:?}");
        let held = |dtype| of(dtype, Some(ReferenceRates::Calibrated(unsteady.clone())));
        let text = product_rate(&held("f32"));
        assert!(
            text.contains("; unsteady, the middle half of its rounds lies a factor of 45.4 apart"),
            "{text}"
        );
        let says = |dtype| held(dtype).reference.is_some_and(|reference| reference.unsteady);
        assert!(says("f32") && !says("bf16"));
    }

    #[test]
    fn one_thread_is_one() {
        let text = render_rates(&DeviceRates { threads: Some(1), ..rates() });
        assert!(text.starts_with("cpu, 1 thread, libtorch"), "{text}");
    }

    #[test]
    fn a_steps_share_of_the_calibrated_rate() {
        let rate = of("f32", Some(ReferenceRates::Calibrated(rates())));
        let flops = rate.theory_flops_per_step;
        assert_eq!(rate.tflop_s, flops / 0.05 / 1e12);
        let reference = rate.reference.as_ref().unwrap();
        assert_eq!((reference.source, reference.tflop_s), ("calibrated", 0.2));
        assert!((reference.share_pct - 100.0 * flops / 0.05 / 0.2e12).abs() < 1e-9);
        let text = product_rate(&rate);
        assert!(text.contains("in theory") && text.contains("calibrate`"), "{text}");
    }

    #[test]
    fn half_precision_is_held_against_the_rate_of_half_precision() {
        for dtype in ["bf16", "amp-bf16"] {
            let rate = of(dtype, Some(ReferenceRates::Calibrated(rates())));
            assert_eq!((rate.dtype, rate.reference.unwrap().tflop_s), ("bf16", 1.5), "{dtype}");
        }
    }

    #[test]
    fn a_datasheet_is_named_as_one() {
        let sheet = ReferenceRates::Datasheet(datasheet("Tesla V100-SXM2-16GB").unwrap().clone());
        let rate = of("f32", Some(sheet.clone()));
        assert_eq!(rate.reference.as_ref().unwrap().source, "datasheet");
        assert!(product_rate(&rate).contains("by the datasheet, never measured here"));
        assert_eq!(of("bf16", Some(sheet)).reference, None, "the document has no figure for bf16");
    }

    #[test]
    fn without_a_step_or_a_closed_form_there_is_no_rate() {
        assert_eq!(rate_of(&gpt("f32"), None, &step(None)), None);
        assert_eq!(rate_of(&Map::new(), None, &step(Some(50.0))), None);
        let of_host = StepSummary { cycle_steps: None, ..step(Some(1.0)) };
        assert_eq!(rate_of(&gpt("f32"), None, &of_host), None, "handing a step over is no step");
        assert_eq!(of("f32", None).reference, None);
    }
}
