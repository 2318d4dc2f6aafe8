//! What must hold between rows, for [`super::check`]: each query gives the subjects that break its rule. What changes at
//! its own moment is told twice, in the row and in the event, the receipt or the row of what changed it, and a rule holds
//! the two against each other. A query that looks for a row of another table does so by an index, or in a list that is made
//! once: none reads a table anew for each row.

/// A rule: its word, what breaks it, and the query.
pub(super) type Rule = (&'static str, &'static str, &'static str);

/// Rules over rows whose JSON reads.
pub(super) const RULES: &[Rule] = &[
    (
        "job-attempt-state",
        "a claimed, running or uncertain job whose latest attempt is in another state",
        "SELECT j.id FROM jobs j LEFT JOIN attempts a ON a.job = j.id AND a.n = j.attempt
         WHERE j.state IN ('claimed', 'running', 'uncertain') AND (a.state IS NULL OR a.state <> j.state)",
    ),
    (
        "attempt-at-rest",
        "an attempt that is open while its job is queued or over",
        "SELECT a.job || '.' || a.n FROM attempts a JOIN jobs j ON j.id = a.job
         WHERE a.state <> 'ended' AND (j.state IN ('queued', 'succeeded', 'failed', 'cancelled') OR a.n <> j.attempt)",
    ),
    (
        "attempt-open",
        "an attempt that is claimed or running and says how it ended",
        "SELECT a.job || '.' || a.n FROM attempts a WHERE a.state IN ('claimed', 'running') AND coalesce(a.outcome, a.code,
           a.seen, a.model_served, a.result, a.stdout, a.stderr, nullif(a.detail, ''),
           CASE a.state WHEN 'claimed' THEN coalesce(a.keeper, a.dispatched_at) END) IS NOT NULL",
    ),
    (
        "state-told",
        "a job whose state is another than its latest attempt came to",
        "SELECT id FROM (SELECT j.id, j.state, (SELECT e.body ->> 'state' FROM events e
           WHERE e.subject = j.id || '.' || j.attempt AND e.kind IN ('attempt.settled', 'attempt.resolved')
           ORDER BY e.kind = 'attempt.resolved' DESC LIMIT 1) AS told,
           EXISTS (SELECT 1 FROM events e WHERE e.subject = CAST(j.id AS TEXT) AND e.kind = 'job.cancelled') AS cancelled
           FROM jobs j)
         WHERE CASE WHEN cancelled THEN state <> 'cancelled'
           WHEN told IS NULL THEN state IN ('succeeded', 'failed', 'cancelled', 'uncertain')
           ELSE state <> told END",
    ),
    (
        "ended-at",
        "a job that ended at another moment than what ended it",
        "SELECT j.id FROM jobs j WHERE j.ended_at IS NOT NULL AND j.ended_at IS NOT coalesce(
           (SELECT e.at FROM events e WHERE e.subject = CAST(j.id AS TEXT) AND e.kind = 'job.cancelled'),
           (SELECT e.at FROM events e WHERE e.subject = j.id || '.' || j.attempt AND e.kind = 'attempt.resolved'),
           (SELECT e.at FROM events e WHERE e.subject = j.id || '.' || j.attempt AND e.kind = 'attempt.settled'))",
    ),
    (
        "fence",
        "a job whose fence is not its latest attempt",
        "SELECT j.id FROM jobs j WHERE j.attempt <> (SELECT coalesce(max(n), 0) FROM attempts WHERE job = j.id)",
    ),
    (
        "tries",
        "a job that counts other tries than it had",
        "SELECT j.id FROM jobs j WHERE j.tries <> (SELECT count(*) FROM attempts a
           WHERE a.job = j.id AND a.dispatched_at IS NOT NULL AND a.outcome IS NOT 'void' AND NOT EXISTS
             (SELECT 1 FROM resolutions r WHERE r.kind = 'attempt' AND r.subject = a.job || '.' || a.n
              AND r.decision = 'no-effect'))",
    ),
    (
        "releases",
        "a job that counts more releases than it had in a row",
        "SELECT j.id FROM jobs j WHERE j.release_count > 0 AND j.release_count > (SELECT count(*) FROM attempts a
           WHERE a.job = j.id AND a.outcome = 'void') OR j.release_count < 0",
    ),
    (
        "held",
        "a queued job that is held for a reason that is not there, or is not held although there is one",
        "SELECT j.id FROM jobs j WHERE j.state = 'queued' AND CASE j.hold
           WHEN 'releases' THEN j.release_count < 5
           WHEN '' THEN j.release_count >= 5 OR j.attempt = 0 AND EXISTS (SELECT 1 FROM dependencies d JOIN jobs o
             ON o.id = d.\"on\" WHERE d.job = j.id AND o.state IN ('queued', 'claimed', 'running') AND NOT EXISTS
               (SELECT 1 FROM events e WHERE e.subject = o.id || '.' || (o.attempt - (o.state <> 'queued'))
                AND e.kind = 'attempt.resolved'))
           WHEN 'dependency' THEN NOT EXISTS (SELECT 1 FROM dependencies d JOIN jobs o ON o.id = d.\"on\"
             WHERE d.job = j.id AND 'hold' = CASE o.state WHEN 'succeeded' THEN 'run' WHEN 'failed' THEN d.on_failed
               WHEN 'cancelled' THEN d.on_cancelled WHEN 'uncertain' THEN d.on_uncertain ELSE 'hold' END)
           ELSE true END",
    ),
    (
        "due",
        "a job that is due at another moment than it was told, or although it is not queued",
        "SELECT j.id FROM jobs j WHERE j.due <> 0 AND (j.state <> 'queued' OR j.due < 0 OR CASE WHEN j.attempt = 0
           THEN j.due <> j.not_before ELSE j.due <> (SELECT
             coalesce(e.body ->> 'due', CASE e.body ->> 'state' WHEN 'queued' THEN j.due ELSE 0 END) FROM events e
             WHERE e.subject = j.id || '.' || j.attempt AND e.kind = 'attempt.settled') END)",
    ),
    (
        "permit-of-attempt",
        "a dispatched attempt whose permit is missing, another's, or says another moment, call or target",
        "SELECT a.job || '.' || a.n FROM attempts a JOIN jobs j ON j.id = a.job LEFT JOIN permits p ON p.id = a.permit
         WHERE a.dispatched_at IS NOT NULL AND (p.id IS NULL OR p.job IS NOT a.job OR p.attempt_n IS NOT a.n
           OR p.consumed_at IS NOT a.dispatched_at OR p.issued_at IS NOT a.dispatched_at OR p.effect <> 'dispatch'
           OR p.settled_at IS NOT a.ended_at OR p.duration_ms IS NOT p.settled_at - p.consumed_at
           OR p.target <> CASE WHEN a.keeper IS NULL THEN 'script' ELSE j.adapter END)
         UNION ALL SELECT a.job || '.' || a.n FROM attempts a WHERE a.dispatched_at IS NULL AND a.permit IS NOT NULL",
    ),
    (
        "permit-without-outcome",
        "a permit that was consumed and has no outcome, while its attempt does not run",
        "SELECT p.id FROM permits p LEFT JOIN attempts a ON a.job = p.job AND a.n = p.attempt_n
         WHERE p.state = 'consumed' AND p.job IS NOT NULL AND coalesce(a.state, '') <> 'running'
         UNION ALL SELECT p.id FROM permits p WHERE p.state IN ('issued', 'revoked') OR p.state = 'consumed'
           AND coalesce(p.receipt, p.settled_at, p.duration_ms) IS NOT NULL",
    ),
    (
        "permit-outcome",
        "an attempt that is over and whose permit says another outcome",
        "SELECT a.job || '.' || a.n FROM attempts a JOIN permits p ON p.id = a.permit
         WHERE a.ended_at IS NOT NULL AND a.dispatched_at IS NOT NULL AND p.outcome IS NOT a.outcome",
    ),
    (
        "preflight-receipt",
        "a consumed permit without its preflight receipt",
        "SELECT p.id FROM permits p WHERE p.consumed_at IS NOT NULL AND NOT EXISTS
           (SELECT 1 FROM receipts r WHERE r.seq = p.preflight AND r.kind = 'preflight'
            AND r.subject = p.job || '.' || p.attempt_n)
         AND NOT EXISTS (SELECT 1 FROM segments s WHERE p.preflight BETWEEN s.first AND s.last)",
    ),
    (
        "resolution",
        "an ambiguous attempt that is over without a decision, or one that is not and has one",
        "SELECT a.job || '.' || a.n FROM attempts a WHERE a.outcome IS NOT NULL
           AND (a.state = 'ended' AND a.outcome = 'ambiguous') <> EXISTS
           (SELECT 1 FROM resolutions r WHERE r.kind = 'attempt' AND r.subject = a.job || '.' || a.n)",
    ),
    (
        "resolution-told",
        "a decision that its event tells otherwise",
        "SELECT r.subject FROM resolutions r JOIN jobs j ON j.id = CAST(r.subject AS INTEGER)
         LEFT JOIN events e ON e.subject = r.subject AND e.kind = 'attempt.resolved'
         WHERE r.kind <> 'attempt' OR e.id IS NULL OR e.at <> r.at OR e.body ->> 'decision' IS NOT r.decision",
    ),
    (
        "outcome-of-job",
        "a succeeded job whose latest attempt did not end well",
        "SELECT j.id FROM jobs j JOIN attempts a ON a.job = j.id AND a.n = j.attempt
         WHERE j.state = 'succeeded' AND a.outcome <> 'ok' AND NOT EXISTS (SELECT 1 FROM resolutions r
           WHERE r.kind = 'attempt' AND r.subject = a.job || '.' || a.n AND r.decision = 'ok')",
    ),
    (
        "event",
        "an attempt that is over and whose event is missing, or tells it otherwise",
        "SELECT a.job || '.' || a.n FROM attempts a LEFT JOIN events e
           ON e.subject = a.job || '.' || a.n AND e.kind = 'attempt.settled'
         WHERE a.ended_at IS NOT NULL AND (e.id IS NULL OR e.job IS NOT a.job OR e.at <> a.ended_at
           OR e.body ->> 'code' IS NOT a.code)",
    ),
    (
        "event-of",
        "an event of something else than its job, or of a kind that there is not",
        "SELECT 'event ' || e.id FROM events e WHERE e.job IS NULL OR e.job <> CAST(e.subject AS INTEGER)
           OR CASE e.kind WHEN 'attempt.settled' THEN e.subject NOT LIKE '%.%' WHEN 'attempt.resolved' THEN
             EXISTS (SELECT 1 FROM jobs j WHERE j.id = e.job) AND NOT EXISTS
               (SELECT 1 FROM resolutions r WHERE r.kind = 'attempt' AND r.subject = e.subject)
           WHEN 'job.cancelled' THEN CASE e.body ->> 'because' WHEN 'stop' THEN e.body <> '{\"because\":\"stop\"}'
             OR EXISTS (SELECT 1 FROM jobs j WHERE j.id = e.job) AND (e.subject, e.at) NOT IN
               (SELECT s.subject, s.at FROM stops s WHERE s.scope = 'job')
             WHEN 'replaced' THEN coalesce(e.body ->> 'by', 0) <= e.job OR e.body ->> 'by' > (SELECT max(id) FROM jobs)
               OR EXISTS (SELECT 1 FROM jobs j WHERE j.id = e.body ->> 'by' AND j.submitted_at <> e.at)
             WHEN 'dependency' THEN EXISTS (SELECT 1 FROM jobs j WHERE j.id = e.job) AND NOT EXISTS
               (SELECT 1 FROM dependencies d JOIN jobs o ON o.id = d.\"on\" WHERE d.job = e.job
                  AND d.\"on\" = e.body ->> 'on' AND (o.ended_at IS NULL OR o.state = e.body ->> 'state'
                    OR e.body ->> 'state' = 'uncertain')
                UNION ALL SELECT 1 FROM findings f WHERE f.kind = 'dependency-removed' AND f.subject = e.subject)
             ELSE true END
           ELSE true END",
    ),
    (
        "model-asked",
        "an attempt that asked for another model than its job",
        "SELECT a.job || '.' || a.n FROM attempts a JOIN jobs j ON j.id = a.job WHERE a.model_asked IS NOT j.model",
    ),
    (
        "session",
        "an attempt in another session than its job",
        "SELECT a.job || '.' || a.n FROM attempts a JOIN jobs j ON j.id = a.job WHERE a.session <> j.session",
    ),
    (
        "session-of-job",
        "a job in the session of another that it does not continue, or of another worker",
        "SELECT j.id FROM jobs j JOIN sessions s ON s.id = j.session WHERE s.worker <> j.worker
         UNION ALL SELECT j.id FROM jobs j JOIN jobs o ON o.id = j.continues WHERE o.session <> j.session
         UNION ALL SELECT min(j.id) FROM jobs j WHERE j.continues IS NULL GROUP BY j.session HAVING count(*) > 1
         UNION ALL SELECT 'session ' || s.id FROM sessions s
           WHERE s.id < (SELECT max(id) FROM sessions) AND s.id NOT IN
             (SELECT child FROM edges UNION ALL SELECT parent FROM edges)
             AND s.id NOT IN (SELECT session FROM jobs)",
    ),
    (
        "session-broken",
        "a session that is broken for no reason of an attempt of its own, or has one and is not",
        "SELECT 'session ' || s.id FROM sessions s WHERE s.state = 'open' AND s.reason <> ''
         OR s.state = 'broken' AND s.reason NOT IN
           (SELECT a.job || '.' || a.n || ': ' || a.detail FROM jobs j JOIN attempts a ON a.job = j.id AND a.session = s.id
            WHERE j.id = CAST(s.reason AS INTEGER))",
    ),
    (
        "session-id",
        "a session whose worker's id was never reported, or not by an attempt of its own",
        "SELECT 'session ' || s.id FROM sessions s WHERE s.worker_session IS NULL AND EXISTS
           (SELECT 1 FROM session_ids i WHERE i.session = s.id)
         OR s.worker_session IS NOT NULL AND NOT EXISTS
           (SELECT 1 FROM session_ids i WHERE i.session = s.id AND i.worker_session = s.worker_session)
         UNION ALL SELECT 'session ' || i.session FROM session_ids i WHERE i.attempt_n IS NULL OR (i.session, i.attempt_n) NOT IN
           (SELECT a.session, a.n FROM attempts a)",
    ),
    (
        "edge",
        "an edge that no job of the child and no attempt of the parent tells",
        "SELECT 'session ' || e.child FROM edges e
         LEFT JOIN attempts a ON a.job = e.parent_job AND a.n = e.parent_attempt AND a.session = e.parent
         WHERE a.job IS NULL OR (e.child, e.parent_job || '.' || e.parent_attempt, e.started_at) NOT IN
           (SELECT j.session, j.submitted_by ->> 'attempt', j.submitted_at FROM jobs j
            WHERE j.submitted_by ->> 'attempt' IS NOT NULL)",
    ),
    (
        "run",
        "a turn that no attempt of its session had",
        "SELECT 'session ' || r.session FROM runs r LEFT JOIN attempts a ON a.job = r.job AND a.n = r.attempt_n
           AND a.session = r.session WHERE a.job IS NULL OR r.turn <> a.job || '.' || a.n",
    ),
    (
        "stop-lifted",
        "a stop that was lifted by no decision",
        "SELECT 'stop ' || s.id FROM stops s JOIN jobs j ON j.id = CAST(s.subject AS INTEGER) WHERE s.lifted_at IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM attempts a JOIN events e ON e.subject = a.job || '.' || a.n
           AND e.kind = 'attempt.resolved' WHERE a.job = j.id AND e.at = s.lifted_at)",
    ),
    (
        "key",
        "a key that stands for a job that never was",
        "SELECT 'key ' || k.key FROM keys k WHERE k.job < 1 OR k.job > (SELECT coalesce(max(id), 0) FROM jobs)",
    ),
    (
        "operation-answer",
        "an operation whose answer is about something else than it was",
        "SELECT 'operation ' || o.id FROM operations o WHERE o.answer IS NOT NULL AND CASE o.verb
           WHEN 'submit' THEN o.answer ->> '$.Job' IS NOT NULL AND o.answer ->> '$.Job' <> CAST(o.subject AS INTEGER)
           WHEN 'stop' THEN coalesce(o.answer ->> '$[0].job', '') <> CASE o.subject WHEN '' THEN '' ELSE CAST(o.subject AS INTEGER) END
           WHEN 'claim' THEN o.answer ->> '$.handle' NOT LIKE o.subject || '-%'
           WHEN 'settle' THEN o.answer ->> '$.attempt' IS NOT o.subject
           WHEN 'decide' THEN o.answer ->> '$.attempt' IS NOT o.subject ELSE false END",
    ),
    (
        "object-named",
        "an attempt that names content which is not there",
        "SELECT a.job || '.' || a.n FROM attempts a WHERE
           (a.result IS NOT NULL AND NOT EXISTS (SELECT 1 FROM objects o WHERE o.digest = a.result))
           OR (a.stdout IS NOT NULL AND NOT EXISTS (SELECT 1 FROM objects o WHERE o.digest = a.stdout))
           OR (a.stderr IS NOT NULL AND NOT EXISTS (SELECT 1 FROM objects o WHERE o.digest = a.stderr))
         UNION ALL SELECT 'finding ' || f.id FROM findings f
           WHERE f.object IS NOT NULL AND f.object NOT IN (SELECT digest FROM objects)
         UNION ALL SELECT r.subject FROM resolutions r
           WHERE r.evidence IS NOT NULL AND r.evidence NOT IN (SELECT digest FROM objects)",
    ),
    (
        "meta",
        "a fact of the store itself that is missing or does not read",
        "SELECT w.value FROM json_each('[\"id\", \"place\", \"made_at\"]') w LEFT JOIN meta m ON m.name = w.value
         WHERE m.name IS NULL OR CASE m.name WHEN 'id' THEN m.value NOT GLOB replace(hex(zeroblob(16)), '00', '[0-9a-f][0-9a-f]')
           WHEN 'made_at' THEN m.value NOT GLOB '[0-9]*-*T*Z' ELSE false END",
    ),
];

