-- The models that workers were found to have.

CREATE TABLE catalog (
  worker  TEXT NOT NULL,
  model   TEXT NOT NULL DEFAULT '',
  version TEXT,
  digest  BLOB,
  state   TEXT NOT NULL,
  reason  TEXT NOT NULL DEFAULT '',
  fix     TEXT NOT NULL DEFAULT '',
  at      INTEGER NOT NULL,
  PRIMARY KEY (worker, model)
) STRICT, WITHOUT ROWID;
