"""Other queues, used as their manuals say: `peers.py NAME COUNT DIR` queues COUNT times `true` and runs them one by one.

litequeue and persist-queue write through SQLite, asked here for WAL and synchronous=FULL; huey is asked for fsync.
"""

import os
import subprocess
import sys


def litequeue(count, folder):
    import litequeue

    queue = litequeue.LiteQueue(os.path.join(folder, "litequeue.db"))
    queue.conn.execute("PRAGMA synchronous=FULL")
    for number in range(count):
        queue.put(str(number))
    while (task := queue.pop()) is not None:
        subprocess.run(["true"], check=True)
        queue.done(task.message_id)


def persistqueue(count, folder):
    import persistqueue

    queue = persistqueue.SQLiteAckQueue(os.path.join(folder, "persistqueue"), auto_commit=True)
    for connection in (queue._putter, queue._getter):
        connection.execute("PRAGMA synchronous=FULL")
    for number in range(count):
        queue.put(number)
    while queue.size:
        item = queue.get(block=False)
        subprocess.run(["true"], check=True)
        queue.ack(item)


def huey(count, folder):
    from huey import SqliteHuey

    queue = SqliteHuey(filename=os.path.join(folder, "huey.db"), fsync=True)

    @queue.task()
    def run():
        subprocess.run(["true"], check=True)

    for _ in range(count):
        run()
    while (task := queue.dequeue()) is not None:
        queue.execute(task)


if __name__ == "__main__":
    {"litequeue": litequeue, "persistqueue": persistqueue, "huey": huey}[sys.argv[1]](int(sys.argv[2]), sys.argv[3])
