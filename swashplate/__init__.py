"""The program: settings, command line, admin HTTP, and the composition root that joins the parts."""

import os
from importlib.metadata import version

# gRPC, which reads it when it is imported, writes lines of its own, no JSON: one for each handshake that fails, which
# is anybody's to do who reaches the port.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

VERSION = version("swashplate")
