//! Sentences in lines of a terminal.

/// How wide sentences are in so wide a terminal: longer lines are hard to read.
pub fn prose(width: usize) -> usize {
    width.clamp(40, 100)
}

/// The text in lines of so many columns where its words allow it, the later ones indented by so many blanks.
pub fn wrap_at(text: &str, indent: usize, width: usize) -> String {
    let words = text.trim_start();
    broken(words.split(' '), text.len() - words.len(), indent, width, "")
}

/// What to run, in such lines: a command of ours, or in words what to do with a program of the reader's own.
pub fn wrap_told(text: &str, indent: usize, width: usize) -> String {
    let wrap = if text.trim_start().starts_with("stepledger ") { wrap_command } else { wrap_at };
    wrap(text, indent, width)
}

/// A command in such lines, as a shell takes them for one: words in single quotes stay whole, and a flag with its value.
fn wrap_command(text: &str, indent: usize, width: usize) -> String {
    let command = text.trim_start();
    let mut parts: Vec<String> = Vec::new();
    for word in shell_words(command) {
        match parts.last_mut() {
            Some(part) if is_flag(part) && !is_flag(word) => *part += &format!(" {word}"),
            _ => parts.push(word.to_owned()),
        }
    }
    broken(parts.iter().map(String::as_str), text.len() - command.len(), indent, width, " \\")
}

fn is_flag(part: &str) -> bool {
    part.starts_with("--") && !part.contains(' ')
}

/// The words of a command, as they are written.
fn shell_words(command: &str) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    command.split(move |c: char| {
        let taken_as_it_is = std::mem::replace(&mut escaped, false);
        match c {
            _ if taken_as_it_is => false,
            '\'' => {
                quoted = !quoted;
                false
            }
            // Within single quotes a backslash is one.
            '\\' => {
                escaped = !quoted;
                false
            }
            _ => c == ' ' && !quoted,
        }
    })
}

/// Lines of these words, the first after so many blanks, that end with `join` where they go on.
fn broken<'a>(
    words: impl Iterator<Item = &'a str>,
    first: usize,
    indent: usize,
    width: usize,
    join: &str,
) -> String {
    let (mut done, mut line) = (String::new(), " ".repeat(first));
    let mut begins = true;
    for word in words {
        if !begins && line.chars().count() + 1 + word.chars().count() > width - join.len() {
            done += &std::mem::replace(&mut line, " ".repeat(indent));
            done += join;
            done.push('\n');
        } else if !begins {
            line.push(' ');
        }
        line += word;
        begins = false;
    }
    done + &line
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: usize = 80;

    #[test]
    fn lines_stay_within_the_width_and_lose_nothing() {
        let text = "word ".repeat(60).trim_end().to_owned();
        let wrapped = wrap_at(&text, 4, WIDTH);
        assert!(wrapped.lines().count() == 4 && wrapped.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(wrapped.lines().skip(1).all(|line| line.starts_with("    word")));
        assert_eq!(wrapped.split_whitespace().count(), 60);
        let long = "x".repeat(100);
        assert_eq!(wrap_at(&long, 2, WIDTH), long);
        assert_eq!(wrap_at("  two in front", 4, WIDTH), "  two in front");
    }

    #[test]
    fn a_command_goes_on_in_the_next_line_for_a_shell_too() {
        let command = format!("  stepledger run{}", " --layers 3".repeat(12));
        let wrapped = wrap_command(&command, 4, WIDTH);
        assert!(wrapped.lines().all(|line| line.chars().count() <= WIDTH), "{wrapped}");
        assert!(wrapped.lines().skip(1).all(|line| line.starts_with("    --layers 3")), "{wrapped}");
        let words = wrapped.replace("\\\n", "");
        assert!(words.split_whitespace().eq(command.split_whitespace()));
    }

    #[test]
    fn what_is_told_in_words_is_no_command() {
        let words = "  my loop again, with batch 15, checkpoint none";
        assert_eq!(wrap_told(words, 4, 40), "  my loop again, with batch 15,\n    checkpoint none");
        let command = "  stepledger run --batch 24 --checkpoint none";
        assert_eq!(wrap_told(command, 4, 40), wrap_command(command, 4, 40));
    }

    #[test]
    fn a_quoted_word_of_a_command_stays_whole() {
        let word = r"'it'\''s in a folder with blanks.txt'";
        let command = format!("stepledger run --batch 24 --data {word} --layers 3");
        assert!(shell_words(&command).eq([
            "stepledger",
            "run",
            "--batch",
            "24",
            "--data",
            word,
            "--layers",
            "3"
        ]));
        // Wherever it is broken, never within.
        for width in 40..=100 {
            let wrapped = wrap_command(&command, 4, width);
            assert!(wrapped.contains(word) && wrapped.replace(" \\\n   ", "") == command, "{wrapped}");
        }
    }
}
