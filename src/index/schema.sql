-- The tables of the index. They are planwatch's own and change from release to release; what users may rely on are
-- the views of `planwatch sql` (docs/index.md), which are made in memory from these rows.
--
-- Every row of `plan` contains a hash of itself and the hashes of its rows in `plan_data` and `plan_light`. A plan
-- whose row is missing is read again from the files. So no checksum of a whole table is needed.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- A plan's directory: the stamps and hashes of its files, and the hashes of all its rows (row.rs).
CREATE TABLE plan (
    id INTEGER PRIMARY KEY,
    archived INTEGER NOT NULL,
    name TEXT NOT NULL,
    steps INTEGER NOT NULL,
    head BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX plan_name ON plan (archived, name);

-- The plan as it was read, without its texts and without the problems between plans (plan/binary.rs).
CREATE TABLE plan_data (
    id INTEGER PRIMARY KEY,
    data BLOB NOT NULL
) STRICT;

-- The plan's summary, for queries about all plans, which read the table in one pass (plan/summary.rs).
CREATE TABLE plan_light (
    id INTEGER PRIMARY KEY,
    light BLOB NOT NULL
) STRICT;
