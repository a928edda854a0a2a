"""A store that is written at an address.

It has the files of any store, and one object more for each epoch: `journal-1.log.3` continues `journal-1.log` after
`journal-1.log.2`. The writer has a copy on its own disk, from which it reads. Nothing is listed, and nothing renamed.

**One writer.** A *lease*, the object `LEASE`, is renewed while a session is open; another writer is refused until it is
released, or has run out. Clocks and pauses cannot be trusted, so nothing depends on the lease: its holder writes its
token into `CURRENT`, by a put that only holds if no other process has (`If-Match`). An epoch is an object that is put
where none is (`If-None-Match`); it is committed when `CURRENT` is still the writer's own after that. So a process that
opens the store later sees every epoch that was committed, and what an overtaken writer puts is never seen.
"""
