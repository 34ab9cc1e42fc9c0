//! Out of memory is a result: at a limit of ours, and when the machine itself has no more.
#![cfg(feature = "torch")]

mod common;
#[path = "common/program.rs"]
mod program;

use std::process::Command;

use common::{MemorySink, turn};
use program::{Runs, program, stderr, stdout};
use serde_json::Value;
use stepledger::probe::{Options, Probe, ProbeError};
use stepledger::record::{Category, Moment, Phase, RunStatus, Trace};
use tch::kind::FLOAT_CPU;
use tch::{Kind, Tensor};

const MIB: i64 = 1 << 20;

/// Runs into the limit, and returns what `show --json` says.
fn ended(runs: &Runs, flags: &str) -> Value {
    let output = runs.command(flags).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{flags}: {}", stderr(&output));
    let account = runs.show("");
    assert_eq!(account["status"], "out_of_memory");
    account
}

/// What was alive adds up, by category and by block, to what the allocator says was in use.
fn is_reconciled(account: &Value) {
    let ended = &account["out_of_memory"];
    let total = ended["ledger"]["allocator_total"].as_i64().unwrap();
    assert_eq!((&ended["ledger"]["difference"], &ended["ledger"]["unattributed"]), (&0.into(), &0.into()));
    let parts = ended["parts"].as_array().unwrap().iter().map(|part| part["bytes"].as_i64().unwrap());
    assert_eq!(parts.sum::<i64>(), total);
    let largest = ended["largest"].as_array().unwrap();
    assert!(!largest.is_empty() && largest.len() <= 20);
}

#[test]
fn a_forward_that_does_not_fit_ends_the_run_and_says_where() {
    let runs = Runs::new();
    let flags = "--batch 64 --steps 4 --warmup 0 --capacity-mb 64 --enforce --trace ops";
    let account = ended(&runs, flags);
    is_reconciled(&account);
    let failed = &account["out_of_memory"]["failed"];
    assert_eq!((&failed["phase"], &failed["step"]), (&"forward".into(), &0.into()));
    assert!(failed["scope"].as_str().unwrap().starts_with("h."), "{failed}");
    assert!(failed["op"].as_str().unwrap().starts_with("aten::"), "{failed}");
    let (asked, in_use) = (
        failed["asked_bytes"].as_i64().unwrap(),
        account["out_of_memory"]["ledger"]["allocator_total"].as_i64(),
    );
    assert!(asked + in_use.unwrap() > 64 * MIB && in_use.unwrap() <= 64 * MIB);
    // What forward had kept until then is what backward would have released.
    let ledger = &account["out_of_memory"]["ledger"];
    assert!(ledger["activation"].as_i64().unwrap() > 50 * MIB, "{ledger}");
}

/// The theory is exact here: the largest batch that it says fits does, and the next one does not.
#[test]
fn what_is_said_to_fit_fits_and_the_next_larger_does_not() {
    let runs = Runs::new();
    let account = ended(&runs, "--batch 64 --steps 1 --warmup 1 --capacity-mb 64 --enforce");
    let alternatives = account["out_of_memory"]["alternatives"].as_array().unwrap();
    assert_eq!(alternatives[0]["flags"], "--batch 24");
    for other in alternatives.iter().filter(|other| other["fits"] == true) {
        let flags = other["flags"].as_str().unwrap();
        let output = runs
            .command(&format!("--batch 64 {flags} --steps 1 --warmup 1 --capacity-mb 64 --enforce"))
            .output();
        assert!(output.unwrap().status.success(), "{flags}");
        let measured = runs.show("")["step"]["peak_bytes"].as_i64().unwrap();
        assert_eq!(other["theory_peak_bytes"], measured, "{flags}");
    }
    ended(&runs, "--batch 25 --steps 1 --warmup 1 --capacity-mb 64 --enforce");
}

#[test]
fn every_part_of_a_run_can_be_where_it_ends() {
    let small = "--layers 2 --width 64 --heads 4 --seq 16 --batch 2 --steps 3 --warmup 0 --enforce";
    let runs = Runs::new();
    // Parameters alone; parameters and activations; and, with so few positions, all gradients at the end of
    // backward, and the first step's states.
    for (mb, phase) in [
        ("0.2", Value::Null),
        ("0.55", "forward".into()),
        ("0.8", "backward".into()),
        ("1.2", "optimizer".into()),
    ] {
        let account = ended(&runs, &format!("{small} --capacity-mb {mb}"));
        assert_eq!(account["out_of_memory"]["failed"]["phase"], phase, "{mb}");
        is_reconciled(&account);
    }
}

