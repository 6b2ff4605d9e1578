//! Permission rules, as users write them: `Bash(git log:*), Read`.

/// The rules of a comma-separated list. Commas within parentheses belong to a rule.
pub fn split_rules(rules: &str) -> Vec<String> {
    let mut depth = 0_usize;
    rules
        .split(|character| {
            match character {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            character == ',' && depth == 0
        })
        .map(|rule| rule.trim().to_owned())
        .filter(|rule| !rule.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_split_outside_of_parentheses() {
        assert_eq!(split_rules("Read, Edit,Bash"), ["Read", "Edit", "Bash"]);
        assert_eq!(
            split_rules("Bash(git log, git diff),Read"),
            ["Bash(git log, git diff)", "Read"]
        );
        assert_eq!(split_rules(" , "), [""; 0]);
        assert_eq!(split_rules("a),b"), ["a)", "b"]);
    }
}
