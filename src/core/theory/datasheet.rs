//! What cards can do by their datasheets (`data/devices.json`): the reference for runs whose card was not calibrated.

use std::sync::LazyLock;

use crate::record::Datasheet;

/// All that are known: dense products, without sparsity; null is what the document does not say, or not clearly.
pub fn datasheets() -> &'static [Datasheet] {
    static ALL: LazyLock<Vec<Datasheet>> = LazyLock::new(|| {
        // The file is part of the program, and a test reads it.
        serde_json::from_str(include_str!("../../../data/devices.json")).unwrap_or_default()
    });
    &ALL
}

/// That of the card which the driver calls `name`. Cards of one family differ in memory and clocks, so only
/// a name that is listed will do.
pub fn datasheet(name: &str) -> Option<&'static Datasheet> {
    datasheets().iter().find(|sheet| sheet.names.iter().any(|known| known == name.trim()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_figures_are_plausible() {
        assert!(datasheets().len() >= 12, "devices.json was read");
        for sheet in datasheets() {
            let Datasheet { card, memory_gb, bandwidth_gb_s, .. } = sheet;
            let [f32, tf32, bf16, fp16] =
                [sheet.f32_tflop_s, sheet.tf32_tflop_s, sheet.bf16_tflop_s, sheet.fp16_tflop_s];
            assert!((8.0..=512.0).contains(memory_gb), "{card}");
            assert!((200.0..=10_000.0).contains(bandwidth_gb_s), "{card}");
            assert!(fp16.is_some(), "{card}: every card here has tensor cores");
            let known: Vec<f64> = [f32, tf32, bf16, fp16].into_iter().flatten().collect();
            assert!(known.is_sorted(), "{card}: f32 ≤ tf32 ≤ bf16 ≤ fp16: {known:?}");
            assert!(bf16.is_none() || bf16 == fp16, "{card}: dense bf16 and fp16 run alike");
            // Products per byte of bandwidth: a figure with sparsity or of other units would stick out.
            let per_byte = fp16.unwrap() * 1e3 / bandwidth_gb_s;
            assert!((50.0..=450.0).contains(&per_byte), "{card}: {per_byte}");
            assert!(sheet.source.contains("NVIDIA"), "{card}");
        }
    }

    #[test]
    fn tensor_cores_do_at_least_twice_tf32_in_bf16() {
        for sheet in datasheets() {
            let (Some(tf32), Some(bf16)) = (sheet.tf32_tflop_s, sheet.bf16_tflop_s) else { continue };
            assert!((1.9..=2.1).contains(&(bf16 / tf32)), "{}: {tf32} {bf16}", sheet.card);
        }
    }

    #[test]
    fn common_cards_have_what_a_run_in_f32_is_held_against() {
        let common = [
            "Tesla T4",
            "NVIDIA A30",
            "NVIDIA A40",
            "NVIDIA RTX A6000",
            "NVIDIA L40",
            "NVIDIA A10G",
            "NVIDIA H100 NVL",
            "NVIDIA H200",
            "NVIDIA H200 NVL",
            "NVIDIA GH200 480GB",
            "Tesla V100-PCIE-16GB",
            "Tesla V100-PCIE-32GB",
            "NVIDIA B200",
            "NVIDIA GeForce RTX 5090",
        ];
        for name in common {
            assert!(datasheet(name).is_some_and(|sheet| sheet.f32_tflop_s.is_some()), "{name}");
        }
        assert!(datasheets().iter().all(|sheet| sheet.f32_tflop_s.is_some()));
    }

    #[test]
    fn documents_that_have_editions_are_named_with_theirs() {
        for family in ["V100", "A100", "A10G", "H100", "H200", "GH200", "B200"] {
            for sheet in datasheets().iter().filter(|sheet| sheet.card.split(' ').next() == Some(family)) {
                let edition = sheet.source.split_once(", ").map(|(_, edition)| edition).unwrap_or_default();
                assert!(edition.contains(|c: char| c.is_ascii_digit()), "{}: {}", sheet.card, sheet.source);
            }
        }
    }

    #[test]
    fn figures_of_one_card_come_from_one_document() {
        let b200 = datasheet("NVIDIA B200").unwrap();
        assert_eq!((b200.f32_tflop_s, b200.bandwidth_gb_s), (Some(75.0), 7700.0), "HGX B200's column");
    }

    #[test]
    fn a_card_is_found_by_the_drivers_name_alone() {
        assert_eq!(datasheet("NVIDIA H100 80GB HBM3").unwrap().bandwidth_gb_s, 3350.0);
        assert_eq!(datasheet("NVIDIA H100 PCIe\n").unwrap().card, "H100 PCIe 80 GB");
        assert_eq!(datasheet("NVIDIA H100"), None);
        let names: Vec<&String> = datasheets().iter().flat_map(|sheet| &sheet.names).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "no name twice");
    }
}
