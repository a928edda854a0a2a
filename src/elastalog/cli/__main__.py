"""`python -m elastalog.cli`"""

from elastalog.cli.main import main

main()
