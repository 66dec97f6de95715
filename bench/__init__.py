"""The measured comparison behind the promises about speed: `python -m bench`, one table of ratios."""
