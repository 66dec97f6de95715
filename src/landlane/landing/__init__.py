"""The landing queue: submit, batch, merge, check, move the target branch, clean up."""
