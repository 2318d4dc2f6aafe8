//! Who may know whom. A folder may use what its row names, of the crate and of other crates, and nothing else.

use crate::harness::{ROOT, files, no_complaints, short, text};
use std::path::Path;

struct Layer {
    path: &'static str,
    /// Modules of the crate; `host::lock` allows that one file of a layer only.
    crates: &'static [&'static str],
    others: &'static [&'static str],
}

/// The table. The sideways edges go from the store to four files of the host: to make and open a store takes the
/// kernel's locks, careful files, random ids and the time it was made at.
const LAYERS: &[Layer] = &[
    // The errors of the system, of which it knows the numbers.
    Layer { path: "src/error.rs", crates: &[], others: &["rustix"] },
    Layer { path: "src/fault.rs", crates: &[], others: &["rustix"] },
    Layer { path: "src/domain", crates: &["domain", "error"], others: &["serde", "serde_json", "jiff", "sha2"] },
    Layer {
        path: "src/store",
        crates: &["store", "domain", "error", "fault", "host::lock", "host::dir", "host::random", "host::clock"],
        others: &["rusqlite", "serde", "serde_json", "sha2", "rustix", "tracing"],
    },
    Layer {
        path: "src/host",
        crates: &["host", "domain", "error", "fault"],
        others: &["fs2", "sysinfo", "duct", "rustix", "libc", "signal_hook", "serde", "serde_json", "toml", "tracing"],
    },
    Layer {
        path: "src/worker",
        crates: &["worker", "host", "domain", "error"],
        others: &["serde", "serde_json", "tracing"],
    },
    Layer {
        path: "src/ops",
        crates: &["ops", "worker", "store", "host", "domain", "error", "fault"],
        others: &["serde", "serde_json", "tracing"],
    },
    Layer {
        path: "src/cli",
        crates: &["cli", "ops", "worker", "store", "host", "domain", "error", "fault"],
        others: &["clap", "serde", "serde_json", "tracing_subscriber"],
    },
    Layer { path: "bin", crates: &[], others: &["ares"] },
    // It plays a foreign program, and does what one does.
    Layer {
        path: "src/worker/synthetic",
        crates: &["worker", "host", "domain", "error"],
        others: &["serde_json", "rustix", "signal_hook", "jiff", "sha2"],
    },
];

/// Of the standard library, what the domain must not use: everything that asks or changes the world.
const IMPURE: &[&str] =
    &["std::fs", "std::process", "std::env", "std::net", "std::io", "std::thread", "SystemTime", "Instant"];

/// The source without comments and without its tests, which may use what they like.
fn code(text: &str) -> String {
    let body = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    body.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Every path after `crate::`, two names deep, groups opened.
fn crate_paths(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with('$') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        let tree = &rest[..end_of_tree(rest)];
        open(tree, "", &mut paths);
    }
    paths
}

/// Where a path or a group ends.
fn end_of_tree(text: &str) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth <= 1 => return at + depth,
            '}' => depth -= 1,
            _ if depth > 0 || c.is_alphanumeric() || c == '_' || c == ':' => {}
            _ => return at,
        }
    }
    text.len()
}

