-- The whole schema of a store, version 1. Read this first.
--
-- Times (…_at, due, not_before) are UTC milliseconds, spans …_ms, money nano-USD, digests the 32 raw bytes of SHA-256.
-- Every state column has a CHECK, and a trigger that refuses every move that is not in `moves`; the same lists stand
-- in src/domain and a test compares the two over every pair. Evidence is append-only, by trigger.
--
-- Every command parses all of this and checks what it writes against it, so it is written for speed where that costs
-- nothing else: lists stand in pairs, because SQLite compares two values in place and builds a table of its own, with
-- a cache of pages, for three; and comments do not go into the file.

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
  size   INTEGER NOT NULL CHECK (size >= 0),
  bytes  BLOB CHECK (bytes IS NULL OR length(bytes) = size)
) STRICT;

-- One conversation of a worker; every job has one, ours or foreign ones recorded from hooks.
CREATE TABLE sessions (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  name            TEXT NOT NULL UNIQUE,              -- YYYYMMDD_HHMMSS_ and six hex digits, or a foreign id
  worker          TEXT NOT NULL,
  credential_home TEXT NOT NULL DEFAULT '',
  worker_session  TEXT,                              -- the worker's own id; null until it reports one
  model           TEXT,
  state           TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'broken')),
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
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  state           TEXT NOT NULL DEFAULT 'queued'
                  CHECK (state IN ('queued', 'claimed') OR state IN ('running', 'uncertain') OR state IN ('succeeded', 'failed') OR state = 'cancelled'),
  hold            TEXT NOT NULL DEFAULT '' CHECK (hold IN ('', 'dependency') OR hold IN ('checkpoint', 'pause') OR hold = 'releases'),
  due             INTEGER NOT NULL DEFAULT 0 CHECK (due >= 0), -- not to be claimed before this; 0 once it may
  attempt         INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0), -- N of the latest; the fence
  tries           INTEGER NOT NULL DEFAULT 0 CHECK (tries >= 0),
  release_count   INTEGER NOT NULL DEFAULT 0 CHECK (release_count >= 0),
  priority        INTEGER NOT NULL DEFAULT 0,
  "group"         TEXT NOT NULL DEFAULT '',
  width           INTEGER NOT NULL DEFAULT 1 CHECK (width > 0),
  session         INTEGER NOT NULL REFERENCES sessions,
  worker          TEXT NOT NULL,
  adapter         TEXT NOT NULL,
  contract        TEXT NOT NULL DEFAULT 'exact' CHECK (contract IN ('exact', 'route')),
  model           TEXT,
  model_digest    BLOB,
  program         TEXT NOT NULL,
  argv            TEXT NOT NULL CHECK (json_valid(argv)),
  options         TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(options)),
  prompt          BLOB REFERENCES objects,
  dir             TEXT NOT NULL,
  env             TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(env)), -- names only; values are never stored
  limits          TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(limits)),
  max_tries       INTEGER NOT NULL DEFAULT 1 CHECK (max_tries > 0),
  retry_delay_ms  INTEGER NOT NULL DEFAULT 1000 CHECK (retry_delay_ms >= 0),
  if_uncertain    TEXT NOT NULL DEFAULT 'hold' CHECK (if_uncertain IN ('hold', 'retry') OR if_uncertain = 'fail'),
  not_before      INTEGER NOT NULL DEFAULT 0,
  continues       INTEGER REFERENCES jobs,
  data_class      TEXT NOT NULL DEFAULT '',
  config_digest   BLOB,
  spec_digest     BLOB NOT NULL CHECK (length(spec_digest) = 32),
  submitted_by    TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(submitted_by)),
  submitted_at    INTEGER NOT NULL,
  ended_at        INTEGER,
  CHECK ((state IN ('succeeded', 'failed') OR state = 'cancelled') = (ended_at IS NOT NULL)),
  CHECK (hold = '' OR state = 'queued'),
  CHECK (state IN ('queued', 'cancelled') OR attempt > 0)
) STRICT;

