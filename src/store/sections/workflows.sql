-- Bounded chains of jobs.

CREATE TABLE workflows (
  id             INTEGER PRIMARY KEY,
  name           TEXT NOT NULL,
  state          TEXT NOT NULL DEFAULT 'running',
  plan           BLOB NOT NULL REFERENCES objects,
  plan_digest    BLOB NOT NULL,
  catalog_digest BLOB,
  config_digest  BLOB,
  bounds         TEXT NOT NULL DEFAULT '{}',
  submitted_at   INTEGER NOT NULL,
  ended_at       INTEGER
) STRICT;

CREATE TABLE steps (
  workflow   INTEGER NOT NULL REFERENCES workflows,
  name       TEXT NOT NULL,
  position   INTEGER NOT NULL,
  state      TEXT NOT NULL DEFAULT 'blocked',
  job        INTEGER REFERENCES jobs,
  checkpoint INTEGER NOT NULL DEFAULT 0 CHECK (checkpoint IN (0, 1)),
  result     BLOB REFERENCES objects,
  PRIMARY KEY (workflow, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoint_passes (
  workflow  INTEGER NOT NULL,
  step      TEXT NOT NULL,
  result    BLOB NOT NULL,
  by        TEXT NOT NULL,
  signature BLOB,
  key_id    TEXT,
  at        INTEGER NOT NULL,
  PRIMARY KEY (workflow, step),
  FOREIGN KEY (workflow, step) REFERENCES steps
) STRICT, WITHOUT ROWID;

CREATE TABLE handoffs (
  workflow INTEGER NOT NULL REFERENCES workflows,
  seq      INTEGER NOT NULL,
  step     TEXT NOT NULL,
  packet   BLOB NOT NULL REFERENCES objects,
  previous BLOB NOT NULL,
  digest   BLOB NOT NULL,
  PRIMARY KEY (workflow, seq)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER workflows_move BEFORE UPDATE OF state ON workflows
WHEN ('workflow', OLD.state, NEW.state) NOT IN moves
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: workflow'); END;
CREATE TRIGGER workflows_begin BEFORE INSERT ON workflows WHEN NEW.state <> 'running'
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: workflow'); END;
CREATE TRIGGER steps_move BEFORE UPDATE OF state ON steps
WHEN ('step', OLD.state, NEW.state) NOT IN moves
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: step'); END;
CREATE TRIGGER steps_begin BEFORE INSERT ON steps WHEN NEW.state <> 'blocked'
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: step'); END;
CREATE TRIGGER checkpoint_passes_kept BEFORE UPDATE ON checkpoint_passes
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: checkpoint passes'); END;
CREATE TRIGGER handoffs_kept BEFORE UPDATE ON handoffs BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: handoffs'); END;