/// What there is of the model by then is parameters, with their names, and master weights.
#[test]
fn a_model_that_cannot_be_built_is_known_for_what_there_is_of_it() {
    let runs = Runs::new();
    let bytes = |ledger: &Value, category: &str| ledger[category].as_i64().unwrap();
    for (flags, states) in [
        ("--capacity-mb 3.17", false),
        ("--capacity-mb 1", false),
        ("--capacity-mb 5 --dtype bf16 --master-weights", true),
    ] {
        let account = ended(&runs, &format!("--steps 1 --warmup 0 --enforce {flags}"));
        is_reconciled(&account);
        assert_eq!(account["parameters"], Value::Null, "they are not all there");
        let ended = &account["out_of_memory"];
        assert!(bytes(&ended["ledger"], "parameter") > MIB / 2, "{flags}: {}", ended["ledger"]);
        assert_eq!(bytes(&ended["ledger"], "adam_state") > 0, states, "{flags}: {}", ended["ledger"]);
        assert!(!ended["parts"].to_string().contains("other_temporary"), "{flags}: {}", ended["parts"]);
        let largest = ended["largest"].as_array().unwrap();
        assert!(largest.iter().all(|block| block["name"].is_string()), "{flags}: {largest:?}");
    }
}

/// After an error libtorch's engine keeps what it was working on: it is explained too, wherever backward ends.
#[test]
fn a_backward_that_does_not_fit_leaves_nothing_unexplained() {
    let small = "--layers 2 --width 64 --heads 4 --seq 16 --batch 2 --steps 3 --warmup 0 --enforce";
    let runs = Runs::new();
    for mb in [0.85, 0.9166, 0.95, 1.0, 1.05] {
        let account = ended(&runs, &format!("{small} --capacity-mb {mb}"));
        is_reconciled(&account);
        let missing = account["missing"].to_string();
        assert!(!missing.contains("unattributed"), "{mb}: {missing}");
    }
}

/// A loop that got over it, and was left for something else.
#[test]
fn a_failure_that_was_overcome_does_not_end_a_run() {
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("overcome").limit(Some(MIB)), sink.clone()).unwrap();
    let mut step = probe.step();
    step.forward(|| {
        assert!(Tensor::f_empty([MIB], FLOAT_CPU).is_err());
        drop(Tensor::empty([8], FLOAT_CPU));
    });
    drop(step);
    drop(probe);
    let kept = sink.0.borrow();
    let run = kept.run.as_ref().unwrap();
    assert_eq!((run.status, &run.out_of_memory), (RunStatus::Failed, &None));
}

#[test]
fn the_text_tells_it_too() {
    let runs = Runs::new();
    let output = runs.command("--batch 64 --steps 4 --warmup 0 --capacity-mb 64 --enforce").output().unwrap();
    let text = stdout(&output);
    for expected in [
        "Out of memory in forward of step 0, scope h.",
        "the limit is 64.0 MiB (67,108,864 bytes)",
        "what was alive then",
        "difference 0",
        "What would fit",
        "--batch 16 --accumulate 4",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
}

#[test]
fn the_step_that_failed_is_told_from_one_that_never_was() {
    let runs = Runs::new();
    ended(&runs, "--batch 64 --steps 4 --warmup 0 --capacity-mb 64 --enforce");
    let mut show = program();
    show.args(["show", "--step", "0", "--out"]).arg(runs.file("runs"));
    let message = stderr(&show.output().unwrap());
    assert!(message.contains("In step 0 it ran out of memory; plain `show` tells"), "{message}");
}

/// The process may have so much memory and no more, as on a machine that is full.
#[test]
fn the_machines_own_limit_is_told_like_ours() {
    let runs = Runs::new();
    let run = runs.command("--batch 512 --steps 1 --warmup 0");
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -v 1800000; exec \"$0\" \"$@\""]).arg(run.get_program()).args(run.get_args());
    let output = limited.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let account = runs.show("");
    is_reconciled(&account);
    let ended = &account["out_of_memory"];
    assert_eq!(ended["limit_bytes"], Value::Null);
    // In the loop's own numbers, not in those of a block with a header of ours.
    let asked = ended["failed"]["asked_bytes"].to_string();
    assert!(account["reason"].as_str().unwrap().contains(&asked), "{asked}: {}", account["reason"]);
    assert!(!account["reason"].as_str().unwrap().contains("frame #"), "{}", account["reason"]);
    let in_use = ended["ledger"]["allocator_total"].as_i64().unwrap();
    for other in ended["alternatives"].as_array().unwrap().iter().filter(|other| other["fits"] == true) {
        assert!(other["theory_peak_bytes"].as_i64().unwrap() <= in_use, "{other}");
    }
    assert!(ended["failed"]["asked_bytes"].as_i64().unwrap() > 10 * MIB, "{ended}");
    assert!(stdout(&output).contains("no limit was set: the machine had no more"));
}