-- What may run now, in the order in which it does; one group after the other, the best of each first.
CREATE INDEX jobs_ready ON jobs ("group", priority DESC, id) WHERE state = 'queued' AND hold = '' AND due = 0;
CREATE INDEX jobs_due ON jobs (due) WHERE state = 'queued' AND due > 0;
CREATE INDEX jobs_open ON jobs (state, "group") WHERE state IN ('claimed', 'running') OR state = 'uncertain';
CREATE INDEX jobs_state ON jobs (state, id);
CREATE INDEX jobs_worker ON jobs (worker, id);
CREATE INDEX jobs_group ON jobs ("group", id) WHERE "group" <> '';

CREATE TABLE dependencies (
  job          INTEGER NOT NULL REFERENCES jobs,
  "on"         INTEGER NOT NULL REFERENCES jobs,
  on_failed    TEXT NOT NULL CHECK (on_failed IN ('hold', 'cancel') OR on_failed = 'run'),
  on_cancelled TEXT NOT NULL CHECK (on_cancelled IN ('hold', 'cancel') OR on_cancelled = 'run'),
  on_uncertain TEXT NOT NULL CHECK (on_uncertain IN ('hold', 'cancel') OR on_uncertain = 'run'),
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
  request BLOB NOT NULL CHECK (length(request) = 32), -- the digest of what was asked for
  job     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE attempts (
  job             INTEGER NOT NULL REFERENCES jobs,
  n               INTEGER NOT NULL CHECK (n > 0),
  session         INTEGER NOT NULL REFERENCES sessions,
  state           TEXT NOT NULL CHECK (state IN ('claimed', 'running') OR state IN ('uncertain', 'ended')),
  nonce_digest    BLOB NOT NULL CHECK (length(nonce_digest) = 32),
  owner_lock      TEXT NOT NULL DEFAULT '',          -- file name under locks/; empty for an owner by identity
  owner           TEXT NOT NULL CHECK (json_valid(owner)),
  keeper          TEXT CHECK (keeper IS NULL OR json_valid(keeper)),
  permit          INTEGER REFERENCES permits,
  claimed_at      INTEGER NOT NULL,
  dispatched_at   INTEGER,
  ended_at        INTEGER,
  seen            TEXT CHECK (seen IS NULL OR json_valid(seen)),
  outcome         TEXT CHECK (outcome IN ('ok', 'error') OR outcome IN ('ambiguous', 'void')),
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
CREATE UNIQUE INDEX attempts_one_open ON attempts (job) WHERE state <> 'ended';
CREATE UNIQUE INDEX attempts_one_per_session ON attempts (session) WHERE state <> 'ended';
CREATE INDEX attempts_session ON attempts (session, job, n);

-- Single-use authority for one effect. The binding digest covers the exact call and a nonce.
CREATE TABLE permits (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  state        TEXT NOT NULL DEFAULT 'issued' CHECK (state IN ('issued', 'consumed') OR state IN ('settled', 'revoked')),
  job          INTEGER,
  attempt_n    INTEGER,
  parent       INTEGER REFERENCES permits,
  actor        TEXT NOT NULL DEFAULT '',
  effect       TEXT NOT NULL,
  target       TEXT NOT NULL DEFAULT '',
  binding      BLOB NOT NULL CHECK (length(binding) = 32),
  budget       TEXT CHECK (budget IS NULL OR json_valid(budget)),
  policy       TEXT NOT NULL DEFAULT '',
  boot         TEXT NOT NULL DEFAULT '',             -- expiry counts by this boot's clock while it lasts
  issued_at    INTEGER NOT NULL,
  not_before   INTEGER NOT NULL DEFAULT 0,
  expires_at   INTEGER,
  consumed_at  INTEGER,
  preflight    INTEGER,                              -- the receipt that was committed with the consumption
  outcome      TEXT CHECK (outcome IN ('ok', 'error') OR outcome IN ('ambiguous', 'void')),
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
CREATE INDEX permits_open ON permits (state) WHERE state IN ('issued', 'consumed');
CREATE INDEX permits_attempt ON permits (job, attempt_n);

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

-- The chain: digest = H(previous, seq, kind, subject, body digest). Bodies stand apart and may be dropped.
CREATE TABLE receipts (
  seq      INTEGER PRIMARY KEY,
  previous BLOB NOT NULL CHECK (length(previous) = 32),
  kind     TEXT NOT NULL,
  subject  TEXT NOT NULL,
  body     BLOB NOT NULL CHECK (length(body) = 32),
  digest   BLOB NOT NULL CHECK (length(digest) = 32),
  mac      BLOB,
  key_id   TEXT
) STRICT;

CREATE INDEX receipts_subject ON receipts (subject);

CREATE TABLE receipt_bodies (
  seq   INTEGER PRIMARY KEY REFERENCES receipts,
  bytes BLOB NOT NULL
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
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  kind     TEXT NOT NULL CHECK (kind IN ('attempt', 'delivery') OR kind IN ('reservation', 'review') OR kind IN ('step', 'permit')),
  subject  TEXT NOT NULL,
  decision TEXT NOT NULL,
  evidence BLOB,
  charge   INTEGER,
  by       TEXT NOT NULL CHECK (json_valid(by)),
  because  TEXT NOT NULL,
  at       INTEGER NOT NULL,
  UNIQUE (kind, subject)
) STRICT;

-- What was noticed and belongs to no state: late results, second parents, leaked processes.
CREATE TABLE findings (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  kind    TEXT NOT NULL,
  subject TEXT NOT NULL,
  body    TEXT NOT NULL CHECK (json_valid(body)),
  object  BLOB REFERENCES objects,
  at      INTEGER NOT NULL
) STRICT;
CREATE INDEX findings_subject ON findings (subject);

-- The outbox: each row committed together with the change that it tells of.
CREATE TABLE events (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  subject TEXT NOT NULL,
  kind    TEXT NOT NULL,
  job     INTEGER,
  body    TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(body)),
  at      INTEGER NOT NULL,
  UNIQUE (subject, kind)
) STRICT;

CREATE TABLE deliveries (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  event      INTEGER NOT NULL REFERENCES events,
  sink       TEXT NOT NULL,
  try        INTEGER NOT NULL DEFAULT 1,
  state      TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'claimed') OR state IN ('delivered', 'failed') OR state = 'uncertain'),
  owner      TEXT CHECK (owner IS NULL OR json_valid(owner)),
  owner_lock TEXT NOT NULL DEFAULT '',
  due        INTEGER NOT NULL DEFAULT 0,
  code       TEXT,
  detail     TEXT NOT NULL DEFAULT '',
  at         INTEGER NOT NULL,
  UNIQUE (event, sink, try)
) STRICT;
CREATE INDEX deliveries_open ON deliveries (sink, state, event) WHERE state IN ('pending', 'claimed') OR state = 'uncertain';

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
  input     INTEGER NOT NULL DEFAULT 0 CHECK (input >= 0),
  cached    INTEGER NOT NULL DEFAULT 0 CHECK (cached >= 0),
  output    INTEGER NOT NULL DEFAULT 0 CHECK (output >= 0),
  reasoning INTEGER NOT NULL DEFAULT 0 CHECK (reasoning >= 0),
  calls     INTEGER NOT NULL DEFAULT 0 CHECK (calls >= 0),
  cost      INTEGER,                                 -- nano-USD; null is unknown, never zero
  estimated INTEGER NOT NULL DEFAULT 0 CHECK (estimated IN (0, 1)),
  assumed   INTEGER NOT NULL DEFAULT 0 CHECK (assumed IN (0, 1)),
  at        INTEGER NOT NULL,
  PRIMARY KEY (session, turn)
) STRICT, WITHOUT ROWID;

