//! Tasks: the ids that people give to the purposes of runs and candidates, such as the number of an issue.

/// The longest id, in characters.
const LONGEST: usize = 200;

/// True if the text may be a task's id: 1 to 200 characters in one line.
pub fn is_task(text: &str) -> bool {
    !text.trim().is_empty()
        && text.chars().count() <= LONGEST
        && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_is_one_line_of_at_most_200_characters() {
        assert!(is_task(&"é".repeat(200)));
        for bad in ["", " ", "two\nlines", &"é".repeat(201)] {
            assert!(!is_task(bad), "{bad}");
        }
    }
}
