"""The tables and cells of docs/decision.md."""

import re
from pathlib import Path

from gate.decide import constants
from gate.records.verdict import Reason, Status

TEXT = (Path(__file__).parents[1] / "docs" / "decision.md").read_text(encoding="utf-8")
Ruling = tuple[Status, Reason]
_RULING = re.compile(r"\b([A-Z][A-Z_]+)((?:[,;]? `\w+`)+)")


def read_table(first_column: str, text: str = "") -> list[list[str]]:
    """Rows of the table whose head starts with this column, cells without backticks."""
    lines = (text or TEXT).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {first_column} |")) + 2
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().strip("`") for cell in line.strip("|").split("|")])
    return rows


def read_head(first_column: str) -> list[str]:
    """The head of that table without its first cell."""
    (line,) = [line for line in TEXT.splitlines() if line.startswith(f"| {first_column} |")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def find_numbers(pattern: str) -> list[float]:
    """The numbers at the pattern's only match, with a group for each."""
    (numbers,) = re.findall(pattern, TEXT)
    return [float(number) for number in ([numbers] if isinstance(numbers, str) else numbers)]


def read_rulings(cell: str) -> list[Ruling]:
    """Each status of a cell with each of its reasons."""
    return [
        (Status[status], Reason(reason))
        for status, reasons in _RULING.findall(f"{cell}`" if cell.count("`") % 2 else cell)
        for reason in re.findall(r"\w+", reasons)
    ]


def read_ruling(cell: str) -> Ruling:
    """The only status and reason of a cell."""
    (ruling,) = read_rulings(cell)
    return ruling


def read_better() -> Ruling:
    """The status and reason of the mirror image of worse."""
    (line,) = [line for line in TEXT.splitlines() if line.startswith("- **Better**")]
    return read_ruling(line)


def read_constant(name: str) -> float:
    """The constant of the code with the page's name."""
    return float(getattr(constants, name))


def holds(formula: str, **values: float) -> bool:
    """Whether all these inequalities hold: ``high < k e, d < e``; names in capitals are constants."""
    numbers = {name: read_constant(name) for name in re.findall(r"\b[A-Z_]{2,}\b", formula)} | values

    def compute(side: str) -> float:
        terms = [term.split() for term in re.split(r"(?=- )", side)]
        total = 0.0
        for words in terms:
            sign = -1.0 if words[0] == "-" else 1.0
            for word in words[words[0] == "-" :]:
                sign *= numbers[word] if word in numbers else float(word)
            total += sign
        return total

    parts = (re.fullmatch(r"\s*(.+?) ([<>]) (.+?)\s*", part) for part in formula.split(","))
    sides = [(compute(part[1]), part[2], compute(part[3])) for part in parts if part]
    assert len(sides) == formula.count(",") + 1, formula
    return all(left < right if sign == "<" else left > right for left, sign, right in sides)
