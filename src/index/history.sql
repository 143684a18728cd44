-- The tables of the history, in a file of their own: it is written when commits are read, not when plans change.
--
-- Every row proves itself: its value ends with a hash of its key and its data (history.rs).

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- What a commit did to the plans.
CREATE TABLE history (
    oid BLOB PRIMARY KEY,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
