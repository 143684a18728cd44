//! The topics of `help TOPIC`.

use std::fmt::Write;

use planwatch::index;

pub(crate) fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    TOPICS.iter().map(|(name, about, _)| (*name, *about)).chain([SQL])
}

const SQL: (&str, &str) = ("sql", "the views that `sql` can query, with their columns");

pub(crate) fn topic(name: &str) -> Option<String> {
    if name == SQL.0 {
        return Some(sql());
    }
    TOPICS.iter().find(|(it, _, _)| *it == name).map(|(_, _, text)| (*text).to_owned())
}

const TOPICS: [(&str, &str, &str); 8] = [
    ("ids", "how plans and steps are named", IDS),
    ("files", "where plans are stored, and what they contain", FILES),
    ("statuses", "the status words of steps and plans", STATUSES),
    ("claims", "how steps are claimed, and when a claim lapses", CLAIMS),
    ("sync", "claims that hold on all machines", SYNC),
    ("json", "what --json prints", JSON),
    ("exit-codes", "the meaning of the exit codes", EXIT_CODES),
    ("environment", "environment variables and configuration", ENVIRONMENT),
];

const IDS: &str = "\
A plan's id is the name of its directory: auth
A step's id is the plan and the number in its file's name: auth:2.5

Commands also accept these forms of an id:
  auth/2.5, auth/step-2.5    the same step
  ./plans/auth/step-2.5.md   a path: it begins with ./, ../ or /, or ends in .md
  2.5                        a number alone: a step of the plan in
                             PLANWATCH_PLAN, else of the plan in whose directory
                             you are, else of the only active plan

Numbers are decimals: 2.5 is between 2 and 3, and 2.10 is 2.1.
";

const FILES: &str = "\
plans/                 the nearest one at or above the working directory
  auth/                a plan
    plan.md            the description; its front matter has the plan's state
    step-1.md          a step; the number is its position
    step-1.5.md        a step that was inserted between 1 and 2
  _decisions/          decisions, one file each; planwatch never changes them
  _insights/           insights, one file each
  _scripts/            named commands
  _archive/            what was archived or removed
  .planwatch/          data of this machine; git ignores it
planwatch.toml         configuration, if any

The files are the only source of truth. You may edit them with any editor. A
verb changes only the lines concerned, and no other byte.
";

const STATUSES: &str = "\
A step is
  ○ pending        not started; `ready` when nothing blocks it
  ◐ in_progress    being worked on
  ● completed      done
  ✗ failed         tried, and it did not work
  ■ blocked        cannot continue
  – skipped        left out; does not block other steps
A plan is draft, active, completed or abandoned.

A pending step is ready if all its dependencies are completed or skipped, it has
no error in its file and no confirmation is missing. `next PLAN` shows the ready
step with the lowest number.
Synonyms such as done, todo, wip and cancelled are accepted. A project can add
its own under [words] in planwatch.toml.
";

const CLAIMS: &str = "\
`planwatch claim` gives each ready step to exactly one caller.
The answer contains the claim's id. Pass it to the command that ends the work:
  planwatch done auth:2 --claim h4f09a21 -m 'merged'

A claim holds for 30 minutes, or for --lease TIME. --renew, and every accepted
change by its owner, restarts that time. With --pid N it holds as long as that
process runs. A claim without a record on this machine lapses after 24 hours.

A lapsed claim belongs to its owner until another worker claims the step. After
that, the old claim's id is refused, and a late result is recorded as a note.
`release` ends a claim, `release --expired` ends all lapsed claims. The failed
attempts of runs, and the lapsed claims that were taken over, are counted. At
a count of three the step becomes failed; `reopen` makes it available again.

All working trees of a git repository on one machine share their claims. Other
machines only see claims that were committed. `planwatch sync init` makes claims
exclusive on all machines: `planwatch help sync`.
";

const SYNC: &str = "\
`planwatch sync init` makes claims exclusive across all clones of a repository.
It only needs a git remote to which everyone may push. Commit planwatch.toml
afterwards.

claim      asks the remote first; refuses a step that another machine claimed
done, fail, block, skip
           end the claim at the remote first, then in the step's file; if
           another machine has taken the step over, only a note is added
release    removes the claim at the remote
sync       sends unsent changes, renews claims, fetches those of others
sync status
           lists the claims of all machines

A finished step stays reserved until the remote's branch shows it as finished.
Then others can start the steps that depend on it.

Without a connection, `claim` fails; `claim --offline` claims on this machine
only. If work ends without a connection, the next `planwatch sync` reports it to
the remote. If two machines claimed a step offline, the claim that reached the
remote first wins.

Other machines treat a claim as lapsed if it was not renewed for 4 hours. The
limit is 15 minutes if a run, `planwatch watch` or an agent's server (`mcp`)
renews the claim. A longer duration (--lease) applies instead, up to 24 hours.

