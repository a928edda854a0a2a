"""Codes of the service, and of who talks to one."""

from __future__ import annotations

from elastalog.diagnostics.catalogue.entry import Entry

WEB: tuple[Entry, ...] = (
    Entry(
        "E0920",
        "a page that there is not",
        "Relations and answers come by pages: from an `offset`, at most `limit` rows, ordered by columns that the"
        " relation has. A service sets how many rows a page may have.",
        "GET /api/v1/relations/path?order=height",
        "GET /api/v1/relations/path?order=-from,to&offset=100&limit=100",
    ),
    Entry(
        "E0921",
        "a question that took too long",
        "A service answers within a time limit, so that nobody waits for ever and one question does not keep others"
        " from being answered. Beyond it, the question is cancelled; nothing was changed.",
        "elastalog serve reach.dl -F facts",
        "elastalog serve reach.dl -F facts --question-time 60s",
    ),
    Entry(
        "E0922",
        "too much at once",
        "A service answers some questions at a time, lets some wait, and refuses more; likewise with listeners of the"
        " change feed. The refusal says after how many seconds to try again.",
        "a thousand requests at once",
        "fewer requests at once, or again after `Retry-After` seconds",
    ),
    Entry(
        "E0923",
        "no token, or a wrong one",
        "A service is for those who have its token. `elastalog serve` prints it when it starts, unless it was given"
        " by `--token` or `ELASTALOG_TOKEN`.",
        "curl http://127.0.0.1:8642/api/v1/relations",
        "curl -H 'Authorization: Bearer TOKEN' http://127.0.0.1:8642/api/v1/relations",
    ),
    Entry(
        "E0924",
        "a token that may only read",
        "A service may have two tokens: one that may read and write, and `--read-token` for those who may only read and"
        " ask. Updates and changes of rules need the first.",
        "elastalog.connect(url, token=READ_TOKEN).apply({'edge': [(1, 2)]})",
        "elastalog.connect(url, token=TOKEN).apply({'edge': [(1, 2)]})",
    ),
    Entry(
        "E0925",
        "a request that is too large",
        "A service limits the bytes of a request. A large update can be sent in parts, or applied where the facts are.",
        "an update of 100 MB to a service that takes 64",
        "two updates, or `elastalog serve … --max-body 256M`",
    ),
    Entry(
        "E0926",
        "a request that is not as it must be",
        "The body of a request is a JSON object with the fields that the call knows, and parameters have their types;"
        " `/api/docs` has them all.",
        '{"insert": {"edge": [[1, 2]]}}',
        '{"inserted": {"edge": [[1, 2]]}}',
    ),
    Entry(
        "E0927",
        "not taken from the network",
        "Rules that are sent to a service may not say what is read, written or run: directives with a path, includes"
        " and other lines for the preprocessor, functors and pragmas are refused. The program that a service was"
        " started with may have them.",
        '.output path(IO=file, filename="/home/someone/path.csv")',
        ".output path",
    ),
    Entry(
        "E0928",
        "another host than this service",
        "A request names the host that it is for. A service answers to the names it is known by only: a page of another"
        " site whose name was made to lead here is kept out by that.",
        "elastalog serve reach.dl --host 0.0.0.0",
        "elastalog serve reach.dl --host 0.0.0.0 --allow-host reach.example.org",
    ),
    Entry(
        "E0929",
        "a request of another site's page",
        "Browsers say from which site's page a request comes. A service takes those of its own pages only.",
        "fetch('http://127.0.0.1:8642/api/v1/relations') in a page of another site",
        "the same from a program, with the token",
    ),
    Entry(
        "E0930",
        "nothing at this address",
        "The service has no call of this name, or it is called by another method; `/api/docs` lists them.",
        "GET /api/v1/relation/path",
        "GET /api/v1/relations/path",
    ),
    Entry(
        "E0931",
        "no form that was asked for",
        "Facts come as JSON, CSV, Arrow stream or Parquet; `Accept` chooses.",
        "Accept: application/xml",
        "Accept: application/vnd.apache.arrow.stream",
    ),
    Entry(
        "E0932",
        "a key that was used for another update",
        "An `Idempotency-Key` stands for one update of its source, which is done once however often it is sent. Another"
        " update under the same key would be lost. A store keeps keys with digests of what came with them.",
        "two different updates with `Idempotency-Key: 1`",
        "`Idempotency-Key: 1` and `Idempotency-Key: 2`",
    ),
    Entry(
        "E0933",
        "a service that does not answer",
        "Nobody listens at the address, the connection broke, or the answer did not come in time. An update with a key"
        " can be sent again without harm.",
        'elastalog.connect("http://127.0.0.1:9999")',
        'elastalog.connect("http://127.0.0.1:8642", token="…")',
    ),
    Entry(
        "E0934",
        "an answer that is none of ours",
        "What answered is not a service of Elastalog, or one of another version.",
        'elastalog.connect("https://example.org")',
        'elastalog.connect("http://127.0.0.1:8642", token="…")',
    ),
    Entry(
        "E0935",
        "a service without a token for other machines",
        "A service that listens at another address than this machine's own can be reached by others. It needs a token,"
        " or `--no-token` says that everybody may read and write.",
        "elastalog serve reach.dl --host 0.0.0.0",
        "elastalog serve reach.dl --host 0.0.0.0 --token T",
    ),
    Entry(
        "E0938",
        "an update for another epoch",
        "An update may say after which epoch it is meant to come: then it is done only if there has been none since."
        " The undoing of a suggestion is such an update.",
        '{"deleted": {"edge": [[1, 2]]}, "after": 3}, when epoch 4 is there',
        "look at what epoch 4 changed, and send the update again with `after` 4",
    ),
    Entry(
        "E0939",
        "a question in the way of an update",
        "A service that holds its facts once (`--readers-wait`) cannot answer and update at once, and an update"
        " does not wait for a question: the question is cancelled, and nothing was changed by it. Ask again. A service"
        " that holds its facts twice starts such a question over on a replica instead.",
        "elastalog serve reach.dl -F facts --readers-wait",
        "elastalog serve reach.dl -F facts",
    ),
    Entry(
        "E0936",
        "a service that has ended",
        "The service is shutting down and begins nothing new.",
        "a request while the service ends",
        "the same request when it has been started again",
    ),
    Entry(
        "E0937",
        "a service that cannot be started",
        "The address is taken by another program, is not one of this machine, or the extra `web` is not installed.",
        "elastalog serve reach.dl --port 80",
        "elastalog serve reach.dl --port 8642",
    ),
)
