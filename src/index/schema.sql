-- The tables of the index. They are planwatch's own and change from release to release; what users may rely on are
-- the views of `planwatch sql` (docs/index.md), which are made in memory from these rows.
--
-- Every row of `plan` proves itself, and its row in `plan_data` with it: a row that is missing is read again from the
-- files, so that no sum over a whole table is needed.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- A plan's directory: the stamps and hashes of its files, and the proof of both rows (row.rs).
CREATE TABLE plan (
    id INTEGER PRIMARY KEY,
    archived INTEGER NOT NULL,
    name TEXT NOT NULL,
    steps INTEGER NOT NULL,
    head BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX plan_name ON plan (archived, name);

-- The plan as it was read, unjudged and without its texts (data.rs).
CREATE TABLE plan_data (
    id INTEGER PRIMARY KEY,
    data BLOB NOT NULL
) STRICT;

-- Whose documents stand in the full text: the plan's own under the number `first`, its steps' behind it. Archived ones
-- have negative numbers. `version` is that of the plan's data when its texts were read.
CREATE TABLE searched (
    first INTEGER PRIMARY KEY,
    n INTEGER NOT NULL,
    archived INTEGER NOT NULL,
    name TEXT NOT NULL,
    version BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX searched_name ON searched (archived, name);

-- Without the texts themselves, which are read from the files for the few that are shown.
CREATE VIRTUAL TABLE search USING fts5 (
    name, title, body, records,
    content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);

-- Few large parts of it instead of many small ones that would be merged again and again while it is filled; what a
-- later change adds is merged when 16 parts have come together.
INSERT INTO search (search, rank) VALUES ('hashsize', 33554432);
INSERT INTO search (search, rank) VALUES ('automerge', 0);
