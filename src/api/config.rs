//! `planwatch.toml`: every key is optional, and mistakes in the file are reported but not fatal.

use std::net::SocketAddr;

use crate::api::address::read_address;
use crate::api::agent_config::{AgentConfig, Agents, PromptBy};
use crate::api::sync_config::SyncConfig;
use crate::plan::model::Order;
use crate::plan::problem::{Code, Problem};
use crate::plan::time;
use crate::plan::words::{PlanStatus, StepStatus, Words, nearest};

/// The name of the configuration file. The nearest one at or above the working directory is used. Directories above the
/// repository or the home directory are not searched.
pub const CONFIG_FILE: &str = "planwatch.toml";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// The plans directory, relative to the directory of the configuration file.
    pub plans_dir: Option<String>,
    pub by: Option<String>,
    /// Days without activity after which a step counts as stale.
    pub stale_days: Option<u32>,
    /// The duration of a claim's lease in seconds.
    pub lease: Option<i64>,
    /// The number of tries after which a step counts as failed.
    pub max_attempts: Option<u32>,
    /// The order of steps in plans that `new` makes.
    pub order: Option<Order>,
    /// Additional words for statuses.
    pub words: Words,
    /// The agents that can work on steps, by name.
    pub agents: Agents,
    /// The address on which the HTTP server listens if the command line names none. It is always a loopback address.
    pub http_address: Option<SocketAddr>,
    /// The template of commit subjects, with the placeholders `{plan}`, `{step}`, `{status}` and `{what}`.
    pub commit_template: Option<String>,
    /// The registry in which claims are shared with other machines; `None` if they are not shared.
    pub sync: Option<SyncConfig>,
}

/// The default number of days after which a step is stale.
pub const STALE_DAYS: u32 = 7;

/// The default duration of a lease in seconds.
pub const LEASE: i64 = 30 * 60;

/// The default number of tries after which a step counts as failed.
pub const MAX_ATTEMPTS: u32 = 3;

/// The keys that [`Config::read`] reads.
const KEYS: [&str; 11] = [
    "plans_dir",
    "by",
    "lease",
    "max_attempts",
    "stale_days",
    "order",
    "words",
    "agents",
    "http",
    "commit",
    "sync",
];

/// Keys that are ignored and not reported as unknown.
const OTHERS: [&str; 1] = ["types"];

const AGENT_KEYS: [&str; 5] = ["command", "prompt", "timeout", "idle", "cost"];

impl Config {
    pub fn stale_days(&self) -> u32 {
        self.stale_days.unwrap_or(STALE_DAYS)
    }

    pub(crate) fn stale_seconds(&self) -> i64 {
        i64::from(self.stale_days()) * 86_400
    }

    pub fn lease(&self) -> i64 {
        self.lease.unwrap_or(LEASE)
    }

    pub fn max_attempts(&self) -> u32 {
        self.max_attempts.unwrap_or(MAX_ATTEMPTS)
    }

    /// Reads a configuration. A value that cannot be read is reported as a problem of `path`, and its default applies.
    /// Reading stops at the first line that is not TOML.
    pub fn read(path: &str, text: &str) -> (Self, Vec<Problem>) {
        let mut reader = Reader { path, text, table: toml::Table::new(), problems: Vec::new() };
        match toml::from_str(text) {
            Ok(table) => reader.table = table,
            Err(error) => reader.salvage(&error),
        }
        reader.report_unknown();
        let order = reader.text("order");
        let order = order.and_then(|it| reader.order(&it));
        let config = Self {
            plans_dir: reader.text("plans_dir"),
            by: reader.text("by"),
            lease: reader.lease(),
            max_attempts: reader.number("max_attempts", 1, "a number of tries", "3"),
            stale_days: reader.number("stale_days", 0, "a number of days", "7"),
            order,
            words: reader.words(),
            agents: reader.agents(),
            http_address: reader.http_address(),
            commit_template: reader.commit_template(),
            sync: reader.sync(),
        };
        reader.problems.sort_unstable();
        (config, reader.problems)
    }
}

