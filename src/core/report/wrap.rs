//! Sentences in lines of a terminal.

const WIDTH: usize = 80;

/// The text in lines of at most 80 columns where its words allow it, the later ones indented.
pub fn wrap(text: &str, indent: usize) -> String {
    let mut lines = vec![String::new()];
    let mut width = 0;
    for word in text.split(' ') {
        let letters = word.chars().count();
        if width > 0 && width + 1 + letters > WIDTH {
            lines.push(" ".repeat(indent));
            width = indent;
        } else if width > 0 {
            push(&mut lines, " ");
            width += 1;
        }
        push(&mut lines, word);
        width += letters;
    }
    lines.join("\n")
}

fn push(lines: &mut [String], text: &str) {
    if let Some(line) = lines.last_mut() {
        line.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_within_the_width_and_lose_nothing() {
        let text = "word ".repeat(60).trim_end().to_owned();
        let wrapped = wrap(&text, 4);
        assert!(wrapped.lines().count() == 4 && wrapped.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(wrapped.lines().skip(1).all(|line| line.starts_with("    word")));
        assert_eq!(wrapped.split_whitespace().count(), 60);
        let long = "x".repeat(100);
        assert_eq!(wrap(&long, 2), long);
    }
}
