//! Titles: a readable one at once from the prompt, and a better one from a model.

/// The maximum length of a title that a client sets.
pub(crate) const MAX_TITLE: usize = 200;

/// The maximum length of a title that we create.
const MAX_CHARACTERS: usize = 50;

/// A title on one line, without control characters: it is shown in lists and in terminals.
pub(crate) fn on_one_line(title: &str) -> String {
    title
        .split(|character: char| character.is_whitespace() || character.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// A title that came with another command, which must not fail because of the title's length.
pub(crate) fn title_as_given(title: &str) -> String {
    cut(on_one_line(title), MAX_TITLE)
}

/// The first line of the prompt that contains text, cut at a word if possible.
pub fn title_from_prompt(prompt: &str) -> String {
    let line = prompt
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("");
    let line = line.trim_start_matches(['#', '>', '-', '*', ' ']);
    cut(on_one_line(line), MAX_CHARACTERS)
}

fn cut(title: String, most: usize) -> String {
    if title.chars().count() <= most {
        return title;
    }
    let cut: String = title.chars().take(most - 1).collect();
    // A space in the last third is a better place to cut than the middle of a word; Chinese has none.
    let end = cut
        .rfind(' ')
        .filter(|&at| at * 3 > cut.len() * 2)
        .unwrap_or(cut.len());
    format!("{}…", cut[..end].trim_end())
}

/// The title in a model's answer, `{"title": …}`, if it is one.
pub fn title_from_model(answer: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Answer {
        title: Option<String>,
    }
    let answer: Answer = serde_json::from_str(answer).ok()?;
    let title = title_from_prompt(answer.title?.trim_matches(['"', '\'', ' ']));
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::{MAX_TITLE, title_as_given, title_from_model, title_from_prompt};

    #[test]
    fn short_prompts_are_their_own_title() {
        assert_eq!(
            title_from_prompt("  Fix the login page\nand more"),
            "Fix the login page"
        );
        assert_eq!(title_from_prompt("\n\n# 修复登录页面"), "修复登录页面");
        assert_eq!(title_from_prompt("   "), "");
    }

    #[test]
    fn a_title_is_one_line_of_bounded_length() {
        assert_eq!(title_as_given(" a\nb\u{1b}[31m\u{7}\0z\t "), "a b [31m z");
        assert_eq!(title_as_given("\0 \n"), "");
        assert_eq!(title_as_given(&"修".repeat(10_000)).chars().count(), MAX_TITLE);
        assert_eq!(title_from_prompt("\u{1b}[31mred"), "[31mred");
    }

    #[test]
    fn long_prompts_are_cut_between_words() {
        let title =
            title_from_prompt("Please look at every file in this repository and tell me what each one does");
        assert_eq!(title, "Please look at every file in this repository and…");
        let title = title_from_prompt(&"修".repeat(80));
        assert_eq!(title.chars().count(), 50);
    }

    #[test]
    fn a_models_answer_is_a_title_or_nothing() {
        assert_eq!(
            title_from_model(r#"{"title":"\"Fix the login page\""}"#).as_deref(),
            Some("Fix the login page")
        );
        for nothing in [r#"{"title":null}"#, r#"{"title":"  "}"#, "{}", "[]"] {
            assert_eq!(title_from_model(nothing), None, "{nothing}");
        }
    }
}
