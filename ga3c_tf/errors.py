"""Errors that the user can put right."""


class UserError(ValueError):
    """Something the user can put right. Its text is one line: what was wrong, and what would be right."""


class BudgetReached(UserError):
    """A run that is to be resumed has used its budget."""
