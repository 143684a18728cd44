-- The tables of the history, in a file of their own: it is written when commits are read, not when plans change.
--
-- Each row of `history`, and the list in `meta`, ends with a hash of the scope, its key and its data (history.rs).

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- What a commit did to the plans.
CREATE TABLE history (
    oid BLOB PRIMARY KEY,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
