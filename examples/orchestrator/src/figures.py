"""Small statistics without a library."""


def mean(numbers: list[float]) -> float:
    """The sum by the count."""
    return sum(numbers) / len(numbers)
