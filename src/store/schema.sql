-- What every store has, version 1. Read this first; what only some stores need stands in sections/.
--
-- Times (…_at, due, not_before) are UTC milliseconds, spans …_ms, money nano-USD, digests the 32 raw bytes of SHA-256.
-- A state changes by a listed move only: triggers refuse every beginning and every move that is not in `moves`, and so
-- every word that no list has; the same lists stand in src/domain and a test compares the two over every pair. What a
-- state goes together with is checked beside it. Evidence is append-only, by trigger. Numbers are not given twice:
-- whoever removes rows leaves the one with the highest number.
--
-- Every command parses all of this before it does anything, which is a good part of what it costs. So nothing stands
-- here that a type of the domain or another line keeps anyway, only what is used has an index, and lists stand in pairs,
-- because SQLite compares two values in place and builds a table of its own for three. Comments do not go into the file.

CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The legal moves of everything that has a state.
CREATE TABLE moves (
  kind TEXT NOT NULL,
  old  TEXT NOT NULL,
  new  TEXT NOT NULL,
  PRIMARY KEY (kind, old, new)
) STRICT, WITHOUT ROWID;

INSERT INTO moves (kind, old, new) VALUES
  ('job', 'queued', 'claimed'), ('job', 'queued', 'cancelled'),
  ('job', 'claimed', 'queued'), ('job', 'claimed', 'running'), ('job', 'claimed', 'failed'), ('job', 'claimed', 'cancelled'),
  ('job', 'running', 'queued'), ('job', 'running', 'succeeded'), ('job', 'running', 'failed'),
  ('job', 'running', 'cancelled'), ('job', 'running', 'uncertain'),
  ('job', 'uncertain', 'queued'), ('job', 'uncertain', 'succeeded'), ('job', 'uncertain', 'failed'),
  ('job', 'uncertain', 'cancelled'),
  ('attempt', 'claimed', 'running'), ('attempt', 'claimed', 'ended'),
  ('attempt', 'running', 'uncertain'), ('attempt', 'running', 'ended'), ('attempt', 'uncertain', 'ended'),
  ('permit', 'issued', 'consumed'), ('permit', 'issued', 'revoked'), ('permit', 'consumed', 'settled'),
  ('delivery', 'pending', 'claimed'), ('delivery', 'claimed', 'pending'), ('delivery', 'claimed', 'delivered'),
  ('delivery', 'claimed', 'failed'), ('delivery', 'claimed', 'uncertain'),
  ('delivery', 'uncertain', 'pending'), ('delivery', 'uncertain', 'delivered'), ('delivery', 'uncertain', 'failed'),
  ('reservation', 'held', 'charged'), ('reservation', 'held', 'released'), ('reservation', 'held', 'unknown'),
  ('reservation', 'unknown', 'charged'), ('reservation', 'unknown', 'released'),
  ('session', 'open', 'broken'),
  ('review', 'pending', 'claimed'), ('review', 'pending', 'accepted'), ('review', 'pending', 'rejected'),
  ('review', 'claimed', 'pending'), ('review', 'claimed', 'uncertain'), ('review', 'claimed', 'accepted'),
  ('review', 'claimed', 'rejected'), ('review', 'uncertain', 'pending'), ('review', 'uncertain', 'accepted'),
  ('review', 'uncertain', 'rejected'),
  ('workflow', 'running', 'held'), ('workflow', 'running', 'succeeded'), ('workflow', 'running', 'failed'),
  ('workflow', 'running', 'cancelled'), ('workflow', 'held', 'running'), ('workflow', 'held', 'failed'),
  ('workflow', 'held', 'cancelled'),
  ('step', 'blocked', 'submitted'), ('step', 'blocked', 'cancelled'),
  ('step', 'submitted', 'waiting'), ('step', 'submitted', 'held'), ('step', 'submitted', 'done'),
  ('step', 'submitted', 'failed'), ('step', 'submitted', 'cancelled'),
  ('step', 'waiting', 'held'), ('step', 'waiting', 'done'), ('step', 'waiting', 'failed'), ('step', 'waiting', 'cancelled'),
  ('step', 'held', 'submitted'), ('step', 'held', 'waiting'), ('step', 'held', 'done'), ('step', 'held', 'failed'),
  ('step', 'held', 'cancelled');

