"""The landing queue: submit, batch, combine, check, move the target, clean up."""