struct Reader<'a> {
    path: &'a str,
    text: &'a str,
    table: toml::Table,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    /// Reads the lines before a syntax error, so that the error does not discard the whole file.
    fn salvage(&mut self, error: &toml::de::Error) {
        let at = error.span().map_or(0, |it| it.start).min(self.text.len());
        let hint = "correct the line; the lines below it are not read until then";
        self.report(at, "this is not TOML".to_owned(), hint.to_owned());
        let line = self.text[..at].rfind('\n').map_or(0, |it| it + 1);
        self.table = toml::from_str(&self.text[..line]).unwrap_or_default();
    }

    fn report(&mut self, at: usize, message: String, hint: String) {
        self.report_as(Code::WrongType, at, message, hint);
    }

    fn report_as(&mut self, code: Code, at: usize, message: String, hint: String) {
        self.problems.push(Problem::at_byte(self.path, self.text.as_bytes(), at, code, message, hint));
    }

    /// The position of a key: the first line that begins with it, or else the start of the file.
    fn place(&self, key: &str) -> usize {
        let mut at = 0;
        for line in self.text.split_inclusive('\n') {
            if line.trim_start_matches(['[', ' ', '"', '\'']).starts_with(key) {
                return at;
            }
            at += line.len();
        }
        0
    }

    fn report_unknown(&mut self) {
        let is_known = |it: &String| KEYS.contains(&it.as_str()) || OTHERS.contains(&it.as_str());
        let unknown: Vec<_> = self.table.keys().filter(|it| !is_known(it)).cloned().collect();
        for key in unknown {
            let near = nearest(&key, KEYS.into_iter().chain(OTHERS));
            let hint = near.map_or_else(
                || format!("known keys: {}", KEYS.join(", ")),
                |it| format!("did you mean `{it}`?"),
            );
            self.report_as(Code::UnknownKey, self.place(&key), format!("the key `{key}` is not known"), hint);
        }
    }

    fn text(&mut self, key: &str) -> Option<String> {
        match self.table.get(key)?.clone() {
            toml::Value::String(text) => Some(text),
            _ => {
                self.report(self.place(key), format!("`{key}` is not a text"), "put it in quotes".to_owned());
                None
            }
        }
    }

    fn number(&mut self, key: &str, minimum: u32, what: &str, example: &str) -> Option<u32> {
        let number = self.table.get(key)?.as_integer().and_then(|it| u32::try_from(it).ok());
        let number = number.filter(|it| *it >= minimum);
        if number.is_none() {
            self.report(self.place(key), format!("`{key}` is not {what}"), format!("write it as {example}"));
        }
        number
    }

    fn lease(&mut self) -> Option<i64> {
        let text = self.text("lease")?;
        let lease = time::read_seconds(&text);
        if lease.is_none() {
            let message = format!("the lease `{text}` is not a span of time");
            self.report(self.place("lease"), message, "write it as \"30m\"".to_owned());
        }
        lease
    }

    /// Reads the agents. A field that cannot be read is reported, and its default applies.
    fn agents(&mut self) -> Agents {
        let Some(value) = self.table.get("agents") else { return Agents::new() };
        let Some(table) = value.as_table().cloned() else {
            let hint = "write a line `[agents.NAME]`".to_owned();
            self.report(self.place("agents"), "`agents` is not a table".to_owned(), hint);
            return Agents::new();
        };
        table.iter().map(|(name, value)| (name.clone(), self.agent(name, value))).collect()
    }

    fn agent(&mut self, name: &str, value: &toml::Value) -> AgentConfig {
        let at = self.place(&format!("agents.{name}"));
        let Some(table) = value.as_table() else {
            self.report(at, format!("`agents.{name}` is not a table"), "give it a `command`".to_owned());
            return AgentConfig::default();
        };
        let mut agent = AgentConfig::default();
        for (key, value) in table {
            let text = value.as_str();
            let span = || text.and_then(time::read_seconds);
            let is_read = match (key.as_str(), text) {
                ("command", Some(text)) => agent.command.replace(text.to_owned()).is_none(),
                ("cost", Some(text)) => agent.cost.replace(text.to_owned()).is_none(),
                ("prompt", Some("stdin")) => agent.prompt.replace(PromptBy::Stdin).is_none(),
                ("prompt", Some("file")) => agent.prompt.replace(PromptBy::File).is_none(),
                ("timeout", _) => span().map(|it| agent.timeout.replace(it)).is_some(),
                ("idle", _) => span().map(|it| agent.idle.replace(it)).is_some(),
                _ => false,
            };
            if is_read {
                continue;
            }
            let (code, hint) = match key.as_str() {
                "prompt" => (Code::WrongType, "write \"stdin\" or \"file\"".to_owned()),
                "timeout" | "idle" => (Code::WrongType, "write it as \"30m\"".to_owned()),
                known if AGENT_KEYS.contains(&known) => (Code::WrongType, "put it in quotes".to_owned()),
                _ => (Code::UnknownKey, format!("known keys: {}", AGENT_KEYS.join(", "))),
            };
            self.report_as(code, at, format!("`{key}` of the agent `{name}` is not understood"), hint);
        }
        agent
    }

    /// Only loopback addresses are accepted: a file that came with a repository must not open a port to other machines.
    fn http_address(&mut self) -> Option<SocketAddr> {
        let table = self.table.get("http")?.as_table().cloned();
        let Some(table) = table else {
            let hint = "write a line `[http]`".to_owned();
            self.report(self.place("http"), "`http` is not a table".to_owned(), hint);
            return None;
        };
        for key in table.keys().filter(|it| *it != "address") {
            let (message, hint) = (format!("the key `{key}` of `http` is not known"), "known key: address");
            self.report_as(Code::UnknownKey, self.place(key), message, hint.to_owned());
        }
        let address = table.get("address")?;
        let read = address.as_str().filter(|it| !it.is_empty()).and_then(read_address);
        let (message, hint) = match read {
            Some(read) if read.ip().is_loopback() => return Some(read),
            Some(_) => (
                "an address that other machines can reach is not accepted from this file",
                "type it: planwatch watch --http ADDRESS",
            ),
            None => ("`address` is not an address", "write it as \"127.0.0.1:4001\""),
        };
        self.report(self.place("address"), message.to_owned(), hint.to_owned());
        None
    }

    fn commit_template(&mut self) -> Option<String> {
        let table = self.table.get("commit")?.as_table().cloned();
        let Some(table) = table else {
            let hint = "write a line `[commit]`".to_owned();
            self.report(self.place("commit"), "`commit` is not a table".to_owned(), hint);
            return None;
        };
        for key in table.keys().filter(|it| *it != "template") {
            let message = format!("the key `{key}` of `commit` is not known");
            self.report_as(Code::UnknownKey, self.place(key), message, "known key: template".to_owned());
        }
        let template = table.get("template")?.as_str().map(str::trim).filter(|it| !it.is_empty());
        if template.is_none_or(|it| it.contains(['\n', '\r'])) {
            let hint = "write it as \"plan({plan}): {what}\"".to_owned();
            self.report(self.place("template"), "`template` is not one line of text".to_owned(), hint);
            return None;
        }
        template.map(str::to_owned)
    }

    fn sync(&mut self) -> Option<SyncConfig> {
        let table = self.table.get("sync")?.as_table().cloned();
        let Some(table) = table else {
            let hint = "`planwatch sync init` writes the lines".to_owned();
            self.report(self.place("sync"), "`sync` is not a table".to_owned(), hint);
            return None;
        };
        let mistakes = match SyncConfig::read(&table) {
            Ok(config) => return Some(config),
            Err(mistakes) => mistakes,
        };
        for (code, key, message, hint) in mistakes {
            let at = if table.contains_key(&key) { self.place(&key) } else { self.place("sync") };
            self.report_as(code, at, message, hint);
        }
        None
    }

    fn order(&mut self, word: &str) -> Option<Order> {
        match word {
            "dependencies" => Some(Order::Dependencies),
            "sequential" => Some(Order::Sequential),
            _ => {
                let hint = "known words: dependencies, sequential".to_owned();
                self.report(self.place("order"), format!("the order `{word}` is not known"), hint);
                None
            }
        }
    }

    /// Each word must map to a status. A word that planwatch already knows cannot be redefined.
    fn words(&mut self) -> Words {
        let Some(value) = self.table.get("words") else { return Words::default() };
        let Some(table) = value.as_table().cloned() else {
            self.report(
                self.place("words"),
                "`words` is not a table".to_owned(),
                "write a line `[words]`".to_owned(),
            );
            return Words::default();
        };
        let common = Words::default();
        let is_status =
            |it: &str| common.read::<StepStatus>(it).is_some() || common.read::<PlanStatus>(it).is_some();
        let mut own = Vec::new();
        for (word, means) in table {
            match means.as_str() {
                Some(means) if is_status(means) && !is_status(&word) => own.push((word, means.to_owned())),
                Some(_) if is_status(&word) => {
                    let hint = "remove the line".to_owned();
                    self.report(self.place(&word), format!("`{word}` is already a status word"), hint);
                }
                None => {
                    let (message, hint) =
                        (format!("the value of `{word}` is not a text"), "put it in quotes");
                    self.report(self.place(&word), message, hint.to_owned());
                }
                Some(means) => {
                    let near = common.nearest::<StepStatus>(means);
                    let hint =
                        near.map_or_else(|| "name a status".to_owned(), |it| format!("did you mean `{it}`?"));
                    self.report(self.place(&word), format!("`{means}` is not a status"), hint);
                }
            }
        }
        Words::with_own(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_optional() {
        assert_eq!(Config::read("planwatch.toml", ""), (Config::default(), Vec::new()));
    }

    #[test]
    fn keys_and_status_words_are_read() {
        let text = "by = \"ann\"\nstale_days = 3\norder = \"sequential\"\n[words]\n\"in review\" = \"in_progress\"\n";
        let (config, problems) = Config::read("planwatch.toml", text);
        assert_eq!(problems, []);
        assert_eq!(
            (config.by.as_deref(), config.stale_days(), config.order),
            (Some("ann"), 3, Some(Order::Sequential))
        );
        assert_eq!(config.words.read("In Review"), Some(StepStatus::InProgress));
    }

    #[test]
    fn only_a_loopback_address_is_accepted_for_http() {
        let read = |address: &str| Config::read("planwatch.toml", &format!("[http]\naddress = {address}\n"));
        assert_eq!(read("\"localhost:7\"").0.http_address, Some(([127, 0, 0, 1], 7).into()));
        for refused in ["\"0.0.0.0:7\"", "\"example.org:7\"", "7", "\"\""] {
            let (config, problems) = read(refused);
            assert_eq!((config.http_address, problems.len(), problems[0].line), (None, 1, 2), "{refused}");
        }
        let (_, problems) = Config::read("planwatch.toml", "[http]\nadress = \"1\"\n");
        assert_eq!(problems[0].code, Code::UnknownKey);
    }

    #[test]
    fn the_subject_of_commits_is_one_line() {
        let read =
            |template: &str| Config::read("planwatch.toml", &format!("[commit]\ntemplate = {template}\n"));
        let (config, problems) = read("\"docs({plan}): {what}\"");
        assert_eq!((config.commit_template.as_deref(), problems.len()), (Some("docs({plan}): {what}"), 0));
        for refused in ["\"\"", "\"a\\nb\"", "7"] {
            let (config, problems) = read(refused);
            assert_eq!((config.commit_template, problems.len(), problems[0].line), (None, 1, 2), "{refused}");
        }
        let (_, problems) = Config::read("planwatch.toml", "[commit]\non = true\n");
        assert_eq!((problems[0].code, problems[0].line), (Code::UnknownKey, 2));
    }

    #[test]
    fn problems_are_reported_with_their_place() {
        let (_, problems) = Config::read("planwatch.toml", "by = \"a\"\nstale_day = 3\n");
        assert_eq!((problems[0].line, problems[0].hint.as_str()), (2, "did you mean `stale_days`?"));
        let (config, problems) = Config::read("planwatch.toml", "by = [\n");
        assert_eq!((config, problems.len()), (Config::default(), 1));
        let text = "plans_dir = \"docs\"\norder = \"seq\"\nstale_days = -3\nmax_attempts = 0\n[words]\n\"in review\" = \"in_progres\"\ndone = \"pending\"\n";
        let (config, problems) = Config::read("planwatch.toml", text);
        assert_eq!(config.plans_dir.as_deref(), Some("docs"));
        assert_eq!(problems.iter().map(|it| it.line).collect::<Vec<_>>(), [2, 3, 4, 6, 7]);
        let (config, problems) = Config::read("planwatch.toml", "by = \"ann\"\nx = = 1\nlease = \"30m\"\n");
        assert_eq!((config.by.as_deref(), problems.len()), (Some("ann"), 1));
    }
}
