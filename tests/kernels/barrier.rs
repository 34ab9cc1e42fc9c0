//! The host's barrier is one: what needs it works, and what lacks it is found out.

use crate::host::Host;

type OnValues = extern "C" fn(*mut i32, u32, bool) -> bool;

fn run(host: &Host, name: &str, threads: usize, descending: bool) -> Vec<i32> {
    let mut values: Vec<i32> = (0..3 * threads as i32).collect();
    // SAFETY: the file declares these functions so, for three blocks of as many values.
    assert!(unsafe { host.function::<OnValues>(name) }(values.as_mut_ptr(), 3, descending));
    values
}

#[test]
fn a_barrier_holds_all_threads_of_a_block() {
    let host = Host::build("barrier.cpp", &[]);
    let reversed: Vec<i32> = (0..3).flat_map(|block| (block * 96..(block + 1) * 96).rev()).collect();
    for descending in [false, true] {
        assert_eq!(run(&host, "host_reverse", 96, descending), reversed);
        let sums = run(&host, "host_sum", 64, descending);
        assert_eq!(
            [sums[0], sums[64], sums[128]],
            [0, 1, 2].map(|block| (block * 64..(block + 1) * 64).sum::<i32>())
        );
    }
}

#[test]
fn a_barrier_that_is_missing_or_not_reached_is_found_out() {
    let host = Host::build("barrier.cpp", &[]);
    let early = [false, true].map(|descending| run(&host, "host_reverse_too_early", 96, descending));
    assert_ne!(early[0], early[1]);
    // SAFETY: the file declares it so.
    assert!(!unsafe { host.function::<extern "C" fn() -> bool>("host_divergent") }());
}