-- Content by its digest: small content here, large content as a file under objects/ that was synced before its row.
CREATE TABLE objects (
  digest BLOB PRIMARY KEY CHECK (length(digest) = 32),
  size   INTEGER NOT NULL,
  bytes  BLOB CHECK (length(bytes) = size)
) STRICT;

-- One conversation of a worker; every job has one, ours or foreign ones recorded from hooks.
CREATE TABLE sessions (
  id              INTEGER PRIMARY KEY,
  name            TEXT NOT NULL UNIQUE,              -- YYYYMMDD_HHMMSS_ and six hex digits, or a foreign id
  worker          TEXT NOT NULL,
  credential_home TEXT NOT NULL DEFAULT '',
  worker_session  TEXT,                              -- the worker's own id; null until it reports one
  model           TEXT,
  state           TEXT NOT NULL DEFAULT 'open',
  reason          TEXT NOT NULL DEFAULT ''
) STRICT;

-- Earlier and forked ids of a session.
CREATE TABLE session_ids (
  session        INTEGER NOT NULL REFERENCES sessions,
  worker_session TEXT NOT NULL,
  attempt_n      INTEGER,
  seen_at        INTEGER NOT NULL,
  PRIMARY KEY (session, worker_session)
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
  id              INTEGER PRIMARY KEY,
  state           TEXT NOT NULL DEFAULT 'queued',
  hold            TEXT NOT NULL CHECK (hold IN ('', 'dependency') OR hold IN ('checkpoint', 'pause') OR hold = 'releases'),
  due             INTEGER NOT NULL, -- not to be claimed before this; 0 once it may
  attempt         INTEGER NOT NULL DEFAULT 0, -- N of the latest; the fence
  tries           INTEGER NOT NULL DEFAULT 0,
  release_count   INTEGER NOT NULL DEFAULT 0,
  priority        INTEGER NOT NULL,
  "group"         TEXT NOT NULL,
  width           INTEGER NOT NULL,
  session         INTEGER NOT NULL REFERENCES sessions,
  worker          TEXT NOT NULL,
  adapter         TEXT NOT NULL,
  contract        TEXT NOT NULL DEFAULT 'exact',
  model           TEXT,
  model_digest    BLOB,
  program         TEXT NOT NULL,
  argv            TEXT NOT NULL,
  options         TEXT NOT NULL,
  prompt          BLOB REFERENCES objects,
  dir             TEXT NOT NULL,
  env             TEXT NOT NULL, -- names only; values are never stored
  limits          TEXT NOT NULL,
  max_tries       INTEGER NOT NULL,
  retry_delay_ms  INTEGER NOT NULL,
  if_uncertain    TEXT NOT NULL,
  not_before      INTEGER NOT NULL,
  continues       INTEGER REFERENCES jobs,
  data_class      TEXT NOT NULL DEFAULT '',
  config_digest   BLOB,
  spec_digest     BLOB NOT NULL,
  submitted_by    TEXT NOT NULL,
  submitted_at    INTEGER NOT NULL,
  ended_at        INTEGER,
  CHECK ((state IN ('succeeded', 'failed') OR state = 'cancelled') = (ended_at IS NOT NULL)),
  CHECK (hold = '' OR state = 'queued'),
  CHECK (state IN ('queued', 'cancelled') OR attempt > 0)
) STRICT;

-- What may run now, in the order in which it does; one group after the other, the best of each first.
CREATE INDEX jobs_ready ON jobs ("group", priority DESC, id) WHERE state = 'queued' AND hold = '' AND due = 0;
CREATE INDEX jobs_due ON jobs (due) WHERE state = 'queued' AND due > 0;
CREATE INDEX jobs_held ON jobs (id) WHERE state = 'queued' AND hold = 'releases';
CREATE INDEX jobs_state ON jobs (state, id);
CREATE INDEX jobs_worker ON jobs (worker, id);
CREATE INDEX jobs_continuing ON jobs (session) WHERE continues IS NOT NULL;
CREATE INDEX jobs_group ON jobs ("group", id) WHERE "group" <> '';

