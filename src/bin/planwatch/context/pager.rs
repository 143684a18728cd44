//! Chooses the pager for long output on a terminal, from the environment.

/// How git starts `less`: it ends at once if everything fits, keeps colours, and leaves the text on the terminal.
const DEFAULT: &str = "less -FRX";

/// What the environment says about pagers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PagerSettings {
    /// `PLANWATCH_PAGER`. If it is set but empty, this is the empty text.
    pub(super) own: Option<String>,
    /// `PAGER`; for `log` and `diff`, `GIT_PAGER` if that is set. This can be the empty text, too.
    pub(super) common: Option<String>,
    /// `TERM`.
    pub(super) terminal: Option<String>,
    /// A person uses the terminal: standard input and output are terminals, and `PLANWATCH_STEP` is not set.
    pub(super) is_person: bool,
}

/// The words that start the pager; `None` if the answer is printed directly.
///
/// An empty name and `cat` mean that no pager is wanted, as for git.
pub(super) fn words(settings: &PagerSettings) -> Option<Vec<String>> {
    let is_dumb = settings.terminal.as_deref().is_none_or(|it| it.is_empty() || it == "dumb");
    if !settings.is_person || is_dumb {
        return None;
    }
    let named = settings.own.as_deref().or(settings.common.as_deref()).unwrap_or(DEFAULT).trim();
    if named.is_empty() || named == "cat" {
        return None;
    }
    // A command with an unclosed quote is kept whole: it cannot be started, and the error names it.
    Some(shell_words::split(named).unwrap_or_else(|_| vec![named.to_owned()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(own: Option<&str>, common: Option<&str>, expected: Option<&[&str]>) {
        let text = |it: Option<&str>| it.map(str::to_owned);
        let settings = PagerSettings {
            own: text(own),
            common: text(common),
            terminal: text(Some("xterm")),
            is_person: true,
        };
        let expected = expected.map(|it| it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        assert_eq!(words(&settings), expected, "{settings:?}");
    }

    #[test]
    fn the_own_variable_wins_then_the_common_one_then_less() {
        check(None, None, Some(&["less", "-FRX"]));
        check(None, Some("more"), Some(&["more"]));
        check(Some("bat --style 'plain x'"), Some("more"), Some(&["bat", "--style", "plain x"]));
        check(Some("broken 'quote"), None, Some(&["broken 'quote"]));
    }

    #[test]
    fn an_empty_name_and_cat_mean_no_pager() {
        check(Some(""), Some("more"), None);
        check(Some("cat"), None, None);
        check(None, Some(" "), None);
    }

    #[test]
    fn only_a_person_on_a_capable_terminal_gets_a_pager() {
        let capable =
            PagerSettings { terminal: Some("xterm".to_owned()), is_person: true, ..PagerSettings::default() };
        assert!(words(&capable).is_some());
        assert_eq!(words(&PagerSettings { is_person: false, ..capable.clone() }), None);
        assert_eq!(words(&PagerSettings { terminal: Some("dumb".to_owned()), ..capable.clone() }), None);
        assert_eq!(words(&PagerSettings { terminal: None, ..capable }), None);
    }
}
