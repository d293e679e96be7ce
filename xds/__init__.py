"""The management server: translates the mesh into Envoy resources and streams them."""
