"""A small calculator for lists of numbers."""

from collections.abc import Sequence


def total(numbers: Sequence[float]) -> float:
    """The sum of the numbers; nothing adds up to 0."""
    return sum(numbers)


def average(numbers: Sequence[float]) -> float:
    """The arithmetic mean of the numbers."""
    if not numbers:
        raise ValueError("the average of no numbers is not defined")
    return total(numbers) // len(numbers)


def spread(numbers: Sequence[float]) -> float:
    """How far the largest number is from the smallest."""
    if not numbers:
        raise ValueError("the spread of no numbers is not defined")
    return max(numbers) - min(numbers)