/// A loop of one's own that catches the error goes on, and nothing of it is lost.
#[test]
fn a_loop_may_catch_it_and_go_on() {
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("catches").limit(Some(MIB)), sink.clone()).unwrap();
    let mut step = probe.step();
    let kept = step.forward(|| {
        let kept = Tensor::ones([1024], FLOAT_CPU);
        assert!(Tensor::f_ones([1 << 20], FLOAT_CPU).is_err());
        kept
    });
    step.finish(kept.sum(Kind::Float).double_value(&[]), None).unwrap();
    assert_eq!(probe.finish().unwrap().out_of_memory, None);
    let kept = sink.0.borrow();
    let moment = kept.steps[0].moments.iter().find(|row| row.moment == Moment::OutOfMemory).unwrap();
    assert_eq!((moment.bytes.total(), moment.bytes[Category::Unattributed]), (4096, 0));
    assert_eq!(kept.steps[0].step.difference_bytes, Some(0));
}

/// One that does not catch it leaves the run as it was then.
#[test]
fn a_loop_that_is_ended_by_it_leaves_the_result() {
    let _turn = turn();
    let sink = MemorySink::default();
    {
        let mut probe = Probe::start(Options::new("ends").limit(Some(MIB)), sink.clone()).unwrap();
        let mut step = probe.step();
        let kept = step.dataloader(|| Tensor::ones([1024], FLOAT_CPU));
        let failed = step.forward(|| Tensor::f_ones([1 << 20], FLOAT_CPU).is_err());
        assert!(failed && kept.numel() == 1024);
    }
    let run = sink.0.borrow().run.clone().unwrap();
    let failed = run.out_of_memory.unwrap();
    assert_eq!((run.status, run.capacity_bytes), (RunStatus::OutOfMemory, Some(MIB)));
    assert_eq!((failed.asked_bytes, failed.phase), (4 * MIB, Some(Phase::Forward)));
    let kept = sink.0.borrow();
    let moment = kept.between.iter().flat_map(|b| &b.moments).find(|row| row.moment == Moment::OutOfMemory);
    assert_eq!(moment.unwrap().bytes[Category::Input], 4096);
}

/// Two threads that ask at once for what only one of them can have.
#[test]
fn the_limit_holds_to_the_byte_on_several_threads() {
    let _turn = turn();
    let sink = MemorySink::default();
    let mut probe = Probe::start(Options::new("races").limit(Some(MIB)), sink.clone()).unwrap();
    let step = probe.step();
    let ask = || {
        for _ in 0..20_000 {
            // A refusal is no matter here.
            drop(Tensor::f_empty([150_000], FLOAT_CPU));
        }
    };
    std::thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(ask);
        }
    });
    step.finish(None, None).unwrap();
    probe.finish().unwrap();
    let peak = sink.0.borrow().steps[0].step.peak_bytes.unwrap();
    assert!(peak == 600_000, "{peak} of {MIB}");
}

#[test]
fn a_limit_takes_a_trace_of_allocations() {
    let options = Options::new("times").trace(Trace::Phases).limit(Some(MIB));
    assert!(matches!(
        Probe::start(options, MemorySink::default()).err(),
        Some(ProbeError::LimitWithoutTrace)
    ));
    let runs = Runs::new();
    for (flags, expected) in [
        ("--capacity-mb 64 --enforce --trace phases", "it takes --trace allocations or ops"),
        ("--enforce", "--capacity-mb"),
        ("--capacity-mb 0", "allowed: any number above 0"),
    ] {
        let output = runs.command(flags).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags}");
        assert!(stderr(&output).contains(expected), "{flags}: {}", stderr(&output));
    }
}
