"""Services from Consul: names from the catalog, instances from one blocking query a service, graded by their checks.

The way of the data: `source` keeps one `watch` a wanted service going; a watch asks the `client`, the rules of
`blocking` say what its answer is worth, `grading` turns instances into endpoints and reasons, `book` puts together
what several Consul services and datacenters say about one service, and the source publishes it.
"""
