"""What a gRPC client that does without a proxy is given: the same rules and endpoints, in the words it has for them.

It asks for a listener by the name that its application dials, for the routes that the listener names, for their
clusters, and for their endpoints (gRFC A27). Of what it is given it takes no notice of fields it does not know, and
rejects a resource over a value it does not know; so nothing is sent to it that it has no words for.
"""
