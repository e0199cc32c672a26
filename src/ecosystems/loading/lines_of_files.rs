//! The lines that may name each of many files, found in one pass over the lines.
use std::collections::BTreeMap;

use crate::ecosystems::base_lines::{FoundLine, finder_of};
use crate::ecosystems::loading::LoadedName;
use crate::error::Result;

impl LoadedName<'_> {
    /// Texts of which every line that loads or names the file has at least one, in any case.
    pub fn texts(&self) -> Vec<String> {
        let names = [self.module.to_owned()].into_iter().chain(self.constant.clone());
        self.searched().chain(self.searched_beside()).chain(names).collect()
    }
}

/// For each file, the lines that have one of its texts, in any case. `texts` are those of each file.
///
/// Fails if the texts are too long for a search.
pub fn lines_of_files(
    texts: impl Iterator<Item = Vec<String>>,
    lines: &[FoundLine],
) -> Result<Vec<Vec<&FoundLine>>> {
    let mut files_of_texts: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut found = Vec::new();
    for (file, texts) in texts.enumerate() {
        for text in texts {
            files_of_texts.entry(text.to_lowercase()).or_default().push(file);
        }
        found.push(Vec::new());
    }
    if files_of_texts.is_empty() {
        return Ok(found);
    }
    let finder = finder_of(files_of_texts.keys())?;
    let files_of_texts: Vec<Vec<usize>> = files_of_texts.into_values().collect();
    // The last line of which a file has been given.
    let mut last = vec![usize::MAX; found.len()];
    for (at, line) in lines.iter().enumerate() {
        for place in finder.find_overlapping_iter(&line.1.to_lowercase()) {
            for file in &files_of_texts[place.pattern().as_usize()] {
                if last[*file] != at {
                    last[*file] = at;
                    found[*file].push(line);
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_gets_the_lines_that_have_one_of_its_texts() {
        let lines = ["use App\\Calc;", "calc, sum", "SUM of sums", "nothing"];
        let lines: Vec<FoundLine> =
            lines.iter().map(|line| ("a".to_owned(), (*line).into())).collect();
        let texts = [vec!["calc".to_owned(), "App".to_owned()], vec!["Sum".to_owned()], vec![]];
        let found = lines_of_files(texts.into_iter(), &lines).expect("the texts are short");
        let found: Vec<Vec<&str>> = found
            .iter()
            .map(|lines| lines.iter().map(|(_, line)| line.as_str()).collect())
            .collect();
        let expected: [&[&str]; 3] =
            [&["use App\\Calc;", "calc, sum"], &["calc, sum", "SUM of sums"], &[]];
        assert_eq!(found, expected);
    }
}
