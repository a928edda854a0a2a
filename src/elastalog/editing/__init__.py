"""What an editor asks about a program that is being written: pure functions over a `Reading` of it."""

from elastalog.editing.complete import Proposal as Proposal
from elastalog.editing.complete import complete as complete
from elastalog.editing.desk import Desk as Desk
from elastalog.editing.hover import hover as hover
from elastalog.editing.outline import Entry as Entry
from elastalog.editing.outline import outline as outline
from elastalog.editing.places import Place as Place
from elastalog.editing.reading import Reading as Reading
from elastalog.editing.reading import read as read
from elastalog.editing.references import definition as definition
from elastalog.editing.references import references as references
from elastalog.editing.rename import rename as rename
from elastalog.editing.repairs import Repair as Repair
from elastalog.editing.repairs import repairs as repairs
