"""Claims on paths: take, wait, renew, release, check, take over."""