fn open(tree: &str, prefix: &str, paths: &mut Vec<String>) {
    let Some(group) = tree.find('{') else {
        let path = format!("{prefix}{tree}");
        return paths.push(path.split("::").take(2).collect::<Vec<_>>().join("::"));
    };
    let prefix = format!("{prefix}{}", &tree[..group]);
    let inner = tree[group + 1..].strip_suffix('}').unwrap_or(&tree[group + 1..]);
    let (mut depth, mut start) = (0, 0);
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part: String = inner[start..at].split_whitespace().collect();
                if !part.is_empty() {
                    open(&part, &prefix, paths);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

fn allowed(path: &str, layer: &Layer) -> bool {
    layer.crates.iter().any(|name| path == *name || path.strip_prefix(name).is_some_and(|rest| rest.starts_with("::")))
}

fn dependencies() -> Vec<String> {
    let cargo = text("Cargo.toml");
    let part = cargo.split("[dependencies]").nth(1).and_then(|rest| rest.split("\n[").next()).expect("dependencies");
    let names = part.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name.replace('-', "_"));
    names.chain(["ares".to_owned(), "libc".to_owned()]).collect()
}

fn uses(code: &str, name: &str) -> bool {
    let before = |at: usize| code[..at].chars().next_back();
    code.match_indices(&format!("{name}::"))
        .any(|(at, _)| before(at).is_none_or(|c| !c.is_alphanumeric() && c != '_' && !code[..at].ends_with("::")))
}

#[test]
fn each_layer_knows_only_what_is_below_it() {
    let dependencies = dependencies();
    let mut complaints = Vec::new();
    for layer in LAYERS {
        if !Path::new(ROOT).join(layer.path).exists() {
            continue;
        }
        let inner = |path: &str| LAYERS.iter().any(|l| l.path.len() > layer.path.len() && path.starts_with(l.path));
        for path in files(&[layer.path], &[".rs"]).into_iter().filter(|path| !inner(&short(path))) {
            let (name, code) = (short(&path), code(&text(&path)));
            let crates = crate_paths(&code);
            let bad = crates.iter().filter(|path| !allowed(path, layer));
            complaints.extend(bad.map(|path| format!("{name}: must not use crate::{path}")));
            let bad = dependencies.iter().filter(|other| !layer.others.contains(&other.as_str()) && uses(&code, other));
            complaints.extend(bad.map(|other| format!("{name}: must not use {other}")));
            if code.contains("super::super") {
                complaints.push(format!("{name}: super::super hides where it leads; write crate::"));
            }
            if layer.path == "src/domain" {
                let bad = IMPURE.iter().filter(|what| code.contains(**what));
                complaints.extend(bad.map(|what| format!("{name}: the domain must not use {what}")));
            }
        }
    }
    no_complaints(&complaints);
}

#[test]
fn every_file_has_a_layer() {
    let listed =
        |name: &str| LAYERS.iter().any(|layer| name == layer.path || name.starts_with(&format!("{}/", layer.path)));
    let missing: Vec<String> = files(&["src", "bin"], &[".rs"])
        .iter()
        .map(|path| short(path))
        .filter(|n| n != "src/lib.rs" && !listed(n))
        .collect();
    assert!(missing.is_empty(), "in no layer: {missing:?}");
}

#[test]
fn one_door_to_each_foreign_thing() {
    let doors = [
        ("fs2", "src/host/lock.rs"),
        ("sysinfo", "src/host/process.rs"),
        ("rusqlite", "src/store/"),
        ("duct", "src/host/spawn.rs"),
        ("clap", "src/cli/"),
        ("tracing_subscriber", "src/cli/context.rs"),
    ];
    let mut complaints = Vec::new();
    for path in files(&["src", "bin"], &[".rs"]) {
        let (name, code) = (short(&path), code(&text(&path)));
        let bad = doors.iter().filter(|(other, door)| !name.starts_with(door) && uses(&code, other));
        complaints.extend(bad.map(|(other, door)| format!("{name}: {other} is used in {door} only")));
    }
    no_complaints(&complaints);
}

#[test]
fn paths_are_found_in_every_form() {
    let code = code(
        "use crate::error::{Code, Result};\nuse crate::{domain::{id::JobId, time}, ops};\n// crate::x\nlet y = crate::host::clock::now(); $crate::z",
    );
    let paths = crate_paths(&code);
    assert_eq!(paths, ["error::Code", "error::Result", "domain::id", "domain::time", "ops", "host::clock"]);
    assert!(uses("a = fs2::x", "fs2") && !uses("xfs2::y", "fs2") && !uses("a::fs2::y", "fs2"));
}