CREATE TABLE budgets (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
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
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  budget   INTEGER NOT NULL REFERENCES budgets,
  start_at INTEGER NOT NULL,
  end_at   INTEGER,
  "limit"  INTEGER,
  spent    INTEGER NOT NULL DEFAULT 0,
  reserved INTEGER NOT NULL DEFAULT 0 CHECK (reserved >= 0),
  UNIQUE (budget, start_at)
) STRICT;

CREATE TABLE reservations (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  job       INTEGER,
  attempt_n INTEGER,
  period    INTEGER NOT NULL REFERENCES budget_periods,
  unit      TEXT NOT NULL,
  amount    INTEGER NOT NULL CHECK (amount > 0),
  charge    INTEGER,
  state     TEXT NOT NULL DEFAULT 'held' CHECK (state IN ('held', 'charged') OR state IN ('released', 'unknown')),
  at        INTEGER NOT NULL,
  CHECK ((state = 'charged') = (charge IS NOT NULL))
) STRICT;
CREATE INDEX reservations_attempt ON reservations (job, attempt_n);
CREATE INDEX reservations_open ON reservations (state) WHERE state IN ('held', 'unknown');

-- Durable orders that something must not go on.
CREATE TABLE stops (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  scope    TEXT NOT NULL CHECK (scope IN ('job', 'tree') OR scope IN ('label', 'group') OR scope IN ('worker', 'all')),
  subject  TEXT NOT NULL,
  kind     TEXT NOT NULL DEFAULT 'stop' CHECK (kind IN ('stop', 'pause')),
  decision TEXT NOT NULL DEFAULT 'abandon',
  hard     INTEGER NOT NULL DEFAULT 0 CHECK (hard IN (0, 1)),
  by       TEXT NOT NULL CHECK (json_valid(by)),
  because  TEXT NOT NULL DEFAULT '',
  at       INTEGER NOT NULL,
  lifted_at INTEGER
) STRICT;
CREATE INDEX stops_subject ON stops (scope, subject) WHERE lifted_at IS NULL;

