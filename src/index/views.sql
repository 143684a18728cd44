-- The tables that a user's own queries are answered from, made in memory, and the views that users may rely on
-- (docs/index.md). The tables change from release to release.
--
-- `place` is a step's position in its plan from 0; -1 stands for the plan itself. `nth` counts from 1.

CREATE TABLE file_row (
    path TEXT PRIMARY KEY,
    len INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    hash TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE plan_row (
    archived INTEGER NOT NULL,
    plan TEXT NOT NULL,
    title TEXT NOT NULL,
    status TEXT NOT NULL,
    status_source TEXT NOT NULL,
    description TEXT,
    kind TEXT NOT NULL,
    program TEXT,
    category TEXT,
    priority TEXT NOT NULL,
    due TEXT,
    step_order TEXT NOT NULL,
    created_at TEXT,
    modified TEXT,
    path TEXT NOT NULL,
    etag TEXT,
    metadata TEXT NOT NULL,
    custom TEXT NOT NULL,
    PRIMARY KEY (archived, plan)
) STRICT, WITHOUT ROWID;

CREATE TABLE step_row (
    archived INTEGER NOT NULL,
    plan TEXT NOT NULL,
    place INTEGER NOT NULL,
    number TEXT NOT NULL,
    step_number REAL NOT NULL,
    title TEXT NOT NULL,
    status TEXT NOT NULL,
    claim_id TEXT,
    claim_by TEXT,
    claim_at TEXT,
    phase TEXT,
    type TEXT,
    assignee TEXT,
    priority TEXT,
    due TEXT,
    confirm TEXT,
    confirmed_by TEXT,
    confirmed_at TEXT,
    result TEXT,
    tasks_done INTEGER NOT NULL,
    tasks_total INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    created_at TEXT,
    modified TEXT,
    path TEXT NOT NULL,
    etag TEXT,
    metadata TEXT NOT NULL,
    custom TEXT NOT NULL,
    PRIMARY KEY (archived, plan, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE dependency_row (
    archived INTEGER NOT NULL,
    plan TEXT NOT NULL,
    place INTEGER NOT NULL,
    nth INTEGER NOT NULL,
    depends_plan TEXT NOT NULL,
    depends_number TEXT NOT NULL,
    PRIMARY KEY (archived, plan, place, nth)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempt_row (
    archived INTEGER NOT NULL,
    plan TEXT NOT NULL,
    place INTEGER NOT NULL,
    nth INTEGER NOT NULL,
    at TEXT,
    by TEXT,
    outcome TEXT,
    notes TEXT,
    more TEXT NOT NULL,
    PRIMARY KEY (archived, plan, place, nth)
) STRICT, WITHOUT ROWID;

CREATE TABLE note_row (
    archived INTEGER NOT NULL,
    plan TEXT NOT NULL,
    place INTEGER NOT NULL,
    nth INTEGER NOT NULL,
    at TEXT,
    type TEXT NOT NULL,
    by TEXT,
    text TEXT NOT NULL,
    PRIMARY KEY (archived, plan, place, nth)
) STRICT, WITHOUT ROWID;

CREATE TABLE tag_row (
    archived INTEGER NOT NULL,
    plan TEXT NOT NULL,
    place INTEGER NOT NULL,
    nth INTEGER NOT NULL,
    tag TEXT NOT NULL,
    PRIMARY KEY (archived, plan, place, nth)
) STRICT, WITHOUT ROWID;

CREATE TABLE problem_row (
    archived INTEGER NOT NULL,
    plan TEXT NOT NULL,
    place INTEGER NOT NULL,
    nth INTEGER NOT NULL,
    severity TEXT NOT NULL,
    code TEXT NOT NULL,
    message TEXT NOT NULL,
    path TEXT NOT NULL,
    line INTEGER NOT NULL,
    column INTEGER NOT NULL,
    hint TEXT NOT NULL,
    fixable INTEGER NOT NULL,
    PRIMARY KEY (archived, plan, place, nth)
) STRICT, WITHOUT ROWID;

CREATE TABLE decision_row (
    id TEXT PRIMARY KEY,
    topic TEXT NOT NULL,
    decision TEXT NOT NULL,
    reasoning TEXT,
    by TEXT,
    decided_at TEXT,
    plan TEXT,
    step TEXT,
    supersedes TEXT,
    tags TEXT NOT NULL,
    path TEXT NOT NULL,
    metadata TEXT NOT NULL,
    custom TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE insight_row (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    by TEXT,
    at TEXT,
    plan TEXT,
    tags TEXT NOT NULL,
    path TEXT NOT NULL,
    custom TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE script_row (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    command TEXT NOT NULL,
    directory TEXT NOT NULL,
    plan TEXT,
    description TEXT,
    mcp_handle TEXT,
    path TEXT NOT NULL,
    custom TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE VIEW plans AS
SELECT plan AS id, archived, title, status, status_source, kind, category, priority, due, program, description, step_order,
    (SELECT count(*) FROM step_row s WHERE s.archived = p.archived AND s.plan = p.plan) AS steps_total,
    (SELECT count(*) FROM step_row s WHERE s.archived = p.archived AND s.plan = p.plan
        AND s.status = 'completed') AS steps_completed,
    (SELECT count(*) FROM step_row s WHERE s.archived = p.archived AND s.plan = p.plan
        AND s.status = 'skipped') AS steps_skipped,
    (SELECT count(*) FROM step_row s WHERE s.archived = p.archived AND s.plan = p.plan
        AND s.status = 'failed') AS steps_failed,
    path, etag, created_at, modified, metadata, custom
FROM plan_row p;

CREATE VIEW steps AS
SELECT plan || ':' || number AS id, plan, archived, number, step_number, title, status, phase, type, assignee, priority, due,
    claim_id, claim_by, claim_at, confirm, confirmed_by, confirmed_at, result, tasks_done, tasks_total,
    path, etag, created_by, created_at, modified, metadata, custom
FROM step_row;

CREATE VIEW dependencies AS
SELECT s.plan || ':' || s.number AS step, d.depends_plan || ':' || d.depends_number AS depends_on,
    s.plan AS plan, s.archived AS archived, d.depends_plan AS depends_on_plan, d.depends_number AS depends_on_number
FROM dependency_row d JOIN step_row s USING (archived, plan, place);

CREATE VIEW attempts AS
SELECT s.plan || ':' || s.number AS step, s.plan AS plan, s.archived AS archived, a.nth AS nth,
    a.at AS at, a.by AS by, a.outcome AS outcome, a.notes AS notes, a.more AS more
FROM attempt_row a JOIN step_row s USING (archived, plan, place);

CREATE VIEW notes AS
SELECT n.plan AS plan, s.plan || ':' || s.number AS step, n.archived AS archived, n.nth AS nth,
    n.at AS at, n.type AS type, n.by AS by, n.text AS text
FROM note_row n LEFT JOIN step_row s USING (archived, plan, place);

CREATE VIEW tags AS
SELECT t.tag AS tag, t.plan AS plan, s.plan || ':' || s.number AS step, t.archived AS archived
FROM tag_row t LEFT JOIN step_row s USING (archived, plan, place);

CREATE VIEW problems AS
SELECT m.severity AS severity, m.code AS code, m.message AS message, m.path AS path, m.line AS line,
    m.column AS column, m.hint AS hint, m.fixable AS fixable,
    m.plan AS plan, s.plan || ':' || s.number AS step, m.archived AS archived
FROM problem_row m LEFT JOIN step_row s USING (archived, plan, place);

CREATE VIEW files AS
SELECT path, len AS size, strftime('%Y-%m-%dT%H:%M:%SZ', mtime_ns / 1000000000, 'unixepoch') AS modified,
       rtrim(hash, '+') AS hash
FROM file_row;

CREATE VIEW decisions AS
SELECT id, topic, decision, reasoning, by, decided_at, plan, step, supersedes,
    (SELECT max(id) FROM decision_row later WHERE later.supersedes = d.id) AS superseded_by,
    tags, path, metadata, custom
FROM decision_row d;

CREATE VIEW insights AS
SELECT id, title, text, by, at, plan, tags, path, custom FROM insight_row;

CREATE VIEW scripts AS
SELECT id, name, command, directory, plan, description, mcp_handle, path, custom FROM script_row;
