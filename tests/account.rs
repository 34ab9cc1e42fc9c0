//! The memory account of the toy models, in bytes, against closed forms.
#![cfg(feature = "torch")]

mod common;

use common::{MemorySink, gpt, turn};
use std::sync::atomic::AtomicBool;
use stepledger::probe::Options;
use stepledger::record::*;

#[test]
fn explore() {
    let _turn = turn();
    let sink = MemorySink::default();
    let config = gpt();
    stepledger::train::train(
        &config,
        Options::new("gpt"),
        sink.clone(),
        &mut |s| println!("{s:?}"),
        &AtomicBool::new(false),
    )
    .unwrap();
    let kept = sink.0.borrow();
    let last = kept.steps.last().unwrap();
    println!("{:#?}", last.step);
    for p in &last.phases {
        println!("{:?} {} {} {} {:?}", p.kind, p.phase, p.name, p.total_ns, p.parent);
    }
    for m in &last.moments {
        println!(
            "{:15} total {} alloc {} {:?}",
            m.moment,
            m.bytes.total(),
            m.allocator_bytes,
            m.bytes.iter().collect::<Vec<_>>()
        );
    }
    for a in last.ended.iter() {
        println!(
            "{:6} {:9} {:12} {:?} {:?} {:?} {:?} -> {:?} thread {}",
            a.id, a.bytes, a.category, a.detail, a.phase, a.scope, a.step, a.freed_phase, a.thread
        );
    }
    for a in kept.open.iter() {
        println!(
            "OPEN {:6} {:9} {:12} {:?} {:?} {:?} {:?}",
            a.id, a.bytes, a.category, a.detail, a.name, a.phase, a.step
        );
    }
    println!("{:?}", kept.run);
}
