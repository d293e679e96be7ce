"""What is wrong with a route file that has the right form: within the file, and against what was discovered."""

from routes.checks.file import Checked, problems_of
from routes.checks.found import against_services

__all__ = ["Checked", "against_services", "problems_of"]
