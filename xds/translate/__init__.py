"""From the mesh to Envoy resources: pure, per service, without a clock."""
