//! A person's own arguments for claude, after `--`.

/// Removes every `--settings` and returns the last one: claude uses only that.
pub fn take_settings(arguments: &mut Vec<String>) -> Option<String> {
    let mut taken = None;
    let mut rest = Vec::new();
    let mut words = std::mem::take(arguments).into_iter();
    while let Some(word) = words.next() {
        if word == "--" {
            rest.push(word);
            rest.extend(words.by_ref());
        } else if word == "--settings" {
            taken = words.next();
        } else if let Some(value) = word.strip_prefix("--settings=") {
            taken = Some(value.to_owned());
        } else {
            rest.push(word);
        }
    }
    *arguments = rest;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_settings_count_and_the_other_words_stay() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let mut arguments = words("-x --settings a.json --y --settings={} z -- --settings b");
        assert_eq!(take_settings(&mut arguments).as_deref(), Some("{}"));
        assert_eq!(arguments, words("-x --y z -- --settings b"));
        assert_eq!(take_settings(&mut words("-x")), None);
    }
}
