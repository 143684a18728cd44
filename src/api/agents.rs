//! The agents that can work on a step. They come from the presets in planwatch, from the user's configuration, or from the
//! repository's configuration. The user must trust an agent of the repository's configuration before it runs.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::requests::is_blank;
use crate::api::trust::{self, Subject};
use crate::plan::words::nearest;

pub use crate::api::agent_config::{AgentConfig, Agents, PromptBy};

/// The command that starts an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentCommand {
    /// A program and its arguments. They are run without a shell.
    Words(Vec<String>),
    /// A command line that a shell runs. It was typed by the user or comes from a configuration.
    Line(String),
}

impl AgentCommand {
    /// The command as a person would type it.
    pub fn shown(&self) -> String {
        match self {
            Self::Line(line) => line.clone(),
            Self::Words(words) => {
                words.iter().map(|it| crate::text::typed::quoted(it)).collect::<Vec<_>>().join(" ")
            }
        }
    }
}

/// The variable with the path of the prompt, for agents that read a file.
pub(crate) const PROMPT_VARIABLE: &str = "PLANWATCH_PROMPT";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// The worker's name in claims and attempts.
    pub name: String,
    pub command: AgentCommand,
    pub prompt: PromptBy,
    pub timeout: Option<Duration>,
    pub idle: Option<Duration>,
    /// The key in the agent's JSON answer under which the cost in US dollars is found.
    pub cost: Option<String>,
    /// The key in the agent's JSON answer under which the agent's message is found.
    pub answer: Option<&'static str>,
    /// A text that says how the options of a preset were checked, and for which release of the agent. `None` if the command
    /// does not come from a preset.
    pub checked: Option<&'static str>,
    /// The command that the user has to trust before the agent is started; `None` if no trust is needed.
    pub subject: Option<Subject>,
}

struct Preset {
    name: &'static str,
    words: &'static [&'static str],
    prompt: PromptBy,
    cost: Option<&'static str>,
    answer: Option<&'static str>,
    checked: &'static str,
}

/// Each preset uses the most restricted mode in which the agent can edit the working tree and report. The agents report with
/// `planwatch`, except aider, which starts no commands. It reports by writing the status into the step's file.
const PRESETS: [Preset; 4] = [
    Preset {
        name: "claude",
        words: &[
            "claude",
            "-p",
            "--output-format",
            "json",
            "--permission-mode",
            "acceptEdits",
            "--permission-prompts",
            "none",
            "--allowedTools",
            "Bash(planwatch *)",
        ],
        prompt: PromptBy::Stdin,
        cost: Some("total_cost_usd"),
        answer: Some("result"),
        checked: "options checked against the help of Claude Code 2.1.330; not tested with a model",
    },
    Preset {
        name: "codex",
        words: &["codex", "exec", "--json", "--sandbox", "workspace-write", "-"],
        prompt: PromptBy::Stdin,
        cost: None,
        answer: None,
        checked: "options checked against the help of codex-cli 0.169.0; not tested with a model",
    },
    Preset {
        name: "gemini",
        words: &[
            "gemini",
            "--approval-mode",
            "auto_edit",
            "--allowed-tools",
            "run_shell_command(planwatch)",
            "--output-format",
            "json",
        ],
        prompt: PromptBy::Stdin,
        cost: None,
        answer: Some("response"),
        checked: "options checked against the help of Gemini CLI 0.61.0; not tested with a model",
    },
    Preset {
        name: "aider",
        words: &["aider", "--message-file", "{prompt}", "--yes-always", "--no-auto-commits"],
        prompt: PromptBy::File,
        cost: None,
        answer: None,
        checked: "options checked against the help of aider 0.86.2; not tested with a model",
    },
];

/// The prefix of an agent's name as an argument of `planwatch trust`.
pub const OF_AGENT: &str = "agent:";

/// The default time limit of an attempt.
pub const TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// The name of the agent that runs a command line that the user typed.
pub const SHELL: &str = "shell";

#[derive(Debug, Clone, Default)]
pub struct AgentRequest {
    /// The name of a preset or of an agent in a configuration, or [`SHELL`].
    pub agent: Option<String>,
    /// A command line for a shell, as the user typed it.
    pub command: Option<String>,
    /// The agents of the user's own configuration.
    pub own: Agents,
}

/// Finds the agent of a request. The user's own configuration takes precedence over the presets. The repository's
/// configuration can only shorten the limits of these agents. An agent that only the repository's configuration defines has
/// to be trusted before it is started.
pub fn agent(context: &Context, request: &AgentRequest) -> Result<Agent, Error> {
    let name = match (&request.agent, &request.command) {
        (Some(name), Some(_)) if name != SHELL => {
            return Err(Error::usage(
                "--agent and --command contradict each other",
                "use only one of them; --agent shell goes with --command",
            ));
        }
        // A shell runs an empty line without an error, so each attempt would end at once and count.
        (_, Some(line)) if is_blank(line) => {
            let hint = "give it a line for a shell, as in --command './work.sh'";
            return Err(Error::usage("the value of --command is empty", hint));
        }
        (_, Some(line)) => return Ok(of_line(line)),
        (Some(name), None) if name == SHELL && !request.own.contains_key(SHELL) => {
            let hint = "give it one, as in --agent shell --command './work.sh'";
            return Err(Error::usage("the agent `shell` runs a command of yours", hint));
        }
        (Some(name), None) => name,
        (None, None) => {
            let hint =
                format!("--agent {}, or --command 'a line for a shell'", names(request, context).join("|"));
            return Err(Error::usage("no agent is given", hint));
        }
    };
    let theirs = context.config.agents.get(name);
    let mut agent = match (request.own.get(name), PRESETS.iter().find(|it| it.name == name)) {
        (Some(own), preset) => merged(name, own, preset)?,
        (None, Some(preset)) => of_preset(preset),
        (None, None) => of_repository(context, name, request)?,
    };
    // An agent of the repository already has its limits. The repository can only shorten the limits of other agents.
    if let Some(theirs) = theirs.filter(|_| agent.subject.is_none()) {
        let shorter = |own: Duration, theirs: i64| Some(own.min(seconds(theirs)));
        agent.timeout =
            theirs.timeout.map_or(agent.timeout, |it| shorter(agent.timeout.unwrap_or(TIMEOUT), it));
        agent.idle = theirs.idle.map_or(agent.idle, |it| shorter(agent.idle.unwrap_or(Duration::MAX), it));
    }
    Ok(agent)
}