CREATE TABLE dependencies (
  job          INTEGER NOT NULL REFERENCES jobs,
  "on"         INTEGER NOT NULL REFERENCES jobs,
  on_failed    TEXT NOT NULL,
  on_cancelled TEXT NOT NULL,
  on_uncertain TEXT NOT NULL,
  PRIMARY KEY (job, "on"),
  CHECK ("on" < job)                                 -- so there are no cycles
) STRICT, WITHOUT ROWID;
CREATE INDEX dependencies_on ON dependencies ("on");

CREATE TABLE labels (
  label TEXT NOT NULL,
  job   INTEGER NOT NULL REFERENCES jobs,
  PRIMARY KEY (label, job)
) STRICT, WITHOUT ROWID;
CREATE INDEX labels_job ON labels (job);

-- Keys make a submission idempotent and outlive their jobs, so they do not refer to them.
CREATE TABLE keys (
  key     TEXT PRIMARY KEY,
  request BLOB NOT NULL, -- the digest of what was asked for
  job     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE attempts (
  job             INTEGER NOT NULL REFERENCES jobs,
  n               INTEGER NOT NULL,
  session         INTEGER NOT NULL REFERENCES sessions,
  state           TEXT NOT NULL,
  nonce_digest    BLOB NOT NULL,
  owner_lock      TEXT NOT NULL DEFAULT '',          -- file name under locks/; empty for an owner by identity
  owner           TEXT NOT NULL,
  keeper          TEXT,
  permit          INTEGER REFERENCES permits,
  claimed_at      INTEGER NOT NULL,
  dispatched_at   INTEGER,
  ended_at        INTEGER,
  seen            TEXT,
  outcome         TEXT,
  code            TEXT,
  detail          TEXT NOT NULL DEFAULT '',
  model_asked     TEXT,
  model_served    TEXT,
  result          BLOB REFERENCES objects,
  stdout          BLOB REFERENCES objects,
  stderr          BLOB REFERENCES objects,
  PRIMARY KEY (job, n),
  CHECK ((state IN ('claimed', 'running')) = (ended_at IS NULL)),
  CHECK (state <> 'running' OR dispatched_at IS NOT NULL),
  CHECK (state <> 'uncertain' OR outcome = 'ambiguous'),
  CHECK (dispatched_at IS NULL OR permit IS NOT NULL)
) STRICT, WITHOUT ROWID;
-- One open attempt in a session, and so of a job, which has one session for good.
CREATE UNIQUE INDEX attempts_one_open ON attempts (session) WHERE state <> 'ended';

-- Single-use authority for one effect. The binding digest covers the exact call and a nonce.
CREATE TABLE permits (
  id           INTEGER PRIMARY KEY,
  state        TEXT NOT NULL DEFAULT 'issued',
  job          INTEGER,
  attempt_n    INTEGER,
  parent       INTEGER REFERENCES permits,
  actor        TEXT NOT NULL DEFAULT '',
  effect       TEXT NOT NULL,
  target       TEXT NOT NULL DEFAULT '',
  binding      BLOB NOT NULL,
  budget       TEXT,
  policy       TEXT NOT NULL DEFAULT '',
  boot         TEXT NOT NULL DEFAULT '',             -- expiry counts by this boot's clock while it lasts
  issued_at    INTEGER NOT NULL,
  not_before   INTEGER NOT NULL DEFAULT 0,
  expires_at   INTEGER,
  consumed_at  INTEGER,
  preflight    INTEGER,                              -- the receipt that was committed with the consumption
  receipt      INTEGER,                              -- the receipt of its outcome
  outcome      TEXT,
  error_type   TEXT,
  duration_ms  INTEGER,
  settled_at   INTEGER,
  revoked_at   INTEGER,
  reason       TEXT NOT NULL DEFAULT '',
  CHECK ((state IN ('consumed', 'settled')) = (consumed_at IS NOT NULL)),
  CHECK ((state = 'settled') = (outcome IS NOT NULL)),
  CHECK ((state = 'settled') = (settled_at IS NOT NULL)),
  CHECK ((state = 'revoked') = (revoked_at IS NOT NULL))
) STRICT;

-- The chain: digest = H(previous, seq, kind, subject, body digest).
CREATE TABLE receipts (
  seq      INTEGER PRIMARY KEY,
  previous BLOB NOT NULL,
  kind     TEXT NOT NULL,
  subject  TEXT NOT NULL,
  body     BLOB NOT NULL,                            -- the digest of the bytes
  bytes    BLOB NOT NULL,
  digest   BLOB NOT NULL,
  mac      BLOB,
  key_id   TEXT
) STRICT;

-- Exported prefixes of the chain.
CREATE TABLE segments (
  first       INTEGER PRIMARY KEY,
  last        INTEGER NOT NULL,
  last_digest BLOB NOT NULL,
  file_digest BLOB NOT NULL,
  exported_at INTEGER NOT NULL
) STRICT;

-- Decisions about what was uncertain; added, never changed.
CREATE TABLE resolutions (
  id       INTEGER PRIMARY KEY,
  kind     TEXT NOT NULL,
  subject  TEXT NOT NULL,
  decision TEXT NOT NULL,
  evidence BLOB,
  charge   INTEGER,
  by       TEXT NOT NULL,
  because  TEXT NOT NULL,
  at       INTEGER NOT NULL,
  UNIQUE (kind, subject)
) STRICT;

-- What was noticed and belongs to no state: late results, second parents, leaked processes.
CREATE TABLE findings (
  id      INTEGER PRIMARY KEY,
  kind    TEXT NOT NULL,
  subject TEXT NOT NULL,
  body    TEXT NOT NULL,
  object  BLOB REFERENCES objects,
  at      INTEGER NOT NULL
) STRICT;
CREATE INDEX findings_subject ON findings (subject);

-- The outbox: each row committed together with the change that it tells of.
CREATE TABLE events (
  id      INTEGER PRIMARY KEY,
  subject TEXT NOT NULL,
  kind    TEXT NOT NULL,
  job     INTEGER,
  body    TEXT NOT NULL DEFAULT '{}',
  at      INTEGER NOT NULL,
  UNIQUE (subject, kind)
) STRICT;

-- Who started whom: the only tree.
CREATE TABLE edges (
  child           INTEGER PRIMARY KEY REFERENCES sessions,
  parent          INTEGER NOT NULL REFERENCES sessions,
  parent_job      INTEGER,
  parent_attempt  INTEGER,
  parent_turn     TEXT,
  parent_subagent TEXT,
  child_subagent  TEXT,
  role            TEXT NOT NULL DEFAULT '',
  started_at      INTEGER NOT NULL,
  stopped_at      INTEGER,
  status          TEXT,
  CHECK (child <> parent)
) STRICT;
CREATE INDEX edges_parent ON edges (parent, child);
CREATE INDEX edges_attempt ON edges (parent_job, parent_attempt) WHERE parent_job IS NOT NULL;

-- One turn's usage and cost in one session; identity is (session, turn), so what is reported twice counts once.
CREATE TABLE runs (
  session   INTEGER NOT NULL REFERENCES sessions,
  turn      TEXT NOT NULL,
  job       INTEGER,
  attempt_n INTEGER,
  model     TEXT NOT NULL DEFAULT '',
  input     INTEGER NOT NULL DEFAULT 0,
  cached    INTEGER NOT NULL DEFAULT 0,
  output    INTEGER NOT NULL DEFAULT 0,
  reasoning INTEGER NOT NULL DEFAULT 0,
  calls     INTEGER NOT NULL DEFAULT 0,
  cost      INTEGER,                                 -- nano-USD; null is unknown, never zero
  estimated INTEGER NOT NULL DEFAULT 0,
  assumed   INTEGER NOT NULL DEFAULT 0,
  at        INTEGER NOT NULL,
  PRIMARY KEY (session, turn)
) STRICT, WITHOUT ROWID;

-- Durable orders that something must not go on.
CREATE TABLE stops (
  id       INTEGER PRIMARY KEY,
  scope    TEXT NOT NULL,
  subject  TEXT NOT NULL,
  kind     TEXT NOT NULL DEFAULT 'stop',
  decision TEXT NOT NULL DEFAULT 'abandon',
  hard     INTEGER NOT NULL DEFAULT 0,
  by       TEXT NOT NULL,
  because  TEXT NOT NULL DEFAULT '',
  at       INTEGER NOT NULL,
  lifted_at INTEGER
) STRICT;
CREATE INDEX stops_subject ON stops (scope, subject) WHERE lifted_at IS NULL;

-- Every command that changed something. An explicit op_id also keeps the request's digest and the answer.
CREATE TABLE operations (
  id      INTEGER PRIMARY KEY,
  op_id   TEXT,
  verb    TEXT NOT NULL,
  subject TEXT NOT NULL DEFAULT '',
  request BLOB,
  answer  TEXT,
  by      TEXT NOT NULL,                             -- uid:pid
  note    TEXT NOT NULL DEFAULT '',
  at      INTEGER NOT NULL,
  CHECK ((op_id IS NULL) = (request IS NULL))
) STRICT;
CREATE UNIQUE INDEX operations_op_id ON operations (op_id) WHERE op_id IS NOT NULL;

-- Every state column changes by a listed move only; none of them may be null, which no list would refuse.
CREATE TRIGGER jobs_move BEFORE UPDATE OF state ON jobs
WHEN ('job', OLD.state, NEW.state) NOT IN moves
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: job'); END;
CREATE TRIGGER attempts_move BEFORE UPDATE OF state ON attempts
WHEN ('attempt', OLD.state, NEW.state) NOT IN moves
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: attempt'); END;
CREATE TRIGGER permits_move BEFORE UPDATE OF state ON permits
WHEN ('permit', OLD.state, NEW.state) NOT IN moves
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: permit'); END;
CREATE TRIGGER sessions_move BEFORE UPDATE OF state ON sessions
WHEN ('session', OLD.state, NEW.state) NOT IN moves
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: session'); END;

-- New rows begin at the beginning.
CREATE TRIGGER jobs_begin BEFORE INSERT ON jobs WHEN NEW.state <> 'queued'
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: job'); END;
CREATE TRIGGER attempts_begin BEFORE INSERT ON attempts WHEN NEW.state <> 'claimed'
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: attempt'); END;
CREATE TRIGGER permits_begin BEFORE INSERT ON permits WHEN NEW.state <> 'issued'
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: permit'); END;
CREATE TRIGGER sessions_begin BEFORE INSERT ON sessions WHEN NEW.state <> 'open'
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: session'); END;

-- INVARIANT `frozen`: what a job was frozen as does not change.
-- INVARIANT `fence-grows`: the number of its latest attempt only grows, so that a handle of an older one stays worthless.
CREATE TRIGGER jobs_frozen BEFORE UPDATE OF id, priority, "group", width, session, worker, adapter, contract, model,
  model_digest, program, argv, options, prompt, dir, env, limits, max_tries, retry_delay_ms, if_uncertain, not_before,
  continues, data_class, config_digest, spec_digest, submitted_by, submitted_at ON jobs
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: job is frozen'); END;
CREATE TRIGGER jobs_fence BEFORE UPDATE OF attempt ON jobs WHEN NEW.attempt < OLD.attempt
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: fence'); END;

-- INVARIANT `append-only`: evidence is added, never changed.
CREATE TRIGGER receipts_kept BEFORE UPDATE ON receipts BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: receipts'); END;
CREATE TRIGGER receipts_last BEFORE DELETE ON receipts
WHEN NOT EXISTS (SELECT 1 FROM segments WHERE OLD.seq BETWEEN first AND last)
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: receipts'); END;
CREATE TRIGGER resolutions_kept BEFORE UPDATE ON resolutions
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: resolutions'); END;
CREATE TRIGGER resolutions_last BEFORE DELETE ON resolutions
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: resolutions'); END;
CREATE TRIGGER events_kept BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: events'); END;
CREATE TRIGGER findings_kept BEFORE UPDATE ON findings BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: findings'); END;
CREATE TRIGGER operations_kept BEFORE UPDATE ON operations
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: operations'); END;
CREATE TRIGGER objects_kept BEFORE UPDATE ON objects BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: objects'); END;

PRAGMA application_id = 0x41524553;
PRAGMA user_version = 1;
