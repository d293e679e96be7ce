"""The problems that any operator file can have; each part that reads files adds a table of its own."""

from operator_files.problem import Code

NOT_UTF8 = Code("F001", "The file is not UTF-8 text.")
TOO_LARGE = Code("F002", "The file is larger than this kind of file may be.")
EMPTY = Code("F003", "The file says nothing. An empty file never replaces a good version: delete the file instead.")
SYNTAX = Code("F004", "The text is not YAML (nor JSON, which is YAML).")
CONTROL_CHARACTER = Code("F005", "YAML allows no control characters but tab and newline.")
DUPLICATE_KEY = Code("F006", "A key comes twice in one mapping, so one of the two would silently win.")
SEVERAL_DOCUMENTS = Code("F007", "A file holds exactly one YAML document.")
MERGE_KEY = Code("F008", "Merge keys (`<<`) are not part of YAML 1.2; anchors and aliases of whole values are.")
EXPANSION = Code("F009", "Aliases that repeat too much or contain themselves, or values nested too deeply.")
TAG = Code("F010", "Only YAML's core tags (`!!str`, `!!int`, ...) are known here.")
UNKNOWN_KEY = Code("F011", "The key is not one of those that may stand here. Nothing unknown is ignored.")
MISSING_KEY = Code("F012", "A key that must be there is missing.")
WRONG_VALUE = Code("F013", "The value has the wrong type, or is not among those allowed.")
HELD = Code(
    "F014",
    "A file that was there before a restart is missing or empty now. Its last good version serves on until the "
    "removal is confirmed, or the file is there again.",
)
UNREADABLE = Code("F015", "The file cannot be read (permissions, or an I/O error).")

CODES: tuple[Code, ...] = (
    NOT_UTF8, TOO_LARGE, EMPTY, SYNTAX, CONTROL_CHARACTER, DUPLICATE_KEY, SEVERAL_DOCUMENTS, MERGE_KEY, EXPANSION,
    TAG, UNKNOWN_KEY, MISSING_KEY, WRONG_VALUE, HELD, UNREADABLE,
)  # fmt: skip
