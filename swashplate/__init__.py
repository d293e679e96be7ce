"""The program: settings, command line, admin HTTP, and the composition root that joins the parts."""

import os
from importlib.metadata import version

# gRPC, which reads it when it is imported, writes lines of its own, no JSON: one for each handshake that fails and
# for each header that is none, which are anybody's to send who reaches the port. What it cannot do, it raises, too.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

VERSION = version("swashplate")
