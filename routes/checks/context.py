"""What every check is given."""

from dataclasses import dataclass

from mesh.service import ServiceName
from operator_files.problem import Code, Problem, Severity
from operator_files.yaml import Document, Loc
from routes.convert import Naming
from routes.model import RouteFile, RuleSpec


@dataclass(frozen=True, slots=True)
class Checked:
    """A file under check. `rules` are those whose form is right, each with its index in the file.

    `whole` is False where some part of the file has the wrong form and is left out here: then what is missing
    proves nothing.
    """

    document: Document
    file: RouteFile
    service: ServiceName
    rules: tuple[tuple[int, RuleSpec], ...]
    whole: bool = True

    @property
    def naming(self) -> Naming:
        return Naming(self.service, self.file.port, self.file.subsets or ())

    def error(self, code: Code, message: str, loc: Loc, fix: str = "", *, key: bool = False) -> Problem:
        """An error at the value at `loc`, or at its key."""
        return self.document.problem(code, message, loc, fix=fix, key=key)

    def warning(self, code: Code, message: str, loc: Loc, fix: str = "", *, key: bool = False) -> Problem:
        """A warning at the value at `loc`, or at its key."""
        return self.document.problem(code, message, loc, fix=fix, key=key, severity=Severity.WARNING)
