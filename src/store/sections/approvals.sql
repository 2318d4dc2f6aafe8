-- Witnesses of permits that need one, and the keys that may sign.

CREATE TABLE approvals (
  permit    INTEGER NOT NULL REFERENCES permits,
  witness   BLOB NOT NULL UNIQUE,                    -- a replayed approval mints nothing
  by        TEXT NOT NULL,
  key_id    TEXT,
  at        INTEGER NOT NULL,
  PRIMARY KEY (permit, witness)
) STRICT, WITHOUT ROWID;

CREATE TABLE trusted_keys (
  key_id  TEXT PRIMARY KEY,
  public  BLOB NOT NULL,
  purpose TEXT NOT NULL,
  added_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;
