//! A machine without a GPU, told from one whose GPU or driver does not work, as `doctor` tells them apart.

use stepledger::device::{Card, DeviceError, is_fault};

use super::row::Row;

/// What is to be said of a check that libtorch has no GPU for, by what the driver says, the cards on the bus, and
/// CUDA_VISIBLE_DEVICES.
pub fn absent(
    check: &str,
    cards: Result<Vec<Card>, DeviceError>,
    on_bus: &[String],
    visible: Option<&str>,
    why: &str,
) -> Row {
    let error = match cards {
        Ok(cards) if cards.is_empty() => DeviceError::NoGpu,
        Ok(cards) => {
            let known: Vec<&str> = cards.iter().map(|card| &*card.name).collect();
            let got = format!("the driver knows {}; {why}", known.join(", "));
            return Row::new(check, "a GPU that works", got, false);
        }
        Err(error) => error,
    };
    if !is_fault(&error, on_bus, visible) {
        return Row::not_run(check, format!("no GPU ({why})"));
    }
    let got = match on_bus {
        [] => format!("{error}; {why}"),
        on_bus => format!("the machine has {}; {error}; {why}", on_bus.join(", ")),
    };
    Row::new(check, "a driver that works", got, false)
}

#[cfg(test)]
mod tests {
    use stepledger::device::{Arch, NoDriver};

    use super::super::row::verdict;
    use super::*;

    #[test]
    fn a_driver_that_refuses_is_a_failure_and_none_is_not() {
        let card = "0000:01:00.0 (10de:2330)".to_owned();
        let code = |cards, on_bus: &[String], visible| {
            verdict(&[absent("clock", cards, on_bus, visible, "libtorch sees no GPU")]).code()
        };
        let none = || Err(NoDriver::NotFound.into());
        assert_eq!(
            [code(none(), &[], None), code(Err(DeviceError::NoGpu), &[], None), code(Ok(vec![]), &[], None)],
            [77; 3]
        );
        let on_bus = [card];
        assert_eq!(code(none(), &on_bus, None), 1, "a card on the bus, and no driver for it");
        assert_eq!(code(Ok(vec![]), &on_bus, None), 1);
        assert_eq!(code(Ok(vec![]), &on_bus, Some("")), 77, "hidden on purpose");
        assert_eq!(code(Err(DeviceError::StubDriver), &[], None), 1);
        let card =
            Card { ordinal: 0, name: "a card".to_owned(), arch: Arch::new(9, 0), memory_bytes: 1 << 30 };
        assert_eq!(code(Ok(vec![card]), &[], None), 1, "the driver knows one that libtorch does not");
    }
}