The claim of a run, or one made with --pid, is renewed until its process ends.
Any other claim is renewed until its duration ends, and at least until 4 hours
after the owner's last change of the step.
";

const JSON: &str = "\
--json prints one object on stdout: {\"schema_version\": 1, \"kind\": \"…\", …}
--json=id,status selects fields; in a list, the fields of its items.
`watch --json` and `draft --json` print one object per line.

  list          plan-list; with a plan: step-list
  show          plan, step, graph, decision or insight
  next          next: {state, step, why, candidates}
  claim         claim: {state, step, why, claim: {id, until}, dry_run, diff}
  status        status
  search        search
  draft         draft-event for each pass, then draft: {state, plan, pass, …}
  decide        decision-list; with --topics: topic-list
  insight       insight-list
  script list   script-list; script show: script; script run: script-run
  trust         trust-list; with --list: trusted-list
  check         problem-list
  sql           table
  undo --list   undo-list
  instructions  instructions
  template      template-list; template show: template or prompt
  all verbs that write: change: {verb, dry_run, changes, refused, diff}

Errors are one object on stderr:
  {\"error\": {\"code\", \"message\", \"hint\", \"details\"}}
No field contains the time of the answer. The same files give the same output,
except for what is overdue, stale, lapsed or recently finished.
";

const EXIT_CODES: &str = "\
The exit codes:
  0    success
  1    failure
  2    the command line is invalid
  3    not found
  4    refused: claimed, changed in the meantime, or not allowed in this status
  5    a person's confirmation or trust is needed
  6    `check` or `doctor` found problems, or a faulty file was not written
  7    `next`, `claim`, `run`: nothing is ready
  8    `watch`: no daemon watches the plans, or it ended unexpectedly
  124  `draft`: a time limit is exceeded
  130  interrupted
";

const ENVIRONMENT: &str = "\
Variables, which override the configuration:
  PLANS_DIR         the plans directory; --plans overrides it
  PLANWATCH_BY      the name to record; --by overrides it
  PLANWATCH_PLAN    the plan that a number alone refers to
  PLANWATCH_STEP    the step that this process works on
  PLANWATCH_CLAIM   the claim that the process works under
  VISUAL, EDITOR    the editor of `edit`
  PLANWATCH_PAGER, PAGER
                    the pager for long output on a terminal (default:
                    less -FRX); empty or cat: none; --no-pager overrides it;
                    `log` and `diff` use GIT_PAGER before PAGER
  PLANWATCH_NOW     a fixed current time, as 2026-11-21T09:14:03Z
  NO_COLOR          no colours; --color overrides it

The nearest planwatch.toml in the working directory or above it:
  plans_dir = \"docs/plans\"     where the plans are
  by = \"ann\"                   the name to record
  lease = \"30m\"                claims lapse after this unless renewed
  max_attempts = 3             attempts until a step becomes failed
  stale_days = 7               days without a change until a step is stale
  order = \"sequential\"         for new plans: each step waits for the one before
  [words]
  \"in review\" = \"in_progress\"  the project's own status words
";

/// The views of the index, with their columns.
fn sql() -> String {
    let query = "SELECT v.name, group_concat(c.name, ', ') FROM sqlite_schema v, pragma_table_info(v.name) c \
                 WHERE v.type = 'view' GROUP BY v.name ORDER BY v.rootpage, v.name";
    let rows = index::sql(
        query,
        index::SQL_LIMIT,
        std::iter::empty(),
        std::iter::empty(),
        index::Knowledge::default,
    )
    .map(|it| it.rows)
    .unwrap_or_default();
    let mut text = "`sql` can query these views:\n".to_owned();
    for row in rows {
        let cell = |at: usize| row.get(at).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
        write!(text, "\n{}\n{}", cell(0), wrapped(&cell(1), 76)).ok();
    }
    text
}

/// Wraps names into lines of at most `width` bytes, then indents each line by two spaces.
fn wrapped(names: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for name in names.split(' ') {
        let last = lines.last_mut().filter(|it| it.is_empty() || it.len() + 1 + name.len() <= width);
        match last {
            Some(line) if line.is_empty() => line.push_str(name),
            Some(line) => line.extend([" ", name]),
            None => lines.push(name.to_owned()),
        }
    }
    lines.iter().map(|it| format!("  {it}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_has_a_text_that_fits_a_terminal() {
        for (name, _) in names() {
            let text = topic(name).unwrap();
            assert!(text.lines().all(|it| it.chars().count() <= 80), "{name}:\n{text}");
            assert!(!text.starts_with(' ') && text.lines().next().unwrap().len() < 80, "{name}:\n{text}");
        }
        assert_eq!(topic("nothing"), None);
    }

    #[test]
    fn the_views_are_named_with_their_columns() {
        let text = topic("sql").unwrap();
        assert!(text.contains("\nsteps\n  id, plan, archived, number"), "{text}");
    }
}
