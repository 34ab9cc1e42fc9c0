//! A machine without a GPU, told from one whose GPU or driver does not work.

use stepledger::device::{Card, DeviceError, NoDriver};

use super::row::Row;

/// What is to be said of a check that libtorch has no GPU for, by what the driver says.
pub fn absent(check: &str, cards: Result<Vec<Card>, DeviceError>, why: &str) -> Row {
    match cards {
        Err(DeviceError::NoDriver(NoDriver::NotFound) | DeviceError::NoGpu) => {
            Row::not_run(check, format!("no GPU ({why})"))
        }
        Ok(cards) if cards.is_empty() => Row::not_run(check, format!("no GPU ({why})")),
        Ok(cards) => {
            let known: Vec<&str> = cards.iter().map(|card| &*card.name).collect();
            Row::new(
                check,
                "a GPU that works",
                format!("the driver knows {}; {why}", known.join(", ")),
                false,
            )
        }
        Err(error) => Row::new(check, "a driver that works", error.to_string(), false),
    }
}

#[cfg(test)]
mod tests {
    use stepledger::device::Arch;

    use super::super::row::verdict;
    use super::*;

    #[test]
    fn a_driver_that_refuses_is_a_failure_and_none_is_not() {
        let code = |cards| verdict(&[absent("clock", cards, "libtorch sees no GPU")]).code();
        assert_eq!(
            [code(Err(NoDriver::NotFound.into())), code(Err(DeviceError::NoGpu)), code(Ok(vec![]))],
            [77; 3]
        );
        assert_eq!(code(Err(DeviceError::StubDriver)), 1);
        let card =
            Card { ordinal: 0, name: "a card".to_owned(), arch: Arch::new(9, 0), memory_bytes: 1 << 30 };
        assert_eq!(code(Ok(vec![card])), 1, "the driver knows one that libtorch does not");
    }
}
