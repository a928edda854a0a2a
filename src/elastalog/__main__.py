"""`python -m elastalog`"""

from elastalog.cli.main import main

main()
