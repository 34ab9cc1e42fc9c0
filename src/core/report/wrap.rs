//! Sentences in lines of a terminal.

const WIDTH: usize = 80;

/// The text in lines of at most 80 columns where its words allow it, the later ones indented by so many blanks.
pub fn wrap(text: &str, indent: usize) -> String {
    wrap_to(text, indent, WIDTH)
}

/// [`wrap`] at another width.
pub fn wrap_to(text: &str, indent: usize, width: usize) -> String {
    let words = text.trim_start();
    let (mut done, mut line) = (String::new(), " ".repeat(text.len() - words.len()));
    let mut begins = true;
    for word in words.split(' ') {
        if !begins && line.chars().count() + 1 + word.chars().count() > width {
            done += &std::mem::replace(&mut line, " ".repeat(indent));
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

    #[test]
    fn lines_stay_within_the_width_and_lose_nothing() {
        let text = "word ".repeat(60).trim_end().to_owned();
        let wrapped = wrap(&text, 4);
        assert!(wrapped.lines().count() == 4 && wrapped.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(wrapped.lines().skip(1).all(|line| line.starts_with("    word")));
        assert_eq!(wrapped.split_whitespace().count(), 60);
        let long = "x".repeat(100);
        assert_eq!(wrap(&long, 2), long);
        assert_eq!(wrap("  two in front", 4), "  two in front");
    }
}
