-- The tables of the full text, in a file of their own: it changes only when texts do, so that its file's stamps tell
-- whether it is still what was last proved (proof.rs).

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Sums of parts of the tables below (sums.rs).
CREATE TABLE part (
    source TEXT NOT NULL,
    part INTEGER NOT NULL,
    sum BLOB NOT NULL,
    PRIMARY KEY (source, part)
) STRICT, WITHOUT ROWID;

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

-- Records are named by their paths, plans have no `/`.
CREATE INDEX searched_record ON searched (name) WHERE instr(name, '/') > 0;

-- Without the texts themselves, which are read from the files for the few that are shown.
CREATE VIRTUAL TABLE search USING fts5 (
    name, title, body, records,
    content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);

-- Few large parts of it instead of many small ones that would be merged again and again while it is filled; what a
-- later change adds is merged when 16 parts have come together.
INSERT INTO search (search, rank) VALUES ('hashsize', 33554432);
INSERT INTO search (search, rank) VALUES ('automerge', 0);

-- Names and titles alone, for words that stand in very many documents (often.rs).
CREATE VIRTUAL TABLE titles USING fts5 (
    name, title, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);

INSERT INTO titles (titles, rank) VALUES ('hashsize', 33554432);
INSERT INTO titles (titles, rank) VALUES ('automerge', 0);
