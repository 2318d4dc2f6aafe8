/* What SQLite alone costs in a process that does nothing else: it opens a store's database with our build of the library,
 * reads the schema, and reads one row, or with a number writes as many rows as that many submissions do, copies of those
 * of job 1, in one transaction, and waits for the disk. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct sqlite3 sqlite3;
int sqlite3_open_v2(const char *name, sqlite3 **db, int flags, const char *vfs);
int sqlite3_exec(sqlite3 *db, const char *sql, int (*row)(void *, int, char **, char **), void *arg, char **error);

static int frames(void *count, int columns, char **values, char **names) {
    (void)columns, (void)names;
    sscanf(values[1], "%d", (int *)count);
    return 0;
}

int main(int argc, char **argv) {
    sqlite3 *db;
    int count = 0;
    if (argc < 2 || sqlite3_open_v2(argv[1], &db, 2 | 0x8000, 0) != 0) return 1;
    if (argc < 3) _exit(sqlite3_exec(db, "SELECT value FROM meta", 0, 0, 0));
    /* The log is kept as short as ares keeps it. */
    if (sqlite3_exec(db, "PRAGMA wal_checkpoint(NOOP)", frames, &count, 0) != 0) return 1;
    if (count > 64) sqlite3_exec(db, "PRAGMA wal_checkpoint(RESTART)", 0, 0, 0);
    sqlite3_exec(db, "PRAGMA wal_autocheckpoint=0", 0, 0, 0);
    char sql[4096];
    snprintf(sql, sizeof sql,
        "BEGIN IMMEDIATE;"
        "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < %1$d)"
        " INSERT INTO sessions (name, worker) SELECT '203105_' || hex(randomblob(8)), 'command' FROM n;"
        "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < %1$d)"
        " INSERT INTO jobs (hold, due, priority, \"group\", width, session, worker, adapter, program, argv, options, dir,"
        "  env, limits, max_tries, retry_delay_ms, if_uncertain, not_before, spec_digest, submitted_by, submitted_at)"
        " SELECT '', 0, j.priority, j.\"group\", j.width, last_insert_rowid() + 1 - n.i, j.worker, j.adapter, j.program,"
        "  j.argv, j.options, j.dir, j.env, j.limits, j.max_tries, j.retry_delay_ms, j.if_uncertain, j.not_before,"
        "  j.spec_digest, j.submitted_by, j.submitted_at FROM jobs j, n WHERE j.id = 1;"
        "INSERT INTO operations (verb, subject, by, at) VALUES ('floor', '', '', 0);"
        "COMMIT", atoi(argv[2]));
    _exit(sqlite3_exec(db, sql, 0, 0, 0));
}
