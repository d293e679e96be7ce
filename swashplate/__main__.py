"""`python -m swashplate`."""

from swashplate.cli import main

main(prog_name="swashplate")
