//! Every kernel compiles for the cards of 2020, 2022 and 2024, and holds what it works on in registers.

use std::collections::BTreeMap;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::process::Command;

use stepledger::device::{Arch, Compiler, Source, Storage, Tiling};

const ARCHS: [Arch; 3] = [Arch::new(8, 0), Arch::new(9, 0), Arch::new(10, 0)];

/// What the assembler says of a kernel.
#[derive(Debug)]
struct Resources {
    kernel: String,
    registers: u32,
    stack_bytes: u32,
    spilled_bytes: u32,
}

/// The assembler that comes with PyTorch.
fn assembler() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/libtorch/bin/ptxas")
}

fn assemble(ptx: &str, arch: Arch) -> Vec<Resources> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kernel.ptx");
    std::fs::write(&file, ptx).unwrap();
    let target = format!("-arch=sm_{}{}", arch.major, arch.minor);
    let mut ptxas = Command::new(assembler());
    let output =
        ptxas.args(["-v", &target]).arg(&file).arg("-o").arg(folder.path().join("cubin")).output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    resources(&said)
}

/// Reads `… entry function 'name' …`, `… bytes stack frame, … bytes spill stores, … bytes spill loads` and
/// `Used … registers, …`.
fn resources(said: &str) -> Vec<Resources> {
    let parts = said.split("Compiling entry function '").skip(1);
    let part = |part: &str| {
        let number = |before: &str| {
            let words = part[..part.find(before).unwrap()].split_whitespace();
            words.last().unwrap().parse::<u32>().unwrap()
        };
        Resources {
            kernel: part.split('\'').next().unwrap().to_owned(),
            registers: number(" registers"),
            stack_bytes: number(" bytes stack frame"),
            spilled_bytes: number(" bytes spill stores") + number(" bytes spill loads"),
        }
    };
    parts.map(part).collect()
}

/// Compiles for one kind of card, and returns what each kernel takes.
fn check(source: &Source, arch: Arch, kernels: &[&str], most_registers: u32) -> Vec<Resources> {
    let ptx = Compiler::find().unwrap().compile(source, arch).unwrap();
    // Local memory is the card's own memory, slow, and what stacks and spills lie in.
    assert!(!ptx.contains(".local"), "{} {:?} uses local memory", source.name(), source.defines());
    let mut found = assemble(&ptx, arch);
    found.sort_by(|a, b| a.kernel.cmp(&b.kernel));
    for Resources { kernel, registers, stack_bytes, spilled_bytes } in &found {
        let what = format!("{arch} {} {kernel}: {registers} registers a thread", source.defines().join(" "));
        assert_eq!((*stack_bytes, *spilled_bytes), (0, 0), "{what}");
        assert!(*registers <= most_registers, "{what}");
    }
    assert_eq!(found.iter().map(|kernel| &*kernel.kernel).collect::<Vec<_>>(), kernels);
    found
}

/// Runs the checks of each kind of card on a thread of its own, and prints the registers that they found.
fn on_all_cards(check: impl Fn(Arch) -> Vec<Resources> + Sync) {
    let found: Vec<Vec<Resources>> = std::thread::scope(|scope| {
        let threads = ARCHS.map(|arch| {
            scope.spawn({
                let check = &check;
                move || check(arch)
            })
        });
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let lines: String = ARCHS.iter().zip(&found).map(|(arch, found)| summary(*arch, found)).collect();
    // Written past the test harness, which would show it of a test that fails only.
    stderr().write_all(lines.as_bytes()).unwrap();
}

/// A line for each kernel: the least and the most registers of the ways it was compiled in.
fn summary(arch: Arch, found: &[Resources]) -> String {
    let mut kernels: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for Resources { kernel, registers, .. } in found {
        kernels.entry(kernel).or_default().push(*registers);
    }
    let line = |(kernel, registers): (&str, Vec<u32>)| {
        let (least, most) = (registers.iter().min().unwrap(), registers.iter().max().unwrap());
        let range = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let tilings =
            if registers.len() == 1 { String::new() } else { format!(" in {} tilings", registers.len()) };
        format!("{arch} {kernel}: {range} registers a thread{tilings}, none spilled\n")
    };
    kernels.into_iter().map(line).collect()
}

#[test]
fn adamw_stays_in_registers_in_every_tiling_that_is_offered() {
    let mut kernels = Storage::ALL.map(Storage::kernel);
    kernels.sort_unstable();
    on_all_cards(|arch| {
        // A block's threads share 65,536 registers.
        let table =
            |tiling: Tiling| check(&Source::adamw(tiling), arch, &kernels, 65536 / tiling.block_size());
        Tiling::all().flat_map(table).collect()
    });
}

/// As many registers as let a multiprocessor of 2,048 threads be full.
const FULL: u32 = 32;

#[test]
fn the_measuring_kernels_fill_a_card() {
    on_all_cards(|arch| {
        let mut found = check(&Source::bandwidth(), arch, &["copy", "triad"], FULL);
        found.extend(check(&Source::fma(), arch, &["fma_peak"], FULL));
        found
    });
}

/// The text of a kernel, up to the next one.
fn body<'a>(ptx: &'a str, kernel: &str) -> &'a str {
    let from = ptx.split_once(&format!(".entry {kernel}(")).unwrap().1;
    from.split(".entry").next().unwrap()
}

#[test]
fn memory_is_moved_16_bytes_at_a_time() {
    let ptx = Compiler::find().unwrap().compile(&Source::bandwidth(), ARCHS[1]).unwrap();
    for (kernel, arrays) in [("copy", 1), ("triad", 2)] {
        let words = || body(&ptx, kernel).split_whitespace();
        let of = |access: &'static str| words().filter(move |word| word.starts_with(access));
        // Four places at once, and once more for the places that are left over.
        assert_eq!((of("ld.global").count(), of("st.global").count()), (5 * arrays, 5), "{ptx}");
        assert!(of("ld.global").chain(of("st.global")).all(|access| access.contains(".v4.")), "{ptx}");
        // All is asked for before anything is written.
        let first_four = words().take_while(|word| !word.starts_with("st.global"));
        assert_eq!(first_four.filter(|word| word.starts_with("ld.global")).count(), 4 * arrays, "{ptx}");
    }
}

#[test]
fn nothing_but_fmas_is_computed_while_the_peak_is_measured() {
    let ptx = Compiler::find().unwrap().compile(&Source::fma(), ARCHS[1]).unwrap();
    let of = |operation: &str| body(&ptx, "fma_peak").matches(operation).count();
    // 8 rounds of 16 values, and once more for the rounds that are left over; beside them, the sum.
    assert_eq!((of("fma.rn.f32"), of("add.f32") + of("add.rn.f32"), of("mul")), (8 * 16 + 16, 15 + 1, 1));
}

/// Where all is aligned, AdamW reads and writes whole quads.
#[test]
fn adamw_moves_whole_quads() {
    let ptx = Compiler::find().unwrap().compile(&Source::adamw(Tiling::default()), ARCHS[1]).unwrap();
    let body = body(&ptx, "adamw_f32");
    let quads = Tiling::default().tile_size() as usize / 4;
    let of = |access: &str| {
        body.split_whitespace().filter(|word| word.starts_with(access) && word.contains(".v4.")).count()
    };
    assert_eq!((of("ld.global"), of("st.global")), (4 * quads, 3 * quads));
}
