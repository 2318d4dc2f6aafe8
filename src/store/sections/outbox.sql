-- Who is told of events, and reviews of what a job came to.

CREATE TABLE deliveries (
  id         INTEGER PRIMARY KEY,
  event      INTEGER NOT NULL REFERENCES events,
  sink       TEXT NOT NULL,
  try        INTEGER NOT NULL DEFAULT 1,
  state      TEXT NOT NULL DEFAULT 'pending',
  owner      TEXT,
  owner_lock TEXT NOT NULL DEFAULT '',
  due        INTEGER NOT NULL DEFAULT 0,
  code       TEXT,
  detail     TEXT NOT NULL DEFAULT '',
  at         INTEGER NOT NULL,
  UNIQUE (event, sink, try)
) STRICT;
CREATE INDEX deliveries_open ON deliveries (sink, state, event) WHERE state IN ('pending', 'claimed') OR state = 'uncertain';

CREATE TABLE reviews (
  id         INTEGER PRIMARY KEY,
  job        INTEGER NOT NULL UNIQUE REFERENCES jobs,
  session    INTEGER REFERENCES sessions,
  state      TEXT NOT NULL DEFAULT 'pending',
  owner      TEXT,
  owner_lock TEXT NOT NULL DEFAULT '',
  verdict_by TEXT,
  note       TEXT NOT NULL DEFAULT '',
  at         INTEGER NOT NULL
) STRICT;

CREATE TRIGGER deliveries_move BEFORE UPDATE OF state ON deliveries
WHEN ('delivery', OLD.state, NEW.state) NOT IN moves
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: delivery'); END;
CREATE TRIGGER deliveries_begin BEFORE INSERT ON deliveries WHEN NEW.state <> 'pending'
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: delivery'); END;
CREATE TRIGGER reviews_move BEFORE UPDATE OF state ON reviews
WHEN ('review', OLD.state, NEW.state) NOT IN moves
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: review'); END;
CREATE TRIGGER reviews_begin BEFORE INSERT ON reviews WHEN NEW.state <> 'pending'
BEGIN SELECT RAISE(ABORT, 'ARES_ILLEGAL_MOVE: review'); END;
