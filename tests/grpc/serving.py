"""An xDS-enabled gRPC server in a process of its own: `serving.py ADDRESS NAME`, until its stdin ends.

Says on stdout when it begins to take calls, which is when it has its listener; stands for test.Echo/Say, and answers
its NAME.
"""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc


def main(address: str, name: str) -> None:
    server = grpc.server(ThreadPoolExecutor(4), xds=True)
    say: Any = grpc.unary_unary_rpc_method_handler(lambda _request, _context: name.encode())
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", {"Say": say}),))
    server.add_secure_port(address, grpc.xds_server_credentials(grpc.insecure_server_credentials()))
    server.start()
    threading.Thread(target=_tell_when_serving, args=(address,), daemon=True).start()
    sys.stdin.read()
    server.stop(1).wait()


def _tell_when_serving(address: str) -> None:
    with grpc.insecure_channel(address) as channel:
        grpc.channel_ready_future(channel).result(timeout=30)
    print("serving", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
