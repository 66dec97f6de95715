"""Claim paths: take, wait, renew, release, check, coverage, takeover."""
