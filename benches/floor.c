/* What SQLite alone costs in a process that does nothing else: it opens a store's database with our build of the library,
 * reads the schema, and reads one row, or with a second argument writes one and waits for the disk. */
#include <stdio.h>
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
    _exit(sqlite3_exec(db, "INSERT INTO operations (verb, by, at) VALUES ('floor', '', 0)", 0, 0, 0));
}
