"""Why requests go where they go, and why instances get none: answers made of what is in force."""
