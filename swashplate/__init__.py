"""The program: settings, command line, admin HTTP, and the composition root that joins the parts."""

from importlib.metadata import version

VERSION = version("swashplate")
