"""libyaml's words for what is no YAML."""


def plainly(said: str, line: str, column: int) -> tuple[str, str]:
    """A message and a fix, made plainer where they are met most often. `line` and `column` are the place."""
    if "\t" in line[:column] and "cannot start any token" in said:
        return "a tab stands where only spaces may indent", "indent with spaces"
    if "could not find expected ':'" in said:
        return "a `:` is missing after a key, on this line or the one before", "write `key: value`"
    if "mapping values are not allowed" in said:
        return "a `:` stands where no key can be", "indent the line like its neighbours, or quote the text"
    if "tab character that violates indentation" in said:
        return "a tab stands where only spaces may indent", "indent with spaces"
    if "expected alphabetic or numeric character" in said:
        return "`*` and `&` begin the name of an alias or an anchor, and this is none", 'put the text in quotes: "*"'
    if "found undefined alias" in said:
        return said, "define the anchor (`&name`) above its use, or put the text in quotes"
    if "cannot start any token" in said:
        return said, "quote the text"
    return said, ""
