-- The tables of the full-text index, in a file of their own. The file changes only when texts do, so its stamps show
-- whether it is still what was last verified (verified_stamp.rs).

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Checksums of parts of the tables below (checksums.rs).
CREATE TABLE part (
    source TEXT NOT NULL,
    part INTEGER NOT NULL,
    sum BLOB NOT NULL,
    PRIMARY KEY (source, part)
) STRICT, WITHOUT ROWID;

-- The plans and records whose `n` documents are in the full-text index: a plan's own under the row number `first`, its
-- steps' under the numbers after it. Archived ones have negative numbers. `version` is that of the plan's data when its
-- texts were read, or that of the record's document.
CREATE TABLE searched (
    first INTEGER PRIMARY KEY,
    n INTEGER NOT NULL,
    archived INTEGER NOT NULL,
    name TEXT NOT NULL,
    version BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX searched_name ON searched (archived, name);

-- Records are named by their paths; the names of plans contain no `/`.
CREATE INDEX searched_record ON searched (name) WHERE instr(name, '/') > 0;

-- Without the texts themselves, which are read from the files for the few matches that are shown.
CREATE VIRTUAL TABLE search USING fts5 (
    name, title, body, records,
    content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);

-- Few large segments instead of many small ones, which would be merged again and again while the table is filled. The
-- segments that later changes add are merged when there are 16 of them.
INSERT INTO search (search, rank) VALUES ('hashsize', 33554432);
INSERT INTO search (search, rank) VALUES ('automerge', 0);

-- Names and titles alone, for queries that match very many documents (common_terms.rs).
CREATE VIRTUAL TABLE titles USING fts5 (
    name, title, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);

INSERT INTO titles (titles, rank) VALUES ('hashsize', 33554432);
INSERT INTO titles (titles, rank) VALUES ('automerge', 0);
