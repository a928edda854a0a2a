"""Update streams without Spark: the updates of a folder, or of one table with a column `step`."""

from elastalog.pipeline.streams.lookahead import with_next as with_next
from elastalog.pipeline.streams.source import StreamedUpdate as StreamedUpdate
from elastalog.pipeline.streams.source import read_stream as read_stream
