-- What may be spent, what is reserved of it before it is, and what was charged.

CREATE TABLE budgets (
  id     INTEGER PRIMARY KEY,
  scope  TEXT NOT NULL,                              -- total, label, worker, model, group, session, tree
  name   TEXT NOT NULL DEFAULT '',
  unit   TEXT NOT NULL CHECK (unit IN ('cost', 'tokens') OR unit IN ('calls', 'seconds') OR unit IN ('children', 'depth')),
  period TEXT NOT NULL CHECK (period IN ('day', 'month') OR period = 'ever'),
  zone   TEXT NOT NULL DEFAULT 'UTC',
  soft   INTEGER,
  hard   INTEGER,
  UNIQUE (scope, name, unit, period)
) STRICT;

CREATE TABLE budget_periods (
  id       INTEGER PRIMARY KEY,
  budget   INTEGER NOT NULL REFERENCES budgets,
  start_at INTEGER NOT NULL,
  end_at   INTEGER,
  "limit"  INTEGER,
  spent    INTEGER NOT NULL DEFAULT 0,
  reserved INTEGER NOT NULL DEFAULT 0 CHECK (reserved >= 0),
  UNIQUE (budget, start_at)
) STRICT;

CREATE TABLE reservations (
  id        INTEGER PRIMARY KEY,
  job       INTEGER,
  attempt_n INTEGER,
  period    INTEGER NOT NULL REFERENCES budget_periods,
  unit      TEXT NOT NULL,
  amount    INTEGER NOT NULL CHECK (amount > 0),
  charge    INTEGER,
  state     TEXT NOT NULL DEFAULT 'held',
  at        INTEGER NOT NULL,
  CHECK ((state = 'charged') = (charge IS NOT NULL))
) STRICT;
CREATE INDEX reservations_attempt ON reservations (job, attempt_n);
CREATE INDEX reservations_open ON reservations (state) WHERE state IN ('held', 'unknown');

CREATE TRIGGER reservations_move BEFORE UPDATE OF state ON reservations
WHEN ('reservation', OLD.state, NEW.state) NOT IN moves
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: reservation'); END;
CREATE TRIGGER reservations_begin BEFORE INSERT ON reservations WHEN NEW.state <> 'held'
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: reservation'); END;
