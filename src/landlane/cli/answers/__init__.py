"""The types of all `--json` answers, from which schema.json is made. No command imports them.

The answer of `landlane task add` is `TaskAddAnswer`, in the module of its heading, as in `cli/specs/`; an
answer with several forms is a union. The types of the values in answers are in `json_types.py` of each noun.
"""