/// Columns of JSON that the rules above look into: what does not read there is told first.
pub(super) const JSON: &[(&str, &str)] = &[
    ("event", "SELECT id FROM events WHERE NOT json_valid(body)"),
    ("job", "SELECT id FROM jobs WHERE NOT json_valid(submitted_by)"),
    ("operation", "SELECT id FROM operations WHERE answer IS NOT NULL AND NOT json_valid(answer)"),
    ("finding", "SELECT id FROM findings WHERE NOT json_valid(body)"),
    ("resolution", "SELECT id FROM resolutions WHERE NOT json_valid(by)"),
    ("stop", "SELECT id FROM stops WHERE NOT json_valid(by)"),
];

/// Columns that no ares of this version writes, with what they hold then.
pub(super) const UNWRITTEN: &[(&str, &str, &str)] = &[
    ("sessions", "model", "NULL"),
    ("jobs", "contract", "'exact'"),
    ("jobs", "model_digest", "NULL"),
    ("jobs", "data_class", "''"),
    ("permits", "parent", "NULL"),
    ("permits", "budget", "NULL"),
    ("permits", "policy", "''"),
    ("permits", "boot", "''"),
    ("permits", "not_before", "0"),
    ("permits", "expires_at", "NULL"),
    ("permits", "error_type", "NULL"),
    ("permits", "revoked_at", "NULL"),
    ("permits", "reason", "''"),
    ("receipts", "mac", "NULL"),
    ("receipts", "key_id", "NULL"),
    ("resolutions", "charge", "NULL"),
    ("edges", "parent_turn", "NULL"),
    ("edges", "parent_subagent", "NULL"),
    ("edges", "child_subagent", "NULL"),
    ("edges", "role", "''"),
    ("edges", "stopped_at", "NULL"),
    ("edges", "status", "NULL"),
    ("runs", "estimated", "0"),
    ("runs", "assumed", "0"),
];
