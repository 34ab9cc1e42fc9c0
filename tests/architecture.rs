//! Holds the code to the table in `src/ARCHITECTURE.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Crates that only the modules which the table names for them may use.
const GUARDED: &[&str] = &[
    "tch",
    "torch_sys",
    "cudarc",
    "nvtx",
    "libloading",
    "parquet",
    "plotters",
    "rustix",
    "arrow_array",
    "arrow_schema",
    "clap",
    "anyhow",
    "indicatif",
    "comfy_table",
    "signal_hook",
    "statrs",
    "terminal_size",
    "tracing",
    "tracing_subscriber",
];

/// What prints.
const PRINTING: &[&str] = &["println!", "eprintln!", "print!(", "eprint!(", "stdout()", "stderr()"];

struct Permit {
    ours: BTreeSet<String>,
    outside: BTreeSet<String>,
}

fn table() -> BTreeMap<String, Permit> {
    let text = fs::read_to_string(Path::new(ROOT).join("src/ARCHITECTURE.md")).unwrap();
    let rows = text.lines().skip_while(|line| !line.starts_with("| module |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let words =
        |cell: &str| cell.split(',').map(|word| word.trim().to_owned()).filter(|w| !w.is_empty()).collect();
    rows.map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').collect();
        let permit = Permit { ours: words(cells[1]), outside: words(cells[2]) };
        (cells[0].trim().to_owned(), permit)
    })
    .collect()
}

/// A module lies in the half that knows no libtorch, or in the other one.
fn folder(module: &str) -> PathBuf {
    let core = Path::new(ROOT).join("src/core").join(module);
    if core.exists() { core } else { Path::new(ROOT).join("src").join(module) }
}

fn folders_in(path: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(Path::new(ROOT).join(path)).unwrap().map(|entry| entry.unwrap());
    let folders = entries.filter(|entry| entry.path().is_dir());
    folders.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// The Rust files of one module, with their code: comments, docs and tests left out.
fn sources(module: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder(module)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, code(&text)));
            }
        }
    }
    assert!(!found.is_empty(), "module {module} of the table has no files");
    found
}

fn code(text: &str) -> String {
    let until_tests = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
    until_tests.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The names of our modules that follow `crate::` (or the other half's name), also in a braced list.
fn used_of_ours(code: &str, modules: &BTreeSet<String>) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for part in code.replace("stepledger_core::", "crate::").split("crate::").skip(1) {
        let list = part.strip_prefix('{').and_then(|rest| rest.split('}').next());
        let heads = list.map_or_else(|| vec![part], |list| list.split(',').collect());
        for head in heads {
            let name: String = head.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            used.extend(modules.get(&name).cloned());
        }
    }
    used
}

fn names_crate(code: &str, name: &str) -> bool {
    code.match_indices(&format!("{name}::")).any(|(at, _)| {
        !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == ':')
    })
}

#[test]
fn the_table_names_every_module() {
    let in_table: BTreeSet<String> = table().into_keys().collect();
    let mut in_tree = &folders_in("src") | &folders_in("src/core");
    in_tree.remove("core");
    assert_eq!(in_table, in_tree);
}

#[test]
fn modules_use_only_what_the_table_allows() {
    let table = table();
    let modules: BTreeSet<String> = table.keys().cloned().collect();
    for (module, permit) in &table {
        for (path, code) in sources(module) {
            for used in used_of_ours(&code, &modules) {
                let allowed =
                    used == *module || permit.ours.contains(&used) || permit.ours.contains("everything");
                assert!(allowed, "{} uses {used}, which {module} may not", path.display());
            }
        }
    }
}

#[test]
fn outside_crates_stay_where_the_table_puts_them() {
    for (module, permit) in &table() {
        for (path, code) in sources(module) {
            for name in GUARDED.iter().filter(|name| names_crate(&code, name)) {
                let family = if name.starts_with("arrow") { "arrow" } else { name };
                let family = if family == "torch_sys" { "tch" } else { family };
                assert!(
                    permit.outside.contains(family),
                    "{} uses {name}, which {module} may not",
                    path.display()
                );
            }
            if !permit.outside.contains("printing") {
                let prints = PRINTING.iter().find(|&&word| code.contains(word));
                assert!(
                    prints.is_none(),
                    "{} prints ({}), which {module} may not",
                    path.display(),
                    prints.unwrap()
                );
            }
        }
    }
}

/// They panic where nobody reads what they print, and a run would end with its messages.
#[test]
fn nothing_prints_with_a_macro_that_panics() {
    for module in table().keys() {
        for (path, code) in sources(module) {
            let panics = PRINTING.iter().find(|&&word| word.contains('!') && code.contains(word));
            assert_eq!(
                panics,
                None,
                "{}: use cli::note, or write to stdout and pass the error on",
                path.display()
            );
        }
    }
}

/// cudarc's functions return a Rust enum, and a driver that is newer returns what is none of it. Its types are named alike in
/// capitals.
#[test]
fn nothing_calls_the_driver_by_way_of_cudarc() {
    let mut named = 0;
    for (path, code) in sources("device") {
        for part in code.split("cudarc::").skip(1) {
            let names = part.split(';').next().unwrap_or_default().strip_prefix("driver::sys::");
            let names = names.unwrap_or_else(|| panic!("{}: cudarc::{part}", path.display()));
            for name in names.split(['{', '}', ',']).map(str::trim).filter(|name| !name.is_empty()) {
                assert!(name.starts_with("CU"), "{} uses cudarc's {name}", path.display());
                named += 1;
            }
        }
    }
    assert!(named > 0, "nothing uses cudarc any more");
}

#[test]
fn pure_modules_forbid_unsafe_code() {
    for module in
        ["record", "stats", "theory", "rules", "ledger", "store", "sweep", "plan", "compare", "report"]
    {
        let text = fs::read_to_string(folder(module).join("mod.rs")).unwrap();
        assert!(text.contains("#![forbid(unsafe_code)]"), "{module}/mod.rs does not forbid unsafe code");
    }
}

#[test]
fn every_unsafe_block_says_why_it_is_sound() {
    for module in ["device", "probe", "train", "cli", "engine"] {
        for (path, _) in sources(module) {
            let text = fs::read_to_string(&path).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            for (number, line) in lines.iter().enumerate().filter(|(_, line)| line.contains("unsafe {")) {
                let said =
                    lines[number.saturating_sub(6)..number].iter().any(|above| above.contains("// SAFETY:"));
                assert!(said, "{}:{} has no // SAFETY:\n{line}", path.display(), number + 1);
            }
        }
    }
}
