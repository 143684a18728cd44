//! The result of an agent's process: an answer, or the reason why there is none.

use super::{AgentOutput, End};
use crate::plan::time::read_seconds;

/// How long to wait for a limit whose end is unknown, in seconds.
const PAUSE: u64 = 60;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// The text of the answer, without a code fence around it.
    Text(String),
    /// The agent has nothing to change in the text.
    Converged,
    Nothing,
    TimedOut,
    /// The agent's usage limit is reached; it ends in this many seconds.
    Limited(u64),
    /// The agent failed, and another try would fail, too.
    Failed(String),
    Interrupted,
}

/// Checks the exit code first, because a successful answer may itself be a text about rate limits.
pub(super) fn read_reply(asked: &AgentOutput) -> Reply {
    match &asked.end {
        End::Interrupted => Reply::Interrupted,
        End::TimedOut => Reply::TimedOut,
        End::TooMuch => Reply::Failed("the output of the agent is too long".to_owned()),
        End::NotStarted(why) => Reply::Failed(format!("the agent could not be started: {why}")),
        End::Exited(0) => text(&asked.stdout),
        End::Exited(code) => {
            let both = format!("{}\n{}", asked.stdout, asked.stderr);
            match limit(&both) {
                Some(seconds) => Reply::Limited(seconds),
                None => Reply::Failed(format!("the agent ended with exit code {code}{}", last_line(&both))),
            }
        }
    }
}

/// `: ` and the last line that is not empty, cut to 200 characters.
fn last_line(text: &str) -> String {
    let last = text.lines().rev().map(str::trim).find(|it| !it.is_empty());
    last.map(|it| format!(": {}", it.chars().take(200).collect::<String>())).unwrap_or_default()
}

fn text(stdout: &str) -> Reply {
    let text = unfenced(&stdout.replace("\r\n", "\n").replace('\u{feff}', ""));
    let first = text.lines().next().unwrap_or_default();
    let word = first.trim_matches(|c: char| c.is_whitespace() || "*`#:.".contains(c));
    match word {
        _ if text.is_empty() => Reply::Nothing,
        "CONVERGED" => Reply::Converged,
        _ if first.starts_with("CONVERGED:") => Reply::Converged,
        _ => Reply::Text(text.clone()),
    }
}

/// Reads the text below a first line `CONVERGED` as the answer. This is for passes without an earlier text.
pub(super) fn below_converged(stdout: &str) -> Reply {
    let text = unfenced(&stdout.replace("\r\n", "\n").replace('\u{feff}', ""));
    self::text(text.split_once('\n').map_or("", |(_, rest)| rest))
}

/// Removes a code fence that surrounds the whole text.
fn unfenced(text: &str) -> String {
    let text = text.trim();
    let fence: String = text.chars().take_while(|it| *it == '`').collect();
    let inner = (fence.len() >= 3).then(|| text.strip_suffix(fence.as_str())).flatten();
    let inner = inner.and_then(|it| it.split_once('\n')).map(|(_, inner)| inner);
    // A fence that ends before the last line is one of several, and belongs to the text.
    let is_whole = |it: &&str| !it.lines().any(|line| line.trim_end() == fence);
    inner.filter(is_whole).unwrap_or(text).trim().to_owned()
}

/// Words that agents and their services use for a usage limit.
const LIMITS: [&str; 8] = [
    "rate limit",
    "rate_limit",
    "ratelimit",
    "too many requests",
    "usage limit",
    "quota",
    "overloaded",
    "resource_exhausted",
];

/// The seconds until a limit ends; none if the text is not about a limit.
fn limit(text: &str) -> Option<u64> {
    let text = text.to_lowercase();
    let has_code = text.split(|c: char| !c.is_ascii_alphanumeric()).any(|it| it == "429");
    (has_code || LIMITS.iter().any(|it| text.contains(it))).then(|| pause(&text).unwrap_or(PAUSE).max(1))
}

/// The time that is named after `retry after` or similar words, in seconds.
fn pause(text: &str) -> Option<u64> {
    let behind = ["retry-after", "retry after", "retry_after", "try again in", "retry in", "resets in"];
    let at = behind.iter().find_map(|it| text.find(it).map(|at| at + it.len()))?;
    let rest = text[at..].trim_start_matches(|c: char| c == ':' || c == '"' || c == '=' || c.is_whitespace());
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let number: f64 = rest[..end].trim_end_matches('.').parse().ok()?;
    let unit: String = rest[end..].trim_start().chars().take_while(|it| it.is_ascii_lowercase()).collect();
    let factor = match unit.as_str() {
        "ms" | "milliseconds" => 0.001,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        _ => 1.0,
    };
    let whole = format!("{}s", (number * factor).ceil());
    read_seconds(&whole).and_then(|it| u64::try_from(it).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: i32, stdout: &str, stderr: &str, expected: &Reply) {
        let asked =
            AgentOutput { end: End::Exited(code), stdout: stdout.to_owned(), stderr: stderr.to_owned() };
        assert_eq!(read_reply(&asked), *expected, "{stdout}{stderr}");
    }

    fn text(it: &str) -> Reply {
        Reply::Text(it.to_owned())
    }

    #[test]
    fn an_answer_is_read_without_the_text_around_it() {
        check(0, "## Goal\r\n\r\nx  \n\n", "", &text("## Goal\n\nx"));
        check(0, "\u{feff}```markdown\n## Goal\n```\n", "", &text("## Goal"));
        check(0, "```\na\n```\nand\n```\nb\n```", "", &text("```\na\n```\nand\n```\nb\n```"));
        check(
            0,
            "Rate limits: 429 requests, retry after 3",
            "",
            &text("Rate limits: 429 requests, retry after 3"),
        );
        check(0, " \n\n", "noise", &Reply::Nothing);
        check(0, "```\n```", "", &Reply::Nothing);
    }

    #[test]
    fn converged_is_the_first_line_alone() {
        for it in [
            "CONVERGED",
            "CONVERGED\n\n## Goal\n",
            "**CONVERGED**",
            "CONVERGED: fine as it is",
            "```\nCONVERGED\n```",
        ] {
            check(0, it, "", &Reply::Converged);
        }
        check(0, "CONVERGED lines are drawn\n", "", &text("CONVERGED lines are drawn"));
        assert_eq!(below_converged("CONVERGED\n## Goal\n"), text("## Goal"));
        assert_eq!(below_converged("CONVERGED"), Reply::Nothing);
    }

    #[test]
    fn a_limit_is_not_a_failure_and_has_an_end() {
        check(1, "", "Error: 429 Too Many Requests", &Reply::Limited(60));
        check(1, "", "rate limit reached, try again in 20s", &Reply::Limited(20));
        check(1, "", "Retry-After: 7\nrate_limit_error", &Reply::Limited(7));
        check(1, "Usage limit. Resets in 2 hours.", "", &Reply::Limited(7200));
        check(1, "", "overloaded; retry after 1.5 minutes", &Reply::Limited(90));
        check(1, "", "rate limit, retry in 250 ms", &Reply::Limited(1));
        let why = "the agent ended with exit code 2: no such model";
        check(2, "half", "\nno such model\n\n", &Reply::Failed(why.to_owned()));
        check(2, "", "no such model\n", &Reply::Failed(why.to_owned()));
        check(
            1,
            "",
            "1429 tokens",
            &Reply::Failed("the agent ended with exit code 1: 1429 tokens".to_owned()),
        );
    }
}
