//! What `help TOPIC` explains beside the verbs.

use std::fmt::Write;

use planwatch::index;

/// The topics and what they are about.
pub(crate) fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    TOPICS.iter().map(|(name, about, _)| (*name, *about)).chain([SQL])
}

const SQL: (&str, &str) = ("sql", "the views that `sql` asks, with their columns");

/// The text of a topic.
pub(crate) fn topic(name: &str) -> Option<String> {
    if name == SQL.0 {
        return Some(sql());
    }
    TOPICS.iter().find(|(it, _, _)| *it == name).map(|(_, _, text)| (*text).to_owned())
}

const TOPICS: [(&str, &str, &str); 7] = [
    ("ids", "how plans and steps are named", IDS),
    ("files", "where plans are, and what is in them", FILES),
    ("statuses", "the words for where a step or a plan stands", STATUSES),
    ("claims", "how steps are handed out, and when a claim lapses", CLAIMS),
    ("json", "what --json prints", JSON),
    ("exit-codes", "what the exit code says", EXIT_CODES),
    ("environment", "the variables and the configuration that are read", ENVIRONMENT),
];

const IDS: &str = "\
A plan's id is the name of its directory: auth
A step's id is the plan and the number in its file's name: auth:2.5

Understood as well, wherever an id is wanted:
  auth/2.5, auth/step-2.5    the same step
  ./plans/auth/step-2.5.md   a path, which begins with ./ or ends in .md
  2.5                        a number alone: in the plan of PLANWATCH_PLAN, else
                             of the working directory, else the only active one

Numbers are decimals: 2.5 lies between 2 and 3, and 2.10 is 2.1.
";

const FILES: &str = "\
plans/                 the nearest one at or above the working directory
  auth/                a plan
    plan.md            what and why; its front matter holds the plan's state
    step-1.md          a step; the number is its place
    step-1.5.md        a step that was put between 1 and 2
  _decisions/          what was decided, one file each, never changed
  _insights/           what was learned, one file each
  _scripts/            commands with a name
  _archive/            what was archived or removed
  .planwatch/          this machine's own state; it ignores itself for git
planwatch.toml         configuration, if any

The files are the truth: edit them as you like, with any editor. planwatch
changes the lines that a verb is about, and no other byte.
";

const STATUSES: &str = "\
A step is
  ○ pending        not begun; `ready` when nothing stands against it
  ◐ in_progress    somebody works on it
  ● completed      done
  ✗ failed         tried, and it did not work
  ■ blocked        cannot go on
  – skipped        left out; what waits for it may go on
A plan is draft, active, completed or abandoned.

Ready is a pending step whose dependencies are all completed or skipped, that has
no error in its file and lacks no confirmation. `next` names the lowest one.
Common words are understood too, as done, todo, wip, cancelled; planwatch.toml
can add a project's own under [words].
";

const CLAIMS: &str = "\
`planwatch claim` hands a step to one asker and to nobody else.
The answer names the claim's id, which the end of the work gives:
  planwatch done auth:2 --claim h4f09a21 -m 'merged'

A claim holds for 30 minutes; --lease TIME says otherwise. --renew, and every
change of its owner, lets it hold on. With --pid N it holds as long as that
process runs. One that this machine knows nothing of lapses after 24 hours.

A lapsed claim stays its owner's until another takes the step; from then on its
id is refused, and a late result is kept as a note. `release` gives a step back,
`release --expired` all that has lapsed. A third worker that does not come back
makes the step failed; `reopen` lets others try.

All working trees of a git repository share their claims, on one machine. On
other machines claims are seen, but keep nobody from claiming too.
";

const JSON: &str = "\
--json prints one object on stdout: {\"schema_version\": 1, \"kind\": \"…\", …}
--json=id,status keeps those fields, of a list those of its items.
`watch --json` and `draft --json` print one object a line.

  list          plan-list, with a plan step-list
  show          plan, step or graph
  next          next: {state, step, why, candidates}
  claim         claim: {state, step, why, claim: {id, until}, dry_run, diff}
  status        status
  search        search
  draft         draft-event for each pass, then draft: {state, plan, pass, …}
  decide        decision-list, with --topics topic-list
  insight       insight-list
  script list   script-list; script show: script; script run: script-run
  trust         trust-list, with --list trusted-list
  check         problem-list
  sql           table
  undo --list   undo-list
  instructions  instructions
  template      template-list; template show: template or prompt
  all verbs that write: change: {verb, dry_run, changes, refused, diff}

Errors are one object on stderr: {\"error\": {\"code\", \"message\", \"hint\", \"details\"}}
The same files give the same bytes: no field holds the time of the answer.
";

const EXIT_CODES: &str = "\
What the exit code says:
  0    done
  1    failed
  2    the command line is wrong
  3    not found
  4    refused: claimed, changed meanwhile, or not allowed from where it stands
  5    a person's confirmation or trust is needed
  6    `check` found errors, or a file with an error would have been written
  7    `next`, `claim`, `run`: nothing is ready
  8    `watch`: no process watches the plans, or it ended unexpectedly
  124  a time limit is over
  130  interrupted
";

const ENVIRONMENT: &str = "\
Variables, which go before the configuration:
  PLANS_DIR         the plans directory; --plans goes before it
  PLANWATCH_BY      the name that is recorded; --by goes before it
  PLANWATCH_PLAN    the plan that a number alone belongs to
  PLANWATCH_STEP    the step that this process works on
  PLANWATCH_CLAIM   the claim that it works under
  VISUAL, EDITOR    the editor of `edit`
  PLANWATCH_PAGER, PAGER
                    the pager for long answers on a terminal (default:
                    less -FRX); empty or cat: none; --no-pager goes before it
  PLANWATCH_NOW     the time to take for now, as 2026-11-21T09:14:03Z
  NO_COLOR          no colours; --color goes before it

planwatch.toml, at the repository's root or beside the plans directory:
  plans_dir = \"docs/plans\"     where the plans are
  by = \"ann\"                   the name that is recorded
  lease = \"30m\"                how long a claim holds
  max_attempts = 3             workers that may fail on a step before it is failed
  stale_days = 7               days until a step is called stale
  order = \"sequential\"         for new plans: each step waits for the one before
  [words]
  \"in review\" = \"in_progress\"  the project's own status words
";

/// The views as the index has them.
fn sql() -> String {
    let query = "SELECT v.name, group_concat(c.name, ', ') FROM sqlite_schema v, pragma_table_info(v.name) c \
                 WHERE v.type = 'view' GROUP BY v.name ORDER BY v.rootpage, v.name";
    let rows = index::sql(query, std::iter::empty(), std::iter::empty(), index::Knowledge::default)
        .map(|it| it.rows)
        .unwrap_or_default();
    let mut text = "The index answers reading queries on these views:\n".to_owned();
    for row in rows {
        let cell = |at: usize| row.get(at).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
        write!(text, "\n{}\n{}", cell(0), wrapped(&cell(1), 76)).ok();
    }
    text
}

/// Names in lines of at most `width`, set in by two.
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
            assert!(text.lines().all(|it| it.chars().count() <= 84), "{name}:\n{text}");
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
