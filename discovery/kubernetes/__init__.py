"""Services from Kubernetes."""