fn seconds(of: i64) -> Duration {
    Duration::from_secs(u64::try_from(of).unwrap_or(0))
}

pub(crate) fn of_line(line: &str) -> Agent {
    Agent {
        name: SHELL.to_owned(),
        command: AgentCommand::Line(line.to_owned()),
        prompt: PromptBy::Stdin,
        timeout: None,
        idle: None,
        cost: None,
        answer: None,
        checked: None,
        subject: None,
    }
}

fn of_preset(preset: &Preset) -> Agent {
    Agent {
        name: preset.name.to_owned(),
        command: AgentCommand::Words(preset.words.iter().map(ToString::to_string).collect()),
        prompt: preset.prompt,
        cost: preset.cost.map(str::to_owned),
        answer: preset.answer,
        checked: Some(preset.checked),
        ..of_line("")
    }
}

/// Makes the agent that a configuration describes. A configuration without a command extends the preset of the same name.
fn merged(name: &str, config: &AgentConfig, preset: Option<&Preset>) -> Result<Agent, Error> {
    let base = match (&config.command, preset) {
        (Some(line), _) if is_blank(line) => return Err(no_command(name)),
        (Some(line), _) => Agent { name: name.to_owned(), ..of_line(line) },
        (None, Some(preset)) => of_preset(preset),
        (None, None) => return Err(no_command(name)),
    };
    let is_own_command = config.command.is_some();
    Ok(Agent {
        prompt: config.prompt.unwrap_or(base.prompt),
        timeout: config.timeout.map(seconds),
        idle: config.idle.map(seconds),
        cost: config.cost.clone().or(base.cost),
        checked: base.checked.filter(|_| !is_own_command),
        ..base
    })
}

fn no_command(name: &str) -> Error {
    Error::Failed {
        code: "configuration",
        message: format!("the agent `{name}` has no command"),
        hint: format!("write `command = \"…\"` below `[agents.{name}]`"),
    }
}

fn of_repository(context: &Context, name: &str, request: &AgentRequest) -> Result<Agent, Error> {
    let Some(config) = context.config.agents.get(name) else {
        let known = names(request, context);
        let nearest = nearest(name, known.iter().map(String::as_str));
        return Err(Error::NotFound { what: "agent", name: name.to_owned(), nearest });
    };
    let agent = merged(name, config, None)?;
    Ok(Agent { subject: Some(subject(context, name, config)), ..agent })
}

/// The command that the user has to trust before an agent of the repository's configuration is started.
fn subject(context: &Context, name: &str, config: &AgentConfig) -> Subject {
    let command = config.command.clone().unwrap_or_default();
    subject_of(context, name, command, config.prompt.unwrap_or(PromptBy::Stdin))
}

/// Computes [`Agent::subject`] again, because the files that the command names may have changed since the agent was found.
pub(crate) fn subject_now(context: &Context, agent: &Agent) -> Option<Subject> {
    match (&agent.subject, &agent.command) {
        (Some(_), AgentCommand::Line(line)) => {
            Some(subject_of(context, &agent.name, line.clone(), agent.prompt))
        }
        (subject, _) => subject.clone(),
    }
}

fn subject_of(context: &Context, name: &str, command: String, prompt: PromptBy) -> Subject {
    let by = if prompt == PromptBy::File { "file" } else { "stdin" };
    let root = &context.here.root;
    let covered = trust::covered(context, &command, ".", Some(root));
    Subject {
        what: format!("the agent `{name}`"),
        name: format!("{OF_AGENT}{name}"),
        path: root.join(crate::api::config::CONFIG_FILE).join("agents").join(name),
        hash: trust::hash(&[by, &covered.hash]),
        files: covered.files,
        fault: covered.fault,
        command,
        directory: ".".to_owned(),
    }
}

/// The agents' commands in the repository's configuration that run only if they are trusted.
pub fn wanting_trust(context: &Context) -> Vec<Subject> {
    let is_preset = |name: &str| name == SHELL || PRESETS.iter().any(|it| it.name == name);
    let of = context.config.agents.iter().filter(|(name, it)| !is_preset(name) && it.command.is_some());
    of.map(|(name, it)| subject(context, name, it)).collect()
}

pub(crate) fn names(request: &AgentRequest, context: &Context) -> Vec<String> {
    let mut names: Vec<_> = PRESETS.iter().map(|it| it.name.to_owned()).collect();
    names.push(SHELL.to_owned());
    let configured: BTreeSet<_> = request.own.keys().chain(context.config.agents.keys()).collect();
    let configured: Vec<_> = configured.into_iter().filter(|it| !names.contains(it)).cloned().collect();
    names.extend(configured);
    names
}
