//! The files that a run reads, as its configuration has them. A path says where a file was, and in another checkout the
//! same file lies elsewhere; so what it held is kept beside it, and runs are told apart by that.

use serde_json::{Map, Value};

/// Fields of a configuration that are paths of files which the run reads.
pub const FILES: [&str; 2] = ["data", "init"];

/// The field beside one of [`FILES`] that says what the file held.
pub fn content_field(file: &str) -> String {
    format!("{file}_content")
}

/// The one of [`FILES`] that this field says the content of.
pub fn file_of(content_field: &str) -> Option<&str> {
    content_field.strip_suffix("_content").filter(|file| FILES.contains(file))
}

/// Puts what the files of these settings held in the place of their paths, which are of no effect; where one of them does
/// not say it, the files' names, by which runs of the toy models that were made before are known. What a program of one's own
/// calls by these names, and says no content of, stays as it is.
pub fn by_content(settings: &mut [Map<String, Value>]) {
    for file in FILES {
        let field = content_field(file);
        let known = settings.iter().filter(|setting| setting.get(file).is_some_and(Value::is_string));
        let all_say_it = known.clone().all(|setting| setting.get(&field).is_some_and(Value::is_string));
        for setting in settings.iter_mut() {
            let is_ours = setting.contains_key(&field) || is_toy(setting);
            let content = setting.shift_remove(&field).filter(|_| all_say_it);
            let Some(path) = setting.get_mut(file).filter(|path| path.is_string()) else { continue };
            match content {
                Some(content) => *path = content,
                None if is_ours => *path = name(path),
                None => (),
            }
        }
    }
}

/// By what a run calls itself, as theory has the models' words.
fn is_toy(setting: &Map<String, Value>) -> bool {
    const TOYS: [&str; 2] = ["gpt", "mlp"];
    let word = |field: &str| setting.get(field).and_then(Value::as_str);
    let program = word("program").filter(|program| TOYS.contains(program));
    program.is_some() && word("model").is_none_or(|model| Some(model) == program)
}

fn name(path: &Value) -> Value {
    let path = path.as_str().unwrap_or_default();
    path.rsplit('/').next().unwrap_or(path).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Whether the `data` of two settings is the same then.
    fn same(one: Value, other: Value) -> bool {
        let mut both = [one, other].map(|setting| setting.as_object().unwrap().clone());
        by_content(&mut both);
        assert!(both.iter().all(|setting| !setting.contains_key("data_content")));
        both[0].get("data") == both[1].get("data")
    }

    #[test]
    fn files_are_the_same_that_hold_the_same() {
        let known = |path: &str, content: &str| json!({"data": path, "data_content": content});
        assert!(same(known("/a/book.txt", "3 bytes"), known("/b/book.txt", "3 bytes")));
        assert!(!same(known("/a/book.txt", "3 bytes"), known("/a/book.txt", "4 bytes")));
        assert!(!same(known("/a/book.txt", "3 bytes"), json!({"data": null})));
        assert!(same(json!({"data": null}), json!({"data": null})));
    }

    #[test]
    fn without_what_they_held_they_are_known_by_their_names() {
        let old = |path: &str| json!({"data": path, "model": "gpt", "program": "gpt"});
        let new = json!({"data": "/c/book.txt", "data_content": "3 bytes", "model": "gpt", "program": "gpt"});
        assert!(same(old("/a/book.txt"), old("/b/book.txt")) && same(old("book.txt"), new.clone()));
        assert!(!same(old("/a/book.txt"), old("/a/other.txt")) && !same(old("other.txt"), new));
        // What it means by it only that program knows.
        let own = |data: &str| json!({"data": data, "program": "mine"});
        assert!(!same(own("cats/train"), own("dogs/train")) && same(own("cats/train"), own("cats/train")));
    }
}