CREATE TABLE workflows (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  name           TEXT NOT NULL,
  state          TEXT NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'held') OR state IN ('succeeded', 'failed') OR state = 'cancelled'),
  plan           BLOB NOT NULL REFERENCES objects,
  plan_digest    BLOB NOT NULL,
  catalog_digest BLOB,
  config_digest  BLOB,
  bounds         TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(bounds)),
  submitted_at   INTEGER NOT NULL,
  ended_at       INTEGER
) STRICT;

CREATE TABLE steps (
  workflow   INTEGER NOT NULL REFERENCES workflows,
  name       TEXT NOT NULL,
  position   INTEGER NOT NULL,
  state      TEXT NOT NULL DEFAULT 'blocked'
             CHECK (state IN ('blocked', 'submitted') OR state IN ('waiting', 'held') OR state IN ('done', 'failed') OR state = 'cancelled'),
  job        INTEGER REFERENCES jobs,
  checkpoint INTEGER NOT NULL DEFAULT 0 CHECK (checkpoint IN (0, 1)),
  result     BLOB REFERENCES objects,
  PRIMARY KEY (workflow, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoint_passes (
  workflow  INTEGER NOT NULL,
  step      TEXT NOT NULL,
  result    BLOB NOT NULL,
  by        TEXT NOT NULL CHECK (json_valid(by)),
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

CREATE TABLE reviews (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  job        INTEGER NOT NULL UNIQUE REFERENCES jobs,
  session    INTEGER REFERENCES sessions,
  state      TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'claimed') OR state IN ('uncertain', 'accepted') OR state = 'rejected'),
  owner      TEXT CHECK (owner IS NULL OR json_valid(owner)),
  owner_lock TEXT NOT NULL DEFAULT '',
  verdict_by TEXT,
  note       TEXT NOT NULL DEFAULT '',
  at         INTEGER NOT NULL
) STRICT;

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

-- Every command that changed something. An explicit op_id also keeps the request's digest and the answer.
CREATE TABLE operations (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
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
CREATE INDEX operations_subject ON operations (subject, id);

-- Every state column changes by a listed move only.
CREATE TRIGGER jobs_move BEFORE UPDATE OF state ON jobs
WHEN ('job', OLD.state, NEW.state) NOT IN moves
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: job'); END;
CREATE TRIGGER attempts_move BEFORE UPDATE OF state ON attempts
WHEN ('attempt', OLD.state, NEW.state) NOT IN moves
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: attempt'); END;
CREATE TRIGGER permits_move BEFORE UPDATE OF state ON permits
WHEN ('permit', OLD.state, NEW.state) NOT IN moves
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: permit'); END;
CREATE TRIGGER deliveries_move BEFORE UPDATE OF state ON deliveries
WHEN ('delivery', OLD.state, NEW.state) NOT IN moves
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: delivery'); END;
CREATE TRIGGER reservations_move BEFORE UPDATE OF state ON reservations
WHEN ('reservation', OLD.state, NEW.state) NOT IN moves
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: reservation'); END;
CREATE TRIGGER sessions_move BEFORE UPDATE OF state ON sessions
WHEN ('session', OLD.state, NEW.state) NOT IN moves
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: session'); END;
CREATE TRIGGER reviews_move BEFORE UPDATE OF state ON reviews
WHEN ('review', OLD.state, NEW.state) NOT IN moves
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: review'); END;
CREATE TRIGGER workflows_move BEFORE UPDATE OF state ON workflows
WHEN ('workflow', OLD.state, NEW.state) NOT IN moves
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: workflow'); END;
CREATE TRIGGER steps_move BEFORE UPDATE OF state ON steps
WHEN ('step', OLD.state, NEW.state) NOT IN moves
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: step'); END;

-- New rows begin at the beginning.
CREATE TRIGGER jobs_begin BEFORE INSERT ON jobs WHEN NEW.state <> 'queued'
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: job'); END;
CREATE TRIGGER attempts_begin BEFORE INSERT ON attempts WHEN NEW.state <> 'claimed'
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: attempt'); END;
CREATE TRIGGER permits_begin BEFORE INSERT ON permits WHEN NEW.state <> 'issued'
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: permit'); END;
CREATE TRIGGER deliveries_begin BEFORE INSERT ON deliveries WHEN NEW.state <> 'pending'
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: delivery'); END;
CREATE TRIGGER reservations_begin BEFORE INSERT ON reservations WHEN NEW.state <> 'held'
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: reservation'); END;
CREATE TRIGGER sessions_begin BEFORE INSERT ON sessions WHEN NEW.state <> 'open'
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: session'); END;
CREATE TRIGGER reviews_begin BEFORE INSERT ON reviews WHEN NEW.state <> 'pending'
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: review'); END;
CREATE TRIGGER workflows_begin BEFORE INSERT ON workflows WHEN NEW.state <> 'running'
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: workflow'); END;
CREATE TRIGGER steps_begin BEFORE INSERT ON steps WHEN NEW.state <> 'blocked'
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: step'); END;

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
CREATE TRIGGER receipt_bodies_kept BEFORE UPDATE ON receipt_bodies
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: receipts'); END;
CREATE TRIGGER resolutions_kept BEFORE UPDATE ON resolutions
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: resolutions'); END;
CREATE TRIGGER resolutions_last BEFORE DELETE ON resolutions
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: resolutions'); END;
CREATE TRIGGER events_kept BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: events'); END;
CREATE TRIGGER findings_kept BEFORE UPDATE ON findings BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: findings'); END;
CREATE TRIGGER operations_kept BEFORE UPDATE ON operations
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: operations'); END;
CREATE TRIGGER checkpoint_passes_kept BEFORE UPDATE ON checkpoint_passes
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: checkpoint passes'); END;
CREATE TRIGGER handoffs_kept BEFORE UPDATE ON handoffs BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: handoffs'); END;
CREATE TRIGGER objects_kept BEFORE UPDATE ON objects BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: objects'); END;

PRAGMA application_id = 0x41524553;
PRAGMA user_version = 1;
