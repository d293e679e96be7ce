"""What is wrong with a route file that has the right form: within the file, and against what was discovered."""

from routes.checks.context import Checked
from routes.checks.file import problems_of
from routes.checks.found import discovered_problems

__all__ = ["Checked", "discovered_problems", "problems_of"]
